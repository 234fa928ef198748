"""The class of one live holder: an ordered list of rules, the first that speaks wins (facts/gpu-and-linux 8.6 and 8.7)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from steps.contracts.cluster_facts import PodFacts
from steps.contracts.traced import Attribution, GpuClass
from steps.trace.activity import Window, Work
from steps.trace.holding import DEAD_STATES, Holding
from steps.trace.system_holders import may_be_system_holder

RUNTIME_S: Final = 2 + 10
DRIVER_S: Final = 5
GONE_SAMPLES: Final = 2
"""What is missing may only just have ended: the holder must have been seen in as many looks."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a holder's class depends on beside itself. sharers: how many different owners are on the device, None if one more may
    be. figures: SM ratio per PID, None if NVML gives none; a zero that is a server's client's is left out (MPS). figures_lost: this
    device has them, and they could not be read."""

    window: Window
    sharers: int | None
    figures: Mapping[int, float] | None
    figures_lost: bool
    samples: int
    now: datetime


@dataclass(frozen=True, slots=True)
class Judged:
    gpu_class: GpuClass
    reason: str


Rule = Callable[[Holding, Surroundings], Judged | None]


def deadline(pod: PodFacts) -> datetime | None:
    """Until when a terminating pod may still hold its GPU: its grace, 2 s, the runtime's 10 s, the driver's 5 s (facts 6)."""
    if pod.deletion_requested_at is None:
        return None
    return pod.deletion_requested_at + timedelta(seconds=pod.grace_s + RUNTIME_S + DRIVER_S)


def overdue(holding: Holding, now: datetime) -> bool:
    """Its pod is terminating and its deadline has passed."""
    until = None if holding.owner.pod is None else deadline(holding.owner.pod)
    return until is not None and now >= until


def judge_holder(holding: Holding, around: Surroundings) -> Judged:
    """The class of a live holder and the sentence with its evidence."""
    spoken = (rule(holding, around) for rule in ORDER)
    return next((judged for judged in spoken if judged is not None), _by_activity(holding, around))


def _in_grace(holding: Holding, around: Surroundings) -> Judged | None:
    until = None if holding.owner.pod is None else deadline(holding.owner.pod)
    if until is None or around.now >= until:
        return None
    return Judged(GpuClass.IN_GRACE, f"its pod is terminating and may take until {until:%H:%M:%S} UTC")


def _stuck(holding: Holding, around: Surroundings) -> Judged | None:
    if not holding.stuck:
        return None
    pending = ", SIGKILL pending" if holding.process.kill_pending else ""
    seen = f"{holding.samples_in_d} samples over {holding.in_d_s:.0f} s"
    return Judged(GpuClass.STUCK_D, f"in uninterruptible sleep in {seen}{pending}; kills do not reach it")


def _pod_gone(holding: Holding, around: Surroundings) -> Judged | None:
    owner = holding.owner
    if owner.gone is None or owner.one_list or (owner.once and _seen_once(holding, around)):
        return None
    return Judged(GpuClass.POD_GONE_LIVE, f"alive although {owner.gone}")


def _seen_once(holding: Holding, around: Surroundings) -> bool:
    return min(around.samples, holding.process.samples_in_state) < GONE_SAMPLES


def _may_be_a_service(holding: Holding, around: Surroundings) -> Judged | None:
    """What is on the allow-list is never accused, and is nobody's idle session either."""
    if holding.process.state in DEAD_STATES or not may_be_system_holder(holding.process, holding.owner):
        return None
    return Judged(GpuClass.UNKNOWN, "it may be one of the node's own services: what would tell is not readable")


def _zombie_threaded(holding: Holding, around: Surroundings) -> Judged | None:
    if holding.process.state != "Z":
        return None
    threads = sorted({hold.thread_id for hold in holding.holds if hold.thread_id is not None})
    if threads:
        return Judged(GpuClass.ZOMBIE_THREADED, f"its leader is dead, live threads hold the device: {', '.join(map(str, threads))}")
    return Judged(GpuClass.ZOMBIE_THREADED, f"its leader is dead, NVML lists it, and {holding.process.threads - 1} threads live on")


