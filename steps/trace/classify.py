"""The headline of one GPU, and everything else found on it (facts/gpu-and-linux section 8, in its order).

Missing inputs make a verdict weaker, never stronger: what is not known is UNKNOWN, what was seen too briefly is pending.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from steps.contracts.cluster_facts import PodFacts
from steps.contracts.document import Sample
from steps.contracts.node_facts import GpuFacts, Health, NodeFacts, ProcessFacts, Scan, VisibilityLevel
from steps.contracts.traced import Finding, GpuClass
from steps.trace.activity import Window
from steps.trace.holder_class import Judged, Surroundings, judge_holder, overdue
from steps.trace.holding import STUCK_SAMPLES, STUCK_SPAN_S, Held, Holding, layout_mismatch
from steps.trace.memory import Level, Rest, judge_rest
from steps.trace.remedies import REMEDY

GHOST_SAMPLES: Final = 3
GHOST_SPAN_S: Final = 60.0
PHANTOM_SAMPLES: Final = 3
STALE_SAMPLES: Final = 2

GRAVITY: Final = (
    GpuClass.STUCK_D,
    GpuClass.POD_GONE_LIVE,
    GpuClass.ZOMBIE_THREADED,
    GpuClass.HIDDEN_HOLDER,
    GpuClass.ORPHAN_LIVE,
    GpuClass.IN_GRACE,
    GpuClass.UNKNOWN,
    GpuClass.ACTIVITY_UNKNOWN_SHARED,
    GpuClass.ACTIVITY_UNKNOWN,
    GpuClass.ACTIVE,
    GpuClass.LOW_EFFICIENCY,
    GpuClass.IDLE_HOLDER,
)
"""Of holders, gravest first (8.8). Among activity classes doubt and work come before idleness: one worker keeps the device."""


@dataclass(frozen=True, slots=True)
class GpuVerdict:
    """classes: of each holding, in its order."""

    headline: GpuClass
    reason: str
    remedy: str | None
    findings: tuple[Finding, ...]
    classes: tuple[Judged, ...]


@dataclass(frozen=True, slots=True)
class Ending:
    """Pods that are terminating and may still hold this GPU, and until when. known: they were given it, or left a zombie there;
    else they are GPU pods of this node, and who was given which device is not known."""

    pods: tuple[PodFacts, ...]
    until: datetime
    known: bool


@dataclass(frozen=True, slots=True)
class View:
    """One GPU with all that belongs to it."""

    gpu: GpuFacts
    facts: NodeFacts
    held: Held
    around: Surroundings
    ending: Ending | None = None

    @property
    def window(self) -> Window:
        return self.around.window

    @property
    def samples(self) -> int:
        return min(self.facts.samples, len(self.gpu.activity))


def explained_by(holdings: Sequence[Holding]) -> Sample[int]:
    """What the listed ones of these processes hold, in bytes. Unknown as soon as one figure is: a sum with a gap is a bound."""
    total = 0
    for holding in holdings:
        if holding.listed is None:
            continue
        memory = holding.memory.known()
        if memory is None:
            return Sample.absent(f"NVML gives no memory figure for PID {holding.process.pid}")
        total += memory
    return Sample.measured(total)


def classify(view: View) -> GpuVerdict:
    """Headline, reason, remedy and findings of one GPU or MIG instance."""
    blind = view.facts.visibility.level is VisibilityLevel.BLIND
    classes = tuple(_class_of(holding, view, blind=blind) for holding in view.held.holdings)
    headline, extra = _headline(view, classes)
    findings = [*extra, *_holder_findings(view, classes, headline.gpu_class), *_side_findings(view, headline.gpu_class)]
    return GpuVerdict(headline.gpu_class, headline.reason, REMEDY.get(headline.gpu_class), tuple(findings), classes)


def _class_of(holding: Holding, view: View, *, blind: bool) -> Judged:
    if blind:
        return Judged(GpuClass.UNKNOWN, "the reader does not see the host's processes")
    if holding.system and not holding.stuck:
        return Judged(GpuClass.SYSTEM_HOLDER, f"{holding.process.name} is on the allow-list of the node's own services")
    judged = judge_holder(holding, view.around)
    return judged if view.facts.scan is Scan.FULL else _of_quick_scan(judged, holding, view.around)


def _of_quick_scan(judged: Judged, holding: Holding, around: Surroundings) -> Judged:
    """What a quick scan cannot tell of a process that NVML lists: the state of its threads, and whether the work on the device is
    its own where nothing measured that, for an owner that was not looked for may share it."""
    own = None if around.figures is None else around.figures.get(holding.process.pid)
    at_work = judged.gpu_class in (GpuClass.ACTIVE, GpuClass.LOW_EFFICIENCY) and (own is None or own <= 0)
    if at_work or judged.gpu_class is GpuClass.ZOMBIE_THREADED:
        return Judged(GpuClass.UNKNOWN, f"undecided by a quick scan; it looks like {judged.gpu_class.value}: {judged.reason}")
    return judged


def _headline(view: View, classes: Sequence[Judged]) -> tuple[Judged, list[Finding]]:
    mismatch = layout_mismatch(view.gpu)
    if mismatch is not None:
        return Judged(GpuClass.ABI_MISMATCH, f"{mismatch}; no verdict rests on the process list"), []
    if view.gpu.health in (Health.LOST, Health.RESET_REQUIRED):
        return Judged(GpuClass.GPU_LOST, f"NVML says: {view.gpu.health_reason or view.gpu.health.value}"), []
    if view.facts.visibility.level is VisibilityLevel.BLIND:
        return Judged(GpuClass.BLIND, f"no verdict about holders: {_reasons(view.facts)}"), []
    tenants = [judged for judged in classes if judged.gpu_class is not GpuClass.SYSTEM_HOLDER]
    if tenants:
        gravest = min(tenants, key=lambda judged: GRAVITY.index(judged.gpu_class))
        return _as_seen(view, gravest), []
    headline, findings = _without_holder(view)
    return _as_seen(view, headline), findings


def _as_seen(view: View, seen: Judged) -> Judged:
    """What a full scan found stands. A quick one knows of no holder beyond NVML's list, and one that it did not look for may be
    graver: a process without memory of its own, a forked child, a zombie. So only the gravest class of all stands."""
    if view.facts.scan is Scan.FULL or seen.gpu_class in (GRAVITY[0], GpuClass.UNKNOWN):
        return seen
    words = (
        f"undecided by a quick scan, which looks for no holder beyond NVML's list; of those, {seen.gpu_class.value}: {seen.reason}"
    )
    return Judged(GpuClass.UNKNOWN, words)


def _reasons(facts: NodeFacts) -> str:
    return "; ".join(facts.visibility.reasons) or f"visibility is {facts.visibility.level.value}"


def _without_holder(view: View) -> tuple[Judged, list[Finding]]:
    """8.5: no holder but the node's own services."""
    rest = judge_rest(view.gpu.memory, view.gpu.memory.used_bytes, explained_by(view.held.holdings))
    if rest.level is Level.UNKNOWN:
        return Judged(GpuClass.UNKNOWN, rest.sentence), []
    if rest.level is Level.BASELINE:
        return _at_baseline(view, rest)
    if view.facts.visibility.level is VisibilityLevel.PARTIAL or view.facts.scan is Scan.QUICK:
        why = _reasons(view.facts) if view.facts.scan is Scan.FULL else "a quick scan looked for no holders"
        return Judged(GpuClass.UNKNOWN, f"{rest.sentence}; a holder may be hidden: {why}"), []
    if rest.level is Level.DRIFT:
        return Judged(GpuClass.BASELINE, f"no holder; {rest.sentence}"), [_finding(GpuClass.BASELINE, f"drift: {rest.sentence}")]
    return _would_be_ghost(view, rest), []


