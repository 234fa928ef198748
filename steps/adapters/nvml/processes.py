"""NVML's process lists: three kinds, merged by PID, believed only if the entries can be right (facts 3.2, 3.3)."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from steps.adapters.nvml.bindings import (
    FUNCTION_NOT_FOUND,
    INSUFFICIENT_SIZE,
    NOT_SUPPORTED,
    Device,
    Fault,
    Handle,
)
from steps.contracts.document import Sample
from steps.contracts.node_facts import GpuProcess, Layout, ProcessKind

MAX_TRIES: Final = 3
"""The bindings leave room for twice the number of processes; a list that outgrew that is asked again."""
_NO_SUCH_LIST: Final = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND})


class Entry(NamedTuple):
    pid: int
    used_bytes: int | None
    kind: ProcessKind


class ProcessLists(NamedTuple):
    processes: Sample[tuple[GpuProcess, ...]]
    layout: Layout
    mps_active: Sample[bool]


def read_processes(device: Device, *, total_bytes: int | None, pid_max: int) -> ProcessLists:
    """All processes that NVML lists for a GPU or MIG instance.

    A list that failed makes the whole unknown: a part of a list is no list. Graphics and MPS lists that do not exist on this
    model are no gap. An entry that cannot be right voids everything: driver and bindings disagree on its size.
    """
    entries: list[Entry] = []
    answered: set[ProcessKind] = set()
    for kind, versions in _lists(device).items():
        try:
            entries.extend(_one_list(device, kind, versions))
            answered.add(kind)
        except Fault as fault:
            if kind is ProcessKind.COMPUTE or fault.code not in _NO_SUCH_LIST:
                failed = device.unknown(f"list of {kind.value} processes", fault)
                return ProcessLists(failed, Layout.PLAUSIBLE, failed)
    wrong = implausible(entries, total_bytes=total_bytes, pid_max=pid_max)
    if wrong is not None:
        mismatch = Sample[Any].error(
            f"{wrong}: driver and bindings disagree on the size of a process entry; {_older(device, total_bytes, pid_max)}"
        )
        return ProcessLists(mismatch, Layout.MISMATCH, mismatch)
    return ProcessLists(Sample.measured(merge(entries)), Layout.PLAUSIBLE, _mps(entries, answered))


def implausible(entries: Sequence[Entry], *, total_bytes: int | None, pid_max: int) -> str | None:
    """Words for the first entry that no driver can mean, or None.

    total_bytes None: memory cannot be checked, only PIDs.
    """
    for entry in entries:
        if entry.pid == 0 or entry.pid > pid_max:
            return f"PID {entry.pid} cannot be"
        if total_bytes is not None and entry.used_bytes is not None and entry.used_bytes > total_bytes:
            return f"PID {entry.pid} would use {entry.used_bytes} of {total_bytes} bytes"
    return None


def merge(entries: Sequence[Entry]) -> tuple[GpuProcess, ...]:
    """One GpuProcess a PID, ascending: kinds united, memory the maximum, unknown as soon as one list does not know it."""
    by_pid: dict[int, list[Entry]] = {}
    for entry in entries:
        by_pid.setdefault(entry.pid, []).append(entry)
    return tuple(
        GpuProcess(
            pid=pid, used_memory_bytes=_memory(found), kinds=tuple(kind for kind in ProcessKind if kind in {e.kind for e in found})
        )
        for pid, found in sorted(by_pid.items())
    )


def _memory(found: Sequence[Entry]) -> Sample[int]:
    known = [entry.used_bytes for entry in found if entry.used_bytes is not None]
    if len(known) < len(found):
        return Sample.absent("NVML does not know it here (in a container, on vGPU, on a MIG parent)")
    return Sample.measured(max(known))


def _lists(device: Device) -> dict[ProcessKind, tuple[Callable[[Handle], Sequence[Any]], ...]]:
    """By kind the versioned calls, newest first. The unversioned ones hide which layout they assume."""
    nvml = device.nvml
    return {
        ProcessKind.COMPUTE: (nvml.nvmlDeviceGetComputeRunningProcesses_v3, nvml.nvmlDeviceGetComputeRunningProcesses_v2),
        ProcessKind.GRAPHICS: (nvml.nvmlDeviceGetGraphicsRunningProcesses_v3, nvml.nvmlDeviceGetGraphicsRunningProcesses_v2),
        ProcessKind.MPS: (nvml.nvmlDeviceGetMPSComputeRunningProcesses_v3, nvml.nvmlDeviceGetMPSComputeRunningProcesses_v2),
    }


def _one_list(device: Device, kind: ProcessKind, versions: Sequence[Callable[[Handle], Sequence[Any]]]) -> list[Entry]:
    for version in versions[:-1]:
        try:
            return _asked(device, kind, version)
        except Fault as fault:
            if fault.code != FUNCTION_NOT_FOUND:
                raise
    return _asked(device, kind, versions[-1])


def _asked(device: Device, kind: ProcessKind, version: Callable[[Handle], Sequence[Any]]) -> list[Entry]:
    for _ in range(MAX_TRIES - 1):
        try:
            return _entries(device.call(lambda: version(device.handle)), kind)
        except Fault as fault:
            if fault.code != INSUFFICIENT_SIZE:
                raise
    return _entries(device.call(lambda: version(device.handle)), kind)


def _entries(raw: Sequence[Any], kind: ProcessKind) -> list[Entry]:
    return [Entry(int(one.pid), None if one.usedGpuMemory is None else int(one.usedGpuMemory), kind) for one in raw]


def _older(device: Device, total_bytes: int | None, pid_max: int) -> str:
    """What the older call says, as a hint for people; no verdict rests on it."""
    try:
        entries = _asked(device, ProcessKind.COMPUTE, device.nvml.nvmlDeviceGetComputeRunningProcesses_v2)
    except Fault as fault:
        return f"the older call fails: {fault}"
    if implausible(entries, total_bytes=total_bytes, pid_max=pid_max) is not None:
        return "the older call is no better"
    return f"the older call names PIDs {[entry.pid for entry in entries[:8]]}"


def _mps(entries: Sequence[Entry], answered: set[ProcessKind]) -> Sample[bool]:
    if ProcessKind.MPS not in answered:
        return Sample.absent("this driver has no list of MPS clients")
    return Sample.measured(any(entry.kind is ProcessKind.MPS for entry in entries))
