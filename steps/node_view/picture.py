"""One picture of a node for a person: the facts, what they mean, and whether anything is wrong."""

from datetime import datetime
from typing import Final, Literal

from steps.contracts.cluster_facts import PodFacts
from steps.contracts.document import Document
from steps.contracts.errors import Exit
from steps.contracts.node_facts import NodeFacts, VisibilityLevel
from steps.contracts.traced import GpuClass, TracedGpu, TracedNode
from steps.node_view.words import MIB, mib, printable
from steps.trace.classify import GHOST_SAMPLES, GHOST_SPAN_S
from steps.trace.memory import GHOST_BYTES
from steps.trace.node import trace_node

PROBLEMS: Final = (
    GpuClass.STUCK_D,
    GpuClass.POD_GONE_LIVE,
    GpuClass.ZOMBIE_THREADED,
    GpuClass.HIDDEN_HOLDER,
    GpuClass.ORPHAN_LIVE,
    GpuClass.GHOST_CONTEXT,
    GpuClass.STALE_NVML_PID,
    GpuClass.GPU_LOST,
)
"""Classes that somebody must look at: memory or a device is held by nobody who should."""
MAX_REMEMBERED: Final = 3
UNJUDGED: Final = (GpuClass.BLIND, GpuClass.ABI_MISMATCH, GpuClass.UNKNOWN)
"""Headlines that are no answer."""
BESIDE_HOLDERS: Final = "a process of this GPU may hold more than NVML says of it"


class Answer(Document, frozen=True, kw_only=True):
    """exit: DONE nothing wrong, FOUND_PROBLEMS, COULD_NOT. sentences: what a person reads last."""

    exit: int
    sentences: tuple[str, ...]


class NodePicture(Document, frozen=True, kw_only=True):
    """names_from: where names of pods come from, and what could not be asked."""

    document: Literal["NodePicture/1"] = "NodePicture/1"
    names_from: str
    facts: NodeFacts
    traced: TracedNode
    answer: Answer


def picture_of(facts: NodeFacts, pods: tuple[PodFacts, ...] | None, *, now: datetime, lists: int = 1) -> NodePicture:
    """The join, judged for a person. pods: of the API server, from so many `lists`; None: it was not asked."""
    traced = trace_node(facts, pods, now=now, lists=lists)
    return NodePicture(
        names_from=names_from(facts, asked=pods is not None), facts=facts, traced=traced, answer=answer_of(facts, traced)
    )


def names_from(facts: NodeFacts, *, asked: bool) -> str:
    """The source of pod names, in words."""
    folders = facts.pods_on_disk
    there = folders.known() is not None
    if asked:
        return "the API server" + (f", and for pods it forgot the kubelet's folders ({folders.source})" if there else "")
    if there:
        return f"the kubelet's folders ({folders.source}); the API server was not asked"
    return f"cgroups alone: the API server was not asked, and {folders.reason}"


def answer_of(facts: NodeFacts, traced: TracedNode) -> Answer:
    """Found problems outweigh what could not be judged; only a whole and clean picture is DONE."""
    could_not = [] if traced.problem is None else [f"{traced.problem}; holders are told by their devices alone"]
    could_not += [_unjudged(gpu, facts) for gpu in traced.gpus if gpu.headline in UNJUDGED]
    problems = [gpu for gpu in traced.gpus if problems_on(gpu)]
    sentences = [f"could not: {words}" for words in could_not]
    if problems:
        named = "; ".join(f"GPU {gpu.index}: {', '.join(one.value for one in problems_on(gpu))}" for gpu in problems)
        sentences.append(f"problems found: {named}")
        return _answer(Exit.FOUND_PROBLEMS, sentences)
    if could_not:
        return _answer(Exit.COULD_NOT, sentences)
    return _answer(Exit.DONE, ["nothing wrong was found" + _as_far_as(facts)])


def _unjudged(gpu: TracedGpu, facts: NodeFacts) -> str:
    """With what helps, where it is only time that is missing."""
    short = facts.samples < GHOST_SAMPLES or facts.span_s < GHOST_SPAN_S
    rest = gpu.unexplained_bytes.known()
    pending = gpu.headline is GpuClass.UNKNOWN and short and rest is not None and rest > GHOST_BYTES
    longer = "; look longer: --samples 4 --interval-s 21" if pending else ""
    return f"GPU {gpu.index} cannot be judged: {gpu.headline.value}{longer}"


def _answer(code: Exit, sentences: list[str]) -> Answer:
    return Answer(exit=int(code), sentences=tuple(printable(one) for one in sentences))


def _as_far_as(facts: NodeFacts) -> str:
    if facts.visibility.level is VisibilityLevel.FULL:
        return ""
    return f", as far as could be seen: {'; '.join(facts.visibility.reasons)}"


def problems_on(gpu: TracedGpu) -> tuple[GpuClass, ...]:
    """The problem classes on one GPU, headline first, each once."""
    found = (gpu.headline, *(finding.gpu_class for finding in gpu.findings), *(holder.gpu_class for holder in gpu.holders))
    return tuple(dict.fromkeys(one for one in found if one in PROBLEMS))


def ghost_warning(gpu: TracedGpu, facts: NodeFacts, *, why: str = "see what is said of it above") -> str | None:
    """A sentence where memory beyond the ghost threshold belongs to nobody, pending ones included, with what accounting knows.

    Beside live holders as well, if NVML lists each of them: then none has memory that is not accounted for. why: of a doubt.
    """
    rest = gpu.unexplained_bytes.known()
    if rest is None or rest <= GHOST_BYTES or gpu.headline in (GpuClass.BLIND, GpuClass.ABI_MISMATCH, GpuClass.GPU_LOST):
        return None
    alone = gpu.headline in (GpuClass.GHOST_CONTEXT, GpuClass.UNKNOWN)
    if not alone and not (gpu.holders and all(holder.known_to_nvml is True for holder in gpu.holders)):
        return None
    sure = "" if gpu.headline is GpuClass.GHOST_CONTEXT else f", which is not certain: {why if alone else BESIDE_HOLDERS}"
    return f"GPU {gpu.index}: {rest / MIB:.0f} MiB are held although no process explains them{sure}{_remembered(gpu, facts)}"


def _remembered(gpu: TracedGpu, facts: NodeFacts) -> str:
    """The dead that NVML's accounting still knows: one of them may have left it."""
    known = facts.gpus.known()
    dead = [one for each in (() if known is None else known) if each.uuid == gpu.uuid for one in each.accounted.known() or ()]
    named = [f"PID {one.pid} ({mib(one.peak_memory_bytes)} at most)" for one in dead[:MAX_REMEMBERED]]
    return f"; accounting remembers of processes that ended: {', '.join(named)}" if named else ""
