"""How device memory comes back: from SIGKILL to free, and when a forked child keeps what its dead parent had open."""

import os
import signal
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from experiments.gpu_check.fields import collected
from experiments.gpu_check.nvml import ask, used_bytes
from experiments.gpu_check.record import CannotRun, Measure
from experiments.gpu_check.workers import MEMORY_MIB, MIB, Identity, Starter, end
from steps.adapters.procfs import ProcfsReader
from steps.contracts.node_facts import Scan

BUDGET_S: Final = 100.0
"""For all kills together: a driver without persistence mode takes seconds for each context."""
PATIENCE_S: Final = 15.0
HALF: Final = MEMORY_MIB * MIB // 2
"""Half of what a worker holds: below this beyond the state before, its memory is back."""
SETTLED_S: Final = 3.0


def after_sigkill(starter: Starter, kills: int) -> tuple[Measure, ...]:
    """Milliseconds from SIGKILL until NVML shows the memory as free, polled as fast as the driver answers."""
    began, taken = time.monotonic(), list[float]()
    for _ in range(kills):
        if time.monotonic() - began > BUDGET_S:
            break
        idle = ask(lambda nvml: used_bytes(nvml, nvml.nvmlDeviceGetHandleByIndex(starter.index)))
        with starter.running("idle") as worker:
            taken.append(ask(partial(_kill_and_watch, index=starter.index, pid=worker.pid, idle=idle)))
    if not taken:
        raise CannotRun(f"no worker was ready within {BUDGET_S:g} s")
    return (
        Measure(name="kills", value=len(taken), note="" if len(taken) == kills else f"of {kills}: the time was up"),
        Measure(name="SIGKILL to memory free, median", value=round(statistics.median(taken), 2), unit="ms"),
        Measure(name="SIGKILL to memory free, smallest", value=round(min(taken), 2), unit="ms"),
        Measure(name="SIGKILL to memory free, largest", value=round(max(taken), 2), unit="ms"),
    )


def _kill_and_watch(nvml: Any, index: int, pid: int, idle: int) -> float:
    """pid: a worker of ours that nobody reaps meanwhile, so that the PID is its own."""
    return _until_free(nvml, index, idle, partial(os.kill, pid, signal.SIGKILL))


def _end_and_watch(nvml: Any, index: int, child: Identity, idle: int) -> float:
    return _until_free(nvml, index, idle, partial(end, child))


def _until_free(nvml: Any, index: int, idle: int, act: Callable[[], None]) -> float:
    """Milliseconds from the act until the worker's memory is free."""
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    held = used_bytes(nvml, handle) - idle
    if held < HALF:
        raise CannotRun(f"{held} B of the worker's {MEMORY_MIB} MiB are held: it lost them, or somebody else changed the GPU")
    began = time.perf_counter()
    act()
    while used_bytes(nvml, handle) - idle >= HALF:
        if time.perf_counter() - began > PATIENCE_S:
            raise CannotRun(f"the memory was not back after {PATIENCE_S:g} s")
    return round((time.perf_counter() - began) * 1e3, 2)


def forked_child(starter: Starter) -> tuple[Measure, ...]:
    """Kill a worker whose forked child shares its open files: is the memory still held, and who is named as its holder?"""
    idle = ask(lambda nvml: used_bytes(nvml, nvml.nvmlDeviceGetHandleByIndex(starter.index)))
    with starter.running("idle", fork=True) as worker:
        if worker.child is None:
            raise CannotRun("the worker's child ended before the check")
        worker.process.kill()
        worker.process.wait(timeout=PATIENCE_S)
        time.sleep(SETTLED_S)
        gpu = collected(starter.index)
        used, listed = gpu.memory.used_bytes.known(), gpu.processes.known()
        held = None if used is None else used - idle
        holders = _holders(starter.index)
        kept = held is not None and held >= HALF
        free_ms = ask(partial(_end_and_watch, index=starter.index, child=worker.child, idle=idle)) if kept else None
    pids = None if listed is None else {one.pid for one in listed}
    return (
        Measure(name="held after the parent's death", value=held, unit="B", note=f"{SETTLED_S:g} s after SIGKILL; idle: {idle} B"),
        Measure(name="NVML lists the child", value=None if pids is None else worker.child.pid in pids),
        Measure(name="NVML lists the dead parent", value=None if pids is None else worker.pid in pids),
        Measure(
            name="/proc names the child as holder",
            value=worker.child.pid in holders if holders is not None else None,
            note="" if holders is not None else "no device node of this GPU is visible from here",
        ),
        Measure(name="child's end to memory free", value=free_ms, unit="ms", note="" if kept else "the child kept nothing"),
    )


def _holders(index: int) -> set[int] | None:
    """PIDs that hold the GPU's node by /proc; None if its number is not known here."""
    reader = ProcfsReader()
    gpu = collected(index)
    nodes = reader.devices([gpu]).known()
    mine = [] if nodes is None else [node for node in nodes if node.gpu_uuid == gpu.uuid]
    if not mine:
        return None
    return {process.pid for process in reader.scan(mine, (), Scan.FULL).processes if process.holds}