def _at_baseline(view: View, rest: Rest) -> tuple[Judged, list[Finding]]:
    explained = explained_by(view.held.holdings).known()
    above_alone = judge_rest(view.gpu.memory, view.gpu.memory.used_bytes, Sample.measured(0)).level is Level.ABOVE
    if explained is not None and explained > 0 and above_alone:
        return Judged(GpuClass.SYSTEM_HOLDER, f"the node's own services hold its memory; {rest.sentence}"), []
    if view.window.pinned and view.samples >= PHANTOM_SAMPLES:
        words = f"no holder and memory at baseline while {view.window.sentence}: a stuck counter, the GPU is free"
        return Judged(GpuClass.PHANTOM_UTIL, words), []
    pending = []
    if view.window.pinned:
        words = f"{view.window.sentence} without a holder; pending: a stuck counter needs {PHANTOM_SAMPLES} samples"
        pending = [_finding(GpuClass.UNKNOWN, words)]
    if view.held.zombies:
        return Judged(GpuClass.ZOMBIE_BENIGN, f"no holder; {rest.sentence}; {_zombie_words(view)}"), pending
    return Judged(GpuClass.BASELINE, f"no holder; {rest.sentence}"), pending


def _would_be_ghost(view: View, rest: Rest) -> Judged:
    """Memory without a holder is an accusation: every input must be known, and the state must have lasted."""
    gap = _gap(view)
    if gap is not None:
        return Judged(GpuClass.UNKNOWN, f"{rest.sentence}, but {gap}")
    if view.ending is not None:
        return _in_grace(view.ending, rest)
    above = _looks_above(view)
    lasted = above == len(view.gpu.activity) and view.samples >= GHOST_SAMPLES and view.facts.span_s >= GHOST_SPAN_S
    if not lasted:
        seen = f"{min(above, view.samples)} samples in {view.facts.span_s:.0f} s"
        need = f"pending: a ghost needs {GHOST_SAMPLES} samples over {GHOST_SPAN_S:.0f} s"
        return Judged(GpuClass.UNKNOWN, f"{rest.sentence}; seen too briefly ({seen}), {need}")
    return Judged(GpuClass.GHOST_CONTEXT, f"{rest.sentence}, in {view.samples} samples over {view.facts.span_s:.0f} s")


