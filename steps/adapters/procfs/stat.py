"""Parsers for the text of /proc/<pid>/stat and status. Pure. A process chooses its own name, so the text is hostile."""

from typing import Final, NamedTuple

SIGKILL_BIT: Final = 1 << 8
"""Mask 0x100 in SigPnd and ShdPnd: SIGKILL was sent and has not been acted on (facts 4.5)."""


class Stat(NamedTuple):
    """What we use of one stat line. start_time_ticks: since boot; together with pid and boot id it names a process for good."""

    pid: int
    name: str
    state: str
    parent_pid: int
    process_group: int
    session_id: int
    threads: int
    start_time_ticks: int

    @property
    def is_zombie(self) -> bool:
        return self.state in "ZX"


class Status(NamedTuple):
    """What we use of the status file. namespace_pids: the PID in every PID namespace, the reader's first; empty on old kernels."""

    namespace_pids: tuple[int, ...]
    kill_pending: bool


def parse_stat(content: bytes) -> Stat | None:
    """The stat line of a process, or None if it is cut short.

    The command may contain blanks and `)`, so fields are counted after the LAST `)`: a process named `a) Z 1 (b x` would
    otherwise pass for a zombie (facts 4.1).
    """
    opening, closing = content.find(b"("), content.rfind(b")")
    fields = content[closing + 1 :].split()
    if opening < 0 or closing < opening or len(fields) < 20:
        return None
    try:
        return Stat(
            pid=int(content[:opening]),
            name=content[opening + 1 : closing].decode("utf-8", "replace"),
            state=fields[0].decode("ascii", "replace"),
            parent_pid=int(fields[1]),
            process_group=int(fields[2]),
            session_id=int(fields[3]),
            threads=int(fields[17]),
            start_time_ticks=int(fields[19]),
        )
    except ValueError:
        return None


def parse_signals(content: bytes) -> tuple[int, int] | None:
    """Masks of caught and of ignored signals in a status file; None if either line is missing."""
    fields = dict(line.split(b":", 1) for line in content.splitlines() if b":" in line)
    try:
        return int(fields[b"SigCgt"], 16), int(fields[b"SigIgn"], 16)
    except (KeyError, ValueError):
        return None


def parse_status(content: bytes) -> Status:
    """NSpid and pending signals of a status file; a missing line is no PID and no pending kill (the name is escaped in there)."""
    pending = [_line(content, name) for name in (b"SigPnd", b"ShdPnd")]
    numbers = _line(content, b"NSpid")
    return Status(
        namespace_pids=() if numbers is None else tuple(int(word) for word in numbers.split()),
        kill_pending=any(int(mask, 16) & SIGKILL_BIT for mask in pending if mask is not None),
    )


def _line(content: bytes, name: bytes) -> bytes | None:
    """What follows the name of one line; None if there is no such line. Searched for: three of sixty are wanted."""
    at = content.find(b"\n" + name + b":")
    if at < 0:
        return None
    start, end = at + len(name) + 2, content.find(b"\n", at + 1)
    return content[start:] if end < 0 else content[start:end]