def _hidden(holding: Holding, around: Surroundings) -> Judged | None:
    if not holding.nvml_usable or holding.listed is not None:
        return None
    ways = ", ".join(sorted({f"{hold.device} by {hold.via.value}" for hold in holding.holds}))
    return Judged(GpuClass.HIDDEN_HOLDER, f"holds {ways}, and NVML does not list it")


def _orphan(holding: Holding, around: Surroundings) -> Judged | None:
    if holding.process.adopted.known() is not True:
        return None
    parent = f" (now below {holding.process.parent_executable})" if holding.process.parent_executable is not None else ""
    return Judged(GpuClass.ORPHAN_LIVE, f"what launched it died and it lives on{parent}")


ORDER: Final[tuple[Rule, ...]] = (_in_grace, _stuck, _may_be_a_service, _pod_gone, _zombie_threaded, _hidden, _orphan)


def _by_activity(holding: Holding, around: Surroundings) -> Judged:
    """8.7, once no fault was found. What cannot be attributed is neither idle nor active: it is unknown."""
    judged = _work_of(holding, around)
    claims = judged.gpu_class in (GpuClass.IDLE_HOLDER, GpuClass.ACTIVE, GpuClass.LOW_EFFICIENCY)
    if not claims:
        return judged
    owner = holding.owner
    if owner.gone is not None:
        need = "a second list lacks it" if owner.one_list else f"it was seen in {GONE_SAMPLES} samples"
        words = f"{owner.gone}; missing from one list is not yet gone: pending until {need}"
        return Judged(GpuClass.UNKNOWN, words)
    if owner.unasked:
        words = f"whether pod {owner.pod_uid} still exists is not known: neither API nor kubelet could be asked; {judged.reason}"
        return Judged(GpuClass.UNKNOWN, words)
    if not holding.nvml_usable:
        return Judged(
            GpuClass.UNKNOWN, f"NVML's process list is not usable, so who else is on the device is not known; {judged.reason}"
        )
    if owner.attribution in (Attribution.CONFLICT, Attribution.UNKNOWN):
        return Judged(GpuClass.UNKNOWN, f"{owner.reason}; {judged.reason}")
    return judged


def _work_of(holding: Holding, around: Surroundings) -> Judged:  # noqa: PLR0911 - one return a branch of 8.7
    window = around.window
    figure = None if around.figures is None else around.figures.get(holding.process.pid)
    shared = around.sharers is None or around.sharers > 1
    if figure is not None and figure > 0 and (shared or window.work in (Work.NONE, Work.UNKNOWN)):
        return Judged(GpuClass.ACTIVE, f"NVML measured {figure:.1%} SM activity of this process; device: {window.sentence}")
    if window.work is Work.UNKNOWN:
        return Judged(GpuClass.ACTIVITY_UNKNOWN, f"no activity figure to judge by: {window.sentence}")
    if window.work is Work.NONE and around.figures_lost:
        return Judged(GpuClass.ACTIVITY_UNKNOWN, f"the figures of single processes could not be read; device: {window.sentence}")
    if window.work is Work.NONE:
        return Judged(GpuClass.IDLE_HOLDER, f"no work: {window.sentence}")
    if shared and figure is None:
        who = (
            "who else was given the device is not known" if around.sharers is None else f"{around.sharers} owners share the device"
        )
        words = f"{who}, and there is no figure for this process; device: {window.sentence}"
        return Judged(GpuClass.ACTIVITY_UNKNOWN_SHARED, words)
    if shared:
        return Judged(GpuClass.IDLE_HOLDER, f"NVML measured no SM activity of this process; device: {window.sentence}")
    if window.work is Work.LOW:
        return Judged(GpuClass.LOW_EFFICIENCY, f"kernels run and few SMs work: {window.sentence}")
    return Judged(GpuClass.ACTIVE, f"work was measured: {window.sentence}")