def _in_grace(ending: Ending, rest: Rest) -> Judged:
    """No leak before the deadline of the pod that may have left it (facts 6)."""
    uids = ", ".join(pod.uid for pod in ending.pods)
    words = f"{rest.sentence}; pod {uids} is terminating and may take until {ending.until:%H:%M:%S} UTC"
    if ending.known:
        return Judged(GpuClass.IN_GRACE, words)
    return Judged(GpuClass.UNKNOWN, f"{words}; pending: whether it was given this GPU is not known")


def _looks_above(view: View) -> int:
    """How many of the looks showed memory beyond the threshold."""
    explained = explained_by(view.held.holdings)
    levels = (judge_rest(view.gpu.memory, moment.used_bytes, explained).level for moment in view.gpu.activity)
    return sum(level is Level.ABOVE for level in levels)


def _gap(view: View) -> str | None:
    """The first input of a ghost verdict that is not known."""
    if view.held.listed is None:
        return f"NVML's process list is not known: {view.gpu.processes.reason or view.gpu.processes.state.value}"
    if view.gpu.memory.total_bytes.known() is None:
        return "the device's total memory is not known, so the process list cannot be tested against it"
    nameless = [entry.pid for entry in view.held.listed if entry.used_memory_bytes.known() is None]
    if nameless:
        return f"NVML gives no memory figure for PID {nameless[0]}"
    if any(moment.used_bytes.known() is None for moment in view.gpu.activity):
        return "used memory is not known in every sample"
    return None


