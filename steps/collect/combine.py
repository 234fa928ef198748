"""Several looks made one. Pure. The last look is the present; earlier ones add history, gaps included."""

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Final

import msgspec

from steps.contracts.document import Sample, State
from steps.contracts.node_facts import (
    Activity,
    GpuFacts,
    Health,
    ProcessActivity,
    ProcessFacts,
    SocketFacts,
    Visibility,
    VisibilityLevel,
)
from steps.contracts.ports import ProcessScan

Gpus = Sample[tuple[GpuFacts, ...]]

_CLARITY: Final = {VisibilityLevel.FULL: 0, VisibilityLevel.PARTIAL: 1, VisibilityLevel.BLIND: 2}


def combine_gpus(readings: Sequence[tuple[datetime, Gpus]]) -> Gpus:
    """The GPUs of the last reading, each with one Activity a look, oldest first.

    A look that did not answer for a GPU is an Activity of errors: a gap must not look like a shorter watch. A GPU that an
    earlier look listed and the last does not is kept as lost. If the last look failed as a whole, so does this.
    """
    last = readings[-1][1]
    present = last.known()
    if present is None:
        return last
    listed = {gpu.uuid for gpu in present}
    gone: dict[str, GpuFacts] = {}
    for _, reading in readings[:-1]:
        earlier = reading.known()
        gone.update({gpu.uuid: gpu for gpu in (() if earlier is None else earlier) if gpu.uuid not in listed})
    lost = (_lost(gpu) for _, gpu in sorted(gone.items()))
    return msgspec.structs.replace(last, value=tuple(_with_history(gpu, readings) for gpu in (*present, *lost)))


def _lost(gpu: GpuFacts) -> GpuFacts:
    return msgspec.structs.replace(gpu, health=Health.LOST, health_reason="NVML listed it a moment ago and no longer does")


def _with_history(gpu: GpuFacts, readings: Sequence[tuple[datetime, Gpus]]) -> GpuFacts:
    moments = [_moment(gpu.uuid, at, reading) for at, reading in readings]
    return msgspec.structs.replace(
        gpu,
        activity=tuple(activity for activity, _ in moments),
        process_activity=_highest([by_process for _, by_process in moments]),
    )


def _moment(uuid: str, at: datetime, reading: Gpus) -> tuple[Activity, Sample[tuple[ProcessActivity, ...]]]:
    gpus = reading.known()
    found = None if gpus is None else next((gpu for gpu in gpus if gpu.uuid == uuid), None)
    if found is not None:
        return found.activity[-1], found.process_activity
    reason = reading.reason if gpus is None and reading.reason is not None else "NVML did not list it in this look"
    gap = Sample[int].error(reason)
    ratio = Sample[float].error(reason)
    moment = Activity(taken_at=at, used_bytes=gap, utilisation_ratio=ratio, sm_active_ratio=ratio, graphics_active_ratio=ratio)
    return moment, Sample.error(reason)


def _highest(readings: Sequence[Sample[tuple[ProcessActivity, ...]]]) -> Sample[tuple[ProcessActivity, ...]]:
    """Each process's highest ratio; unknown as soon as one look is, because a process it missed may have worked."""
    highest: dict[int, float] = {}
    for reading in readings:
        known = reading.known()
        if known is None:
            return reading
        for one in known:
            highest[one.pid] = max(highest.get(one.pid, one.sm_ratio), one.sm_ratio)
    return Sample.measured(tuple(ProcessActivity(pid=pid, sm_ratio=ratio) for pid, ratio in sorted(highest.items())))


def combine_processes(scans: Sequence[ProcessScan]) -> tuple[ProcessFacts, ...]:
    """The processes of the last look; `samples_in_state` counts the latest looks in a row with the same process and state,
    `samples_in_d` those in which one same thread was in uninterruptible sleep."""
    return tuple(
        msgspec.structs.replace(
            process,
            samples_in_state=_run_length(scans, _in_same_state(process)),
            samples_in_d=max((_run_length(scans, _in_d(process, thread)) for thread in process.threads_in_d), default=0),
        )
        for process in scans[-1].processes
    )


def _run_length(scans: Sequence[ProcessScan], same: Callable[[ProcessFacts], bool]) -> int:
    """How many of the latest scans in a row have such a process."""
    return sum(1 for _ in takewhile(lambda scan: any(same(one) for one in scan.processes), reversed(scans)))


def _in_same_state(process: ProcessFacts) -> Callable[[ProcessFacts], bool]:
    return lambda other: _is(process, other) and other.state == process.state


def _in_d(process: ProcessFacts, thread: int) -> Callable[[ProcessFacts], bool]:
    return lambda other: _is(process, other) and thread in other.threads_in_d


def _is(one: ProcessFacts, other: ProcessFacts) -> bool:
    return (one.pid, one.start_time_ticks) == (other.pid, other.start_time_ticks)


def combine_sockets(readings: Sequence[Sample[tuple[SocketFacts, ...]]]) -> Sample[tuple[SocketFacts, ...]]:
    """The namespaces of the last look, each with the most connections that any look saw; unknown if one look is unknown,
    unless a count is above zero: somebody was seen there."""
    last = readings[-1].known()
    if last is None:
        return readings[-1]
    by_name = [{s.network_namespace: s for s in known} for reading in readings if (known := reading.known()) is not None]
    failed = next((reading for reading in readings if reading.known() is None), None)
    return msgspec.structs.replace(
        readings[-1],
        value=tuple(
            msgspec.structs.replace(
                one,
                established=_most(
                    [seen[one.network_namespace].established for seen in by_name if one.network_namespace in seen], failed
                ),
            )
            for one in last
        ),
    )


def _most(counts: Sequence[Sample[int]], failed: Sample[tuple[SocketFacts, ...]] | None) -> Sample[int]:
    known = [count for one in counts if (count := one.known()) is not None]
    most = max(known, default=None)
    if most is not None and most > 0:
        return Sample.measured(most)
    if failed is not None:
        return Sample(value=None, state=State.ERROR, reason=failed.reason)
    gap = next((one for one in counts if one.known() is None), None)
    return counts[-1] if gap is None else gap


def combine_visibility(seen: Sequence[Visibility]) -> Visibility:
    """The worst of all looks, with every reason once."""
    return Visibility(
        level=max((one.level for one in seen), key=_CLARITY.__getitem__),
        reasons=tuple(dict.fromkeys(reason for one in seen for reason in one.reasons)),
        unreadable_processes=max(one.unreadable_processes for one in seen),
    )
