"""Worker processes: started, identified by PID and start time, and ended by nobody but us."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from experiments.gpu_check.record import CannotRun
from steps.adapters.procfs.details import stat_of

Mode = Literal["idle", "one-thread", "matrix"]

ROOT: Final = Path(__file__).parents[2]
MIB: Final = 1 << 20
MEMORY_MIB: Final = 1024
READY_S: Final = 40.0
"""A first CUDA context without persistence mode, and the driver's compilation of the kernel."""
LIFE_S: Final = 60
SIMULATED_ACTIVITY: Final[Mapping[Mode, tuple[int, int]]] = {"idle": (0, 0), "one-thread": (100, 1), "matrix": (100, 98)}
"""What the stand-in says of itself, percent: utilisation and SM activity. Invented, as everything simulated."""


class Identity(NamedTuple):
    """A process of ours, for good."""

    pid: int
    start_time_ticks: int


@dataclass(frozen=True)
class Worker:
    process: "subprocess.Popen[str]"
    child: Identity | None

    @property
    def pid(self) -> int:
        return self.process.pid


@dataclass(frozen=True)
class Starter:
    """How workers are started here. index, uuid: the GPU that all of them use. simulator: its folder, None on a real driver."""

    index: int
    uuid: str
    simulator: Path | None

    def command(self, mode: Mode, *, fork: bool) -> list[str]:
        if self.simulator is None:
            words = [str(self.index), str(MEMORY_MIB), mode, "fork" if fork else "none", str(LIFE_S)]
            return [sys.executable, "-m", "experiments.gpu_check.worker", *words]
        utilisation, sm = SIMULATED_ACTIVITY[mode]
        control = self.simulator / "no-orders"
        flags = {
            "folder": self.simulator,
            "uuid": self.uuid,
            "mib": MEMORY_MIB,
            "mode": "idle" if mode == "idle" else "busy",
            "utilisation": utilisation,
            "sm": sm,
            "child": "fork" if fork else "none",
            "port": 0,
            "devices": "/nonexistent",
            "control": control,
            "seconds": LIFE_S,
        }
        return [sys.executable, str(ROOT / "sim" / "node" / "workload.py"), *(f"--{name}={value}" for name, value in flags.items())]

    @contextmanager
    def running(self, mode: Mode, *, fork: bool = False) -> Iterator[Worker]:
        """A worker that holds its memory, ended with its child when the block ends. Raises CannotRun."""
        environment = {**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}  # so that CUDA counts as NVML does
        process = subprocess.Popen(self.command(mode, fork=fork), stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT)
        child = None
        try:
            said = _first_line(process)
            if "cannot" in said:
                raise CannotRun(str(said["cannot"]))
            child = None if said.get("child") is None else identity_of(said["child"])
            yield Worker(process, child)
        finally:
            process.kill()
            process.wait(timeout=READY_S)
            if process.stdout is not None:
                process.stdout.close()
            if child is not None:
                end(child)


def _first_line(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], READY_S)
    line = process.stdout.readline() if readable else ""
    if not line:
        raise CannotRun(
            f"the worker was not ready within {READY_S:g} s" if process.poll() is None else "the worker died at its start"
        )
    said: dict[str, Any] = json.loads(line)
    return said


def identity_of(pid: int) -> Identity | None:
    """None: it is gone."""
    stat = stat_of("/proc", pid)
    return None if stat is None else Identity(pid, stat.start_time_ticks)


def end(one: Identity) -> None:
    """Kill exactly this process; one that took its PID since is left alone."""
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(one.pid)
        try:
            if identity_of(one.pid) == one:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)