def _finding(gpu_class: GpuClass, detail: str) -> Finding:
    return Finding(gpu_class=gpu_class, detail=detail, remedy=REMEDY.get(gpu_class))


def _holder_findings(view: View, classes: Sequence[Judged], headline: GpuClass) -> list[Finding]:
    """Other classes among the holders, and holders whose pod is past its deadline."""
    counted = Counter(judged.gpu_class for judged in classes)
    found = []
    for gpu_class in counted:
        if gpu_class in (headline, GpuClass.UNKNOWN) and headline is not GpuClass.ABI_MISMATCH:
            continue
        members = [(h, j) for h, j in zip(view.held.holdings, classes, strict=True) if j.gpu_class is gpu_class]
        pids = ", ".join(str(holding.process.pid) for holding, _ in members)
        found.append(_finding(gpu_class, f"PID {pids}: {members[0][1].reason}"))
    late = [(h, j) for h, j in zip(view.held.holdings, classes, strict=True) if overdue(h, view.around.now)]
    for holding, judged in late:
        words = f"termination overdue: PID {holding.process.pid} holds the device past its pod's deadline"
        found.append(_finding(judged.gpu_class, words))
    return found + [_brief_d(holding) for holding in view.held.holdings if holding.uninterruptible and not holding.stuck]


def _brief_d(holding: Holding) -> Finding:
    """Short D is normal; the holder keeps the class it has without it."""
    seen = f"{holding.samples_in_d} samples over {holding.in_d_s:.0f} s"
    need = f"{STUCK_SAMPLES} samples over {STUCK_SPAN_S:.0f} s"
    words = f"PID {holding.process.pid} is in uninterruptible sleep, seen too briefly ({seen}); pending: stuck needs {need}"
    return _finding(GpuClass.UNKNOWN, words)


def _side_findings(view: View, headline: GpuClass) -> list[Finding]:
    """Dead PIDs that NVML lists, and zombies of this GPU's pods."""
    found = []
    blind = view.facts.visibility.level is VisibilityLevel.BLIND
    if view.held.missing_pids and not blind:
        pids = ", ".join(str(entry.pid) for entry in view.held.missing_pids)
        if view.samples >= STALE_SAMPLES:
            found.append(_finding(GpuClass.STALE_NVML_PID, f"NVML lists PID {pids}, which /proc does not show"))
        else:
            words = f"NVML lists PID {pids}, which /proc does not show; pending: the two were read at different instants"
            found.append(_finding(GpuClass.UNKNOWN, words))
    if view.held.zombies and headline is not GpuClass.ZOMBIE_BENIGN and not blind:
        found.append(_finding(GpuClass.ZOMBIE_BENIGN, _zombie_words(view)))
    if view.held.clients and headline is GpuClass.GHOST_CONTEXT:
        found.append(_finding(GpuClass.UNKNOWN, _client_words(view.held.clients)))
    return found


def _client_words(clients: Sequence[ProcessFacts]) -> str:
    """A control node names no GPU, so it makes nobody a holder; a reset waits for every client all the same."""
    nodes = ", ".join(sorted({hold.device for process in clients for hold in process.holds}))
    pids = ", ".join(str(process.pid) for process in clients[:5]) + (", ..." if len(clients) > 5 else "")
    return f"PID {pids} has only {nodes} open, which name no GPU: whether it keeps this memory cannot be told, look at it first"


def _zombie_words(view: View) -> str:
    zombies = view.held.zombies
    owners = sorted({owner.reason for _, owner in zombies})
    pids = ", ".join(str(process.pid) for process, _ in zombies[:5]) + (", ..." if len(zombies) > 5 else "")
    parents = sorted({process.parent_executable or f"PID {process.parent_pid}" for process, _ in zombies})
    return f"{len(zombies)} zombies (PID {pids}) wait for {', '.join(parents[:3])} to reap them; {owners[0]}"
