"""The text of /proc/<pid>/net/tcp and tcp6: which connections somebody holds into a network namespace. Pure."""

from collections.abc import Iterable
from typing import Final, NamedTuple

_ESTABLISHED: Final = "01"
_LISTEN: Final = "0A"
_V4_IN_V6: Final = "0000000000000000FFFF0000"
"""A dual-stack server's IPv4 peers stand in tcp6 behind this prefix."""


class Row(NamedTuple):
    """One socket. Addresses as the kernel prints them, hexadecimal in little-endian words, IPv4 in its short form."""

    local: str
    local_port: int
    remote: str
    remote_port: int
    state: str
    inode: int


def parse_rows(content: bytes) -> list[Row]:
    """The rows of a tcp or tcp6 table. A line that is cut short is left out."""
    return [row for line in content.decode("ascii", "replace").splitlines()[1:] if (row := _row(line)) is not None]


def none_in_use(counts: bytes | None) -> bool:
    """Whether a sockstat or sockstat6 file says that the namespace has no TCP socket, so that its table is empty.

    False if the file is missing or cut short: then the table has to be read.
    """
    words = [line.split() for line in (counts or b"").splitlines() if line.startswith((b"TCP:", b"TCP6:"))]
    return [one[1:3] for one in words] == [[b"inuse", b"0"]]


def accepted(rows: Iterable[Row]) -> list[Row]:
    """ESTABLISHED rows whose local port somebody listens on in the same namespace: they came from elsewhere.

    CLOSE_WAIT and the like are what a closed tab leaves behind and do not count (facts/session-tools 4).
    """
    every = list(rows)
    listening = {row.local_port for row in every if row.state == _LISTEN}
    return [row for row in every if row.state == _ESTABLISHED and row.local_port in listening]


def client_inode(row: Row, rows: Iterable[Row]) -> int | None:
    """The socket at the other end of a connection, if that end is in the same namespace; None if it is elsewhere."""
    other_end = (row.remote, row.remote_port, row.local, row.local_port)
    return next((r.inode for r in rows if (r.local, r.local_port, r.remote, r.remote_port) == other_end), None)


def _row(line: str) -> Row | None:
    fields = line.split()
    try:
        (local, local_port), (remote, remote_port) = fields[1].split(":"), fields[2].split(":")
        return Row(_short(local), int(local_port, 16), _short(remote), int(remote_port, 16), fields[3], int(fields[9]))
    except (IndexError, ValueError):
        return None


def _short(address: str) -> str:
    return address.removeprefix(_V4_IN_V6)
