"""What accounting mode remembers of processes that have ended: evidence of who held memory that nobody holds now (facts 3.10)."""

from typing import Any, Final

from steps.adapters.nvml.bindings import Device, Fault
from steps.contracts.document import Sample
from steps.contracts.node_facts import AccountedProcess

MAX_ASKED: Final = 64
"""NVML keeps up to 4,000 PIDs and wants a call for each; the latest stand last."""
MAX_KEPT: Final = 8


def accounted(device: Device, mode: Sample[bool]) -> Sample[tuple[AccountedProcess, ...]]:
    """The latest processes that ended, newest first. Not applicable where the mode is off; unknown where that is."""
    if mode.known() is None:
        return Sample(value=None, state=mode.state, reason=mode.reason)
    if mode.known() is False:
        return Sample.not_applicable("accounting mode is off; root may enable it")
    nvml = device.nvml
    try:
        pids = device.call(lambda: nvml.nvmlDeviceGetAccountingPids(device.handle))[-MAX_ASKED:]
    except Fault as fault:
        return device.unknown("accounting", fault)
    ended = [(pid, stats) for pid in pids if (stats := _stats(device, pid)) is not None and not stats.isRunning]
    ended.sort(key=lambda one: int(one[1].startTime), reverse=True)
    return Sample.measured(tuple(_process(pid, stats) for pid, stats in ended[:MAX_KEPT]))


def _stats(device: Device, pid: int) -> Any | None:
    """None: it was dropped from the ring between the two calls, or the call failed; a refusal is kept."""
    try:
        return device.call(lambda: device.nvml.nvmlDeviceGetAccountingStats(device.handle, pid))
    except Fault as fault:
        device.unknown("accounting of a process", fault)
        return None


def _process(pid: int, stats: Any) -> AccountedProcess:
    peak: Sample[int] = Sample.absent("not kept") if stats.maxMemoryUsage is None else Sample.measured(int(stats.maxMemoryUsage))
    return AccountedProcess(pid=int(pid), peak_memory_bytes=peak, ran_s=int(stats.time) / 1000)
