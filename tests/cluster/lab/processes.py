"""Processes of the test cluster: each one started is written down with what identifies it, and only those are ended.

A PID alone identifies nothing: it is used again. PID, start time and boot id together do (facts/gpu-and-linux.md).
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from steps.contracts.files import write_atomically
from tests.cluster.lab.errors import LabError

POLL_S: Final = 0.05
TERM_S: Final = 5.0
KILL_S: Final = 5.0
LOG_LINES: Final = 20


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """One process. started_ticks: field 22 of /proc/PID/stat, in clock ticks since boot."""

    name: str
    pid: int
    started_ticks: int
    boot_id: str

    def alive(self) -> bool:
        """True while this very process runs; a zombie has ended."""
        return self.boot_id == boot_id() and started_ticks(self.pid) == self.started_ticks

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to this very process; nothing happens if it has ended."""
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def started_ticks(pid: int) -> int | None:
    """When the process began, in ticks since boot; None if there is no such process, or only its zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


def identified(name: str, pid: int) -> Started | None:
    """The process behind a PID as it is now, or None if it has ended."""
    ticks = started_ticks(pid)
    return None if ticks is None else Started(name=name, pid=pid, started_ticks=ticks, boot_id=boot_id())


def end(processes: Iterable[Started], *, term_s: float = TERM_S) -> None:
    """SIGTERM to all, SIGKILL to those still there after term_s. Raises LabError if one survives even that."""
    ours = list(processes)
    waiting = [process for process in ours if process.alive()]
    for number, patience_s in ((signal.SIGTERM, term_s), (signal.SIGKILL, KILL_S)):
        for process in waiting:
            process.signal(number)
        deadline_s = time.monotonic() + patience_s
        while waiting and time.monotonic() < deadline_s:
            _reap(waiting)
            waiting = [process for process in waiting if process.alive()]
            time.sleep(POLL_S if waiting else 0)
    _reap(ours)
    if waiting:
        names = ", ".join(f"{process.name} (PID {process.pid})" for process in waiting)
        raise LabError(f"{names} survived SIGKILL; look at their state in /proc/PID/stack, or restart this machine")


def _reap(processes: Iterable[Started]) -> None:
    """Take the exit status of those that are our own children, so that they do not stay as zombies."""
    for process in processes:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)


class Ledger:
    """The list of started processes in a file, written before anyone waits for one of them."""

    def __init__(self, folder: Path, logs: Path) -> None:
        self._path: Final = folder / "processes.json"
        self._logs: Final = logs

    def all(self) -> list[Started]:
        """Everything recorded, oldest first; empty if there is no record. Raises LabError if the record is broken."""
        if not self._path.is_file():
            return []
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=list[Started])
        except msgspec.DecodeError as error:
            raise LabError(
                f"{self._path} is broken ({error}); end the cluster's processes by hand and delete the folder"
            ) from error

    def named(self, name: str) -> Started | None:
        """The youngest process of that name, alive or not."""
        return next((process for process in reversed(self.all()) if process.name == name), None)

    def runs(self, name: str) -> bool:
        """True while a recorded process of that name is alive."""
        process = self.named(name)
        return process is not None and process.alive()

    def log_of(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def start(self, name: str, argv: Sequence[str | Path], environ: Mapping[str, str] | None = None) -> Started:
        """Start a program in a session of its own, its words into its log. Raises LabError if it ended at once."""
        log = self.log_of(name)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as words:
            child = subprocess.Popen(
                [str(word) for word in argv],
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **(environ or {})},
            )
        process = identified(name, child.pid)
        child.returncode = 0  # it outlives this program on purpose: no warning when the handle goes
        if process is None:
            raise LabError(f"{name} ended at once:\n{self.tail(name)}")
        write_atomically(self._path, msgspec.json.encode([*self.all(), process]))
        return process

    def end(self, name: str, *, term_s: float = TERM_S) -> None:
        """End the process of that name, if it runs."""
        process = self.named(name)
        if process is not None:
            end([process], term_s=term_s)

    def wait(self, name: str, what: str, ready: Callable[[], bool], *, within_s: float) -> None:
        """Until ready() holds. Raises LabError with the tail of the log of `name` if it ended or the time is up."""
        process = self.named(name)
        deadline_s = time.monotonic() + within_s
        while not ready():
            if process is not None and not process.alive():
                raise LabError(f"{name} ended while waiting until {what}:\n{self.tail(name)}")
            if time.monotonic() > deadline_s:
                raise LabError(f"not within {within_s:g} s: {what}. The last lines of {self.log_of(name)}:\n{self.tail(name)}")
            time.sleep(0.1)

    def tail(self, name: str) -> str:
        """The last lines a component wrote."""
        log = self.log_of(name)
        if not log.is_file():
            return "(no log)"
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:])
