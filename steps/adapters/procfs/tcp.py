"""The text of /proc/<pid>/net/tcp and tcp6: which connections somebody holds into a network namespace. Pure."""

from collections.abc import Iterable
from typing import Final, NamedTuple

_ESTABLISHED: Final = "01"
_LISTEN: Final = "0A"
_V4_IN_V6: Final = "0000000000000000FFFF0000"
_LOOPBACK_V6: Final = "00000000000000000000000001000000"


class Row(NamedTuple):
    """One socket. Addresses as the kernel prints them: hexadecimal, little-endian words."""

    local: str
    local_port: int
    remote: str
    remote_port: int
    state: str
    inode: int

    @property
    def from_loopback(self) -> bool:
        if self.remote.startswith(_V4_IN_V6):
            return self.remote.endswith("7F")
        return self.remote == _LOOPBACK_V6 or (len(self.remote) == 8 and self.remote.endswith("7F"))


def parse_rows(content: bytes) -> list[Row]:
    """The rows of a tcp or tcp6 table. A line that is cut short is left out."""
    return [row for line in content.decode("ascii", "replace").splitlines()[1:] if (row := _row(line)) is not None]


def accepted(rows: Iterable[Row]) -> list[Row]:
    """ESTABLISHED rows whose local port somebody listens on in the same namespace: they came from elsewhere.

    CLOSE_WAIT and the like are what a closed tab leaves behind and do not count (facts/session-tools 4).
    """
    every = list(rows)
    listening = {row.local_port for row in every if row.state == _LISTEN}
    return [row for row in every if row.state == _ESTABLISHED and row.local_port in listening]


def client_inode(row: Row, rows: Iterable[Row]) -> int | None:
    """The inode of the other end of a loopback connection, which stands in the same table; None if it is not there."""
    return next((r.inode for r in rows if (r.local_port, r.remote_port) == (row.remote_port, row.local_port)), None)


def _row(line: str) -> Row | None:
    fields = line.split()
    try:
        (local, local_port), (remote, remote_port) = fields[1].split(":"), fields[2].split(":")
        return Row(local, int(local_port, 16), remote, int(remote_port, 16), fields[3], int(fields[9]))
    except (IndexError, ValueError):
        return None
