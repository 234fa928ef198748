"""Whether one GPU worked, by one node's traced facts: yes, no, or not known and why.

Signs of life speak before gaps. Zero counts as no work only where it was measured; a counter that the hardware lacks
(*not applicable*) may be missing, one that merely could not be read may not (facts/gpu-and-linux 3.6, 8).
"""

import enum
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from steps.contracts.document import Sample, State
from steps.contracts.traced import GpuClass, TracedGpu, TracedHolder
from steps.decide.wording import say_ratio, say_unknown


class Sign(enum.Enum):
    LIFE = "life"
    NONE = "none"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Reading:
    """One thing read about a session. words: a clause for a person, without the name of the thing read.

    remark: what a person should know although it changes nothing (a stuck counter)."""

    sign: Sign
    words: str
    state: State
    taken_at: datetime | None = None
    remark: str | None = None


UNREADABLE: Final = frozenset(
    {
        GpuClass.GPU_LOST,
        GpuClass.BLIND,
        GpuClass.ABI_MISMATCH,
        GpuClass.UNKNOWN,
        GpuClass.ACTIVITY_UNKNOWN,
        GpuClass.ACTIVITY_UNKNOWN_SHARED,
    }
)
"""Headlines under which silence proves nothing."""

AT_WORK: Final = frozenset({GpuClass.ACTIVE, GpuClass.LOW_EFFICIENCY})
"""Few busy SMs are work as well: the owner is told, nothing is stopped."""

NO_CONTEXT: Final = frozenset({GpuClass.SYSTEM_HOLDER, GpuClass.ZOMBIE_BENIGN, GpuClass.STALE_NVML_PID})
"""Holders that cannot be the ones who compute."""


def read_gpu(gpu: TracedGpu, pod_uid: str) -> Reading:
    """Whether this GPU worked for this pod. SM activity is work by itself; utilisation only together with a live holder,
    because a latched counter reads 100 % for days on an empty GPU (lium-io#1142)."""
    busy = _busy_words(gpu)
    if busy is not None:
        return _attributed(gpu, pod_uid, busy)
    if gpu.headline in UNREADABLE:
        return _reading(gpu, Sign.UNKNOWN, f"is {gpu.headline.value}: {gpu.reason}", State.ERROR)
    if gap := _gap(gpu):
        return gap
    if _positive(gpu.utilisation_ratio) is None:
        return _reading(gpu, Sign.NONE, "did nothing", State.MEASURED)
    return _phantom(gpu)


def is_shared(gpu: TracedGpu) -> bool:
    """Whether several pods were given this GPU, by time-slicing or MPS."""
    given = gpu.allocated_to.known()
    return given is not None and len({allocation.pod_uid for allocation in given}) > 1


def _busy_words(gpu: TracedGpu) -> str | None:
    sm, utilisation = _positive(gpu.sm_active_ratio), _positive(gpu.utilisation_ratio)
    if sm is not None:
        return f"{say_ratio(sm)} of its SMs active"
    if utilisation is not None and any(_is_live(holder) for holder in gpu.holders):
        return f"{say_ratio(utilisation)} utilisation with a live process"
    return f"{gpu.headline.value}: {gpu.reason}" if gpu.headline in AT_WORK else None


def _attributed(gpu: TracedGpu, pod_uid: str, busy: str) -> Reading:
    """The work is this pod's, unless the GPU is shared: then only a process of the pod that is itself at work shows that."""
    own = any(holder.pod_uid == pod_uid and holder.gpu_class in AT_WORK for holder in gpu.holders)
    if own or not is_shared(gpu):
        return _reading(gpu, Sign.LIFE, busy, State.MEASURED)
    words = f"is shared by several pods ({busy}), and no figure says which of them worked"
    return _reading(gpu, Sign.UNKNOWN, words, State.ABSENT)


def _gap(gpu: TracedGpu) -> Reading | None:
    counters = (("utilisation", gpu.utilisation_ratio), ("SM activity", gpu.sm_active_ratio))
    for name, sample in counters:
        if sample.known() is None and sample.state is not State.NOT_APPLICABLE:
            return _reading(gpu, Sign.UNKNOWN, f"{name} is unknown ({say_unknown(sample)})", sample.state)
    if all(sample.known() is None for _, sample in counters):
        return _reading(gpu, Sign.UNKNOWN, "has no activity counter that applies", State.NOT_APPLICABLE)
    return None


def _phantom(gpu: TracedGpu) -> Reading:
    utilisation = gpu.utilisation_ratio.known()
    reads = f"reads {say_ratio(utilisation)} utilisation" if utilisation is not None else "reads some utilisation"
    if GpuClass.PHANTOM_UTIL in {gpu.headline, *(finding.gpu_class for finding in gpu.findings)}:
        remark = f"{reads}, but its memory is empty and no process holds it: a stuck counter, not work"
        return _reading(gpu, Sign.NONE, "did nothing", State.MEASURED, remark)
    words = f"{reads} without a process that holds it; too few looks to call it a stuck counter"
    return _reading(gpu, Sign.UNKNOWN, words, State.ABSENT)


def _is_live(holder: TracedHolder) -> bool:
    return holder.gpu_class not in NO_CONTEXT


def _positive(sample: Sample[float]) -> float | None:
    """The ratio if it was measured and is above zero."""
    ratio = sample.known()
    return ratio if ratio is not None and ratio > 0 else None


def _reading(gpu: TracedGpu, sign: Sign, words: str, state: State, remark: str | None = None) -> Reading:
    times = [s.taken_at for s in (gpu.utilisation_ratio, gpu.sm_active_ratio) if s.taken_at is not None]
    return Reading(sign, words, state, max(times, default=None), remark)
