"""What one look at its node says of the GPU memory of a pod that is no longer there. Pure; in the words of Release.

Weaker than verify, which looks again and again: without a full scan of a node that answered nothing is *returned*, and nothing is
*leaked* before the latest moment at which the pod may still have been ending. Release checks know more, and archive adds them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from steps.contracts.continuity import Departure
from steps.contracts.decision import SeenPod
from steps.contracts.document import Sample
from steps.contracts.node_facts import NodeFacts, Scan, VisibilityLevel
from steps.contracts.release import ReleaseVerdict
from steps.contracts.traced import Attribution, GpuClass, TracedGpu, TracedHolder, TracedNode
from steps.decide.looks import last_look
from steps.decide.wording import join_and, say_bytes

MARGIN_S: Final = 2 + 10 + 5
"""On top of the pod's own grace, as in verify (facts/gpu-and-linux 6)."""
GHOST_BYTES: Final = 256 * 1024**2
"""Memory beyond baseline and processes that is more than drift, as in trace (facts/gpu-and-linux 3.5)."""

GRAVITY: Final = (
    ReleaseVerdict.LEAKED,
    ReleaseVerdict.UNKNOWN,
    ReleaseVerdict.PENDING,
    ReleaseVerdict.TAKEN_OVER,
    ReleaseVerdict.RETURNED,
)
FINAL: Final = frozenset({ReleaseVerdict.LEAKED, ReleaseVerdict.TAKEN_OVER, ReleaseVerdict.RETURNED})
"""Answers after which a pod need not be remembered: what leaked is named by every later sweep as holder or ghost."""

UNREADABLE: Final = frozenset({GpuClass.ABI_MISMATCH, GpuClass.GPU_LOST, GpuClass.BLIND})
HOLD_NOTHING: Final = frozenset({GpuClass.ZOMBIE_BENIGN, GpuClass.STALE_NVML_PID})
STRANGERS: Final = frozenset({Attribution.UNKNOWN, Attribution.CONFLICT})


@dataclass(frozen=True, slots=True)
class Case:
    """A pod that is missing. missed_at: since when. tenants: uids of pods that shared a GPU with it when it was seen."""

    pod: SeenPod
    node: str
    departure: Departure
    missed_at: datetime
    tenants: frozenset[str]

    @property
    def deadline(self) -> datetime:
        """Until when it may still be ending, if it was deleted as late as it can have been."""
        return self.missed_at + timedelta(seconds=self.pod.grace_s + MARGIN_S)


NOT_READ: Final[Sample[int]] = Sample.absent("its node was not read")


@dataclass(frozen=True, slots=True)
class Found:
    """held_bytes: of the pod's own processes."""

    answer: ReleaseVerdict
    sentence: str
    gpu_class: GpuClass | None = None
    held_bytes: Sample[int] = NOT_READ
    pids: tuple[int, ...] = ()
    taken_over_by: str | None = None
    pending_until: datetime | None = None


def answer_on(case: Case, node: TracedNode | None, facts: NodeFacts | None) -> Found:
    """The answer by this sweep's facts of its node. None, or a node with a problem: unknown."""
    gap = _gap(case, node, facts)
    if gap is not None or node is None or facts is None:
        return Found(ReleaseVerdict.UNKNOWN, gap or "its node was not read")
    own = [(gpu, holder) for gpu in node.gpus for holder in gpu.holders if _is_own(holder, case.pod)]
    doubt = _doubt(facts)
    held = _held_bytes([holder for _, holder in own], doubt)
    pids = tuple(sorted({holder.pid for _, holder in own}))
    if doubt is not None:
        seen = f"; of its processes it still sees PID {', '.join(map(str, pids))}" if pids else ""
        return Found(ReleaseVerdict.UNKNOWN, f"{doubt}{seen}", held_bytes=held, pids=pids)
    found = _still_held(case, own, facts) if own else _by_memory(case, node.gpus, facts)
    return replace(found, held_bytes=held, pids=pids)


def _gap(case: Case, node: TracedNode | None, facts: NodeFacts | None) -> str | None:
    if case.departure is Departure.OUT_OF_SIGHT:
        return f"node {case.node} is not among those that were looked at, so whether the pod lives is not known"
    if node is None or facts is None:
        why = "was not looked at" if node is None or node.problem is None else f"has nothing to say: {node.problem}"
        return f"node {case.node} {why}"
    return None if node.problem is None else f"node {case.node} has nothing to say: {node.problem}"


def _doubt(facts: NodeFacts) -> str | None:
    if facts.scan is Scan.QUICK:
        return "a quick scan looks for no holder beyond NVML's list"
    if facts.visibility.level is VisibilityLevel.BLIND:
        return f"the reader does not see the host's processes: {'; '.join(facts.visibility.reasons) or 'no reason given'}"
    return None


def _is_own(holder: TracedHolder, pod: SeenPod) -> bool:
    return holder.pod_uid is not None and holder.gpu_class not in HOLD_NOTHING and _canonical(holder.pod_uid) == _canonical(pod.uid)


def _canonical(uid: str) -> str:
    """The cgroups of some drivers write `_` for `-`."""
    return uid.replace("_", "-").lower()


def _held_bytes(own: Sequence[TracedHolder], doubt: str | None) -> Sample[int]:
    total = 0
    for holder in own:
        amount = holder.gpu_memory_bytes.known()
        if amount is None:
            return Sample.absent(f"NVML gives no memory figure for PID {holder.pid}")
        total += amount
    return Sample.measured(total) if doubt is None else Sample.absent(doubt)


def _still_held(case: Case, own: Sequence[tuple[TracedGpu, TracedHolder]], facts: NodeFacts) -> Found:
    words = join_and([f"PID {holder.pid} ({holder.gpu_class.value}) still holds GPU {gpu.index}" for gpu, holder in own])
    gpu_class = own[0][1].gpu_class
    if (why := _is_over(case, facts)) is None:
        words = f"{words}; it may be ending until {case.deadline:%H:%M:%S} UTC"
        return Found(ReleaseVerdict.PENDING, words, gpu_class, pending_until=case.deadline)
    return Found(ReleaseVerdict.LEAKED, f"{words}; {why}", gpu_class)


def _is_over(case: Case, facts: NodeFacts) -> str | None:
    """Why the pod is past its end; None if it may still be ending."""
    kept = next((one.kept for one in facts.pods_on_disk.known() or () if _canonical(one.uid) == _canonical(case.pod.uid)), None)
    if kept is False:
        return "the kubelet has finished with the pod"
    return f"termination overdue: the deadline was {case.deadline:%H:%M:%S} UTC" if last_look(facts) >= case.deadline else None


def _by_memory(case: Case, gpus: Sequence[TracedGpu], facts: NodeFacts) -> Found:
    """None of its processes is left: do its devices say so as well? Where they are not known, every GPU of the node is asked."""
    names = case.pod.devices or tuple(_given(case.pod, gpus))
    if not gpus:
        return Found(ReleaseVerdict.UNKNOWN, f"NVML lists no GPU on {case.node}")
    listed = {gpu.uuid: gpu for gpu in gpus}
    found = [_device(case, name, listed.get(name), facts) for name in names or tuple(listed)]
    worst = min(found, key=lambda one: GRAVITY.index(one.answer))
    if names:
        return worst
    before = "which GPU it had is not known; "
    if worst.answer in (ReleaseVerdict.LEAKED, ReleaseVerdict.PENDING):
        return Found(ReleaseVerdict.UNKNOWN, f"{before}what is left on one of this node may have been its: {worst.sentence}")
    if worst.answer is ReleaseVerdict.UNKNOWN:
        return replace(worst, sentence=before + worst.sentence)
    return Found(ReleaseVerdict.RETURNED, f"{before}nothing of it is left on any GPU of {case.node}")


def _given(pod: SeenPod, gpus: Iterable[TracedGpu]) -> Iterator[str]:
    """GPUs that the kubelet still has down as the pod's, as it does until the next allocation."""
    for gpu in gpus:
        if any(_canonical(one.pod_uid) == _canonical(pod.uid) for one in gpu.allocated_to.known() or ()):
            yield gpu.uuid


def _device(case: Case, name: str, gpu: TracedGpu | None, facts: NodeFacts) -> Found:
    if gpu is None:
        return Found(ReleaseVerdict.UNKNOWN, f"NVML does not list {name} any more")
    where = f"GPU {gpu.index}"
    if gpu.headline in UNREADABLE:
        return Found(ReleaseVerdict.UNKNOWN, f"{where} is {gpu.headline.value}: {gpu.reason}", gpu.headline)
    strangers = sorted({holder.pid for holder in gpu.holders if holder.attribution in STRANGERS})
    if strangers:
        return Found(ReleaseVerdict.UNKNOWN, f"PID {', '.join(map(str, strangers))} holds {where} and cannot be attributed")
    tenants = [holder for holder in gpu.holders if holder.gpu_class is not GpuClass.SYSTEM_HOLDER]
    return _shared(case, gpu, tenants, where) if tenants else _empty(case, gpu, facts, where)


def _shared(case: Case, gpu: TracedGpu, tenants: Sequence[TracedHolder], where: str) -> Found:
    """Others are on it: they must explain what is used."""
    rest = gpu.unexplained_bytes.known()
    if rest is None:
        return Found(ReleaseVerdict.UNKNOWN, f"what others leave unexplained on {where} is unknown: {gpu.unexplained_bytes.reason}")
    if rest > GHOST_BYTES:
        words = f"{say_bytes(rest)} on {where} are explained by none of its processes, and may have been the pod's"
        return Found(ReleaseVerdict.UNKNOWN, words)
    return _free(case, gpu, tenants, where)


def _empty(case: Case, gpu: TracedGpu, facts: NodeFacts, where: str) -> Found:
    """Nobody but the node's own services is on it: the headline says what its memory means."""
    if gpu.headline is GpuClass.GHOST_CONTEXT:
        words = f"{where}: {gpu.reason}"
        if (why := _is_over(case, facts)) is None:
            words = f"{words}; the pod may be ending until {case.deadline:%H:%M:%S} UTC"
            return Found(ReleaseVerdict.PENDING, words, gpu.headline, pending_until=case.deadline)
        return Found(ReleaseVerdict.LEAKED, f"{words}; {why}", gpu.headline)
    if gpu.headline not in (GpuClass.BASELINE, GpuClass.PHANTOM_UTIL, GpuClass.SYSTEM_HOLDER, GpuClass.ZOMBIE_BENIGN):
        return Found(ReleaseVerdict.UNKNOWN, f"{where} is {gpu.headline.value}: {gpu.reason}", gpu.headline)
    return _free(case, gpu, (), where)


def _free(case: Case, gpu: TracedGpu, tenants: Sequence[TracedHolder], where: str) -> Found:
    taker = next(_takers(case, gpu, tenants), None)
    if taker is not None:
        return Found(ReleaseVerdict.TAKEN_OVER, f"pod {taker} has {where}, and nothing of this one is left", taken_over_by=taker)
    return Found(ReleaseVerdict.RETURNED, f"nothing of it is left on {where}")


def _takers(case: Case, gpu: TracedGpu, tenants: Sequence[TracedHolder]) -> Iterator[str]:
    """New tenants: with memory on it, or given it and alive. Descriptors alone make none."""
    known = case.tenants | {case.pod.uid}
    holding = [holder.pod_uid for holder in tenants if holder.known_to_nvml]
    given = [one.pod_uid for one in gpu.allocated_to.known() or () if one.lives is True]
    yield from (uid for uid in (*holding, *given) if uid is not None and uid not in known)
