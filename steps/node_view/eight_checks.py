"""The eight checks of `gpu-reclaim observe`, made of one look at processes and GPUs, inside a container or on a node. Pure.

A check that cannot be made from here says so and is never an empty answer: inside a container NVML's list and the other
containers' processes are out of sight (facts/gpu-and-linux 3.4).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from steps.contracts.document import Sample
from steps.contracts.errors import Exit
from steps.contracts.node_facts import HoldVia, NodeFacts, ProcessFacts, VisibilityLevel
from steps.contracts.ports import ProcessTree
from steps.contracts.traced import GpuClass, TracedNode
from steps.node_view.observation import Check, Observation, Outcome, Suspect
from steps.node_view.picture import Answer, ghost_warning
from steps.node_view.process_tree import tree_lines
from steps.node_view.reaping import on_term, reaping_of, who_reaps
from steps.node_view.words import mib, printable, why

DEAD: Final = "ZXx"
MAX_LINES: Final = 40
"""Of one check; the document has all."""


@dataclass(frozen=True)
class Seen:
    """What all checks look at."""

    facts: NodeFacts
    tree: ProcessTree
    traced: TracedNode

    @property
    def blind(self) -> bool:
        return self.tree.visibility.level is VisibilityLevel.BLIND

    @property
    def whole(self) -> bool:
        """Every process's devices could be read, so that nobody else holds one."""
        return self.facts.visibility.level is VisibilityLevel.FULL

    @property
    def zombies(self) -> list[ProcessFacts]:
        return [one for one in self.tree.processes if one.state in DEAD]

    @property
    def zombies_that_matter(self) -> list[ProcessFacts]:
        return self.zombies if self.blind else [one for one in self.facts.processes if one.state in DEAD]

    @property
    def holders(self) -> list[ProcessFacts]:
        return [one for one in self.facts.processes if any(names_a_gpu(hold.device) for hold in one.holds)]


def names_a_gpu(device: str) -> bool:
    """`nvidia0`; nvidiactl and nvidia-uvm alone name none (facts 4.3)."""
    return device.removeprefix("nvidia").isdecimal()


def observe(facts: NodeFacts, tree: ProcessTree, traced: TracedNode) -> Observation:
    """All eight checks, in their order, and what follows from them together."""
    seen = Seen(facts, tree, traced)
    suspects = tuple(_suspects(seen))
    checks = (
        _pid_1(seen),
        _tree(seen, suspects),
        _zombies(seen),
        _orphans(seen),
        _memory(seen),
        _compute(seen),
        _devices(seen),
        _combined(suspects, seen),
    )
    place = "a container: only its own processes are visible" if seen.blind else "the node: all processes are visible"
    return Observation(place=place, checks=checks, suspects=suspects, answer=_answer(checks), tree=tree, facts=facts)


def _check(number: int, title: str, outcome: Outcome, *lines: str) -> Check:
    return Check(number=number, title=title, outcome=outcome, lines=tuple(printable(line) for line in lines))


def _pid_1(seen: Seen) -> Check:
    title = "PID 1 command line"
    pid1 = next((one for one in seen.tree.processes if one.pid == 1), None)
    if pid1 is None:
        return _check(1, title, Outcome.NOT_SEEN, "PID 1 is not visible here")
    command = pid1.command.known()
    shown = f"[{pid1.name}]" if command is None else command
    reaps, words = reaping_of(pid1, seen.tree.pid1)
    outcome = Outcome.NOT_SEEN if reaps is None else Outcome.FINE
    return _check(1, title, outcome, shown, words, on_term(seen.tree.pid1))


def _tree(seen: Seen, suspects: Sequence[Suspect]) -> Check:
    """The whole tree of a container; of a node the branches that lead to a suspect."""
    wanted = None if seen.blind else {one.pid for one in suspects}
    lines = tree_lines(seen.tree.processes, wanted)
    shown = lines[:MAX_LINES]
    if len(lines) > MAX_LINES:
        shown.append(f"... {len(lines) - MAX_LINES} more lines; `-o json` has all")
    note = [] if wanted is None else [f"{seen.tree.total} processes; the branches that lead to a GPU or a zombie:"]
    return _check(2, "process tree", Outcome.FINE, *note, *(shown or ["none"]))


def _zombies(seen: Seen) -> Check:
    """In a container all of them; on a node those of pods with a GPU, because a host always has some for a moment."""
    ours = seen.zombies_that_matter
    lines = [f"PID {one.pid} ({one.name}): {who_reaps(one, seen.tree.processes)}" for one in ours]
    more = [f"... {len(lines) - MAX_LINES} more"] if len(lines) > MAX_LINES else []
    others = len({one.pid for one in seen.zombies} - {one.pid for one in ours})
    note = [f"{others} more on this node, which hold nothing and are of no pod with a GPU"] if others else []
    return _check(3, "zombies", Outcome.PROBLEM if lines else Outcome.FINE, *(lines[:MAX_LINES] or ["none"]), *more, *note)


def _orphans(seen: Seen) -> Check:
    """Whose launcher surely died; children of PID 1 look the same whether original or adopted, and are said apart."""
    among = seen.tree.processes if seen.blind else tuple(seen.holders)
    living = [one for one in among if one.state not in DEAD and one.pid != 1]
    sure = [one for one in living if one.adopted.known() is True]
    unsure = [one for one in living if one.adopted.known() is None and one.parent_pid == 1]
    lines = [f"PID {one.pid} ({one.name}), now below PID {one.parent_pid}: {one.adopted.reason}" for one in sure]
    if unsure:
        named = ", ".join(str(one.pid) for one in unsure[:MAX_LINES])
        lines.append(f"children of PID 1 that may be orphans or original, nothing tells which: PID {named}")
    where = [] if seen.blind else ["of the processes that hold a GPU:"]
    whole = seen.blind or seen.whole  # of a container all processes are asked, whatever they hold
    outcome = Outcome.PROBLEM if sure else Outcome.NOT_SEEN if unsure or not whole else Outcome.FINE
    return _check(4, "orphans", outcome, *where, *(lines or ["none"]))


def _memory(seen: Seen) -> Check:
    title = "GPU memory"
    gpus = seen.facts.gpus.known()
    if gpus is None:
        return _check(5, title, Outcome.NOT_SEEN, f"NVML cannot be asked: {why(seen.facts.gpus)}")
    lines = [f"GPU {gpu.index}: {mib(gpu.memory.used_bytes)} of {mib(gpu.memory.total_bytes)} used" for gpu in gpus]
    told = [(gpu, words) for gpu in seen.traced.gpus if (words := ghost_warning(gpu, seen.facts, why=gpu.reason)) is not None]
    sure = any(gpu.headline is GpuClass.GHOST_CONTEXT for gpu, _ in told)
    if seen.blind:
        lines.append("whose memory it is cannot be seen from here: NVML shows the whole device, /proc only this container")
    unknown = any(gpu.memory.used_bytes.known() is None for gpu in gpus)
    outcome = Outcome.PROBLEM if sure else Outcome.NOT_SEEN if unknown or told else Outcome.FINE
    return _check(5, title, outcome, *(words for _, words in told), *(lines or ["NVML lists no GPU"]))


def _compute(seen: Seen) -> Check:
    title = "compute processes"
    gpus = seen.facts.gpus.known()
    if gpus is None:
        return _check(6, title, Outcome.NOT_SEEN, f"NVML cannot be asked: {why(seen.facts.gpus)}")
    lines, gaps = [], 0
    for gpu in gpus:
        listed = gpu.processes.known()
        if listed is None:
            gaps += 1
            lines.append(f"GPU {gpu.index}: unknown: {why(gpu.processes)}")
            continue
        lines += [f"GPU {gpu.index}: PID {one.pid}, {mib(one.used_memory_bytes)}" for one in listed]
    if seen.blind:
        lines.append("BLIND: an empty list proves nothing in a container; a PID in it may be the node's, not one of these")
    return _check(6, title, Outcome.NOT_SEEN if gaps or seen.blind else Outcome.FINE, *(lines or ["none"]))


def _devices(seen: Seen) -> Check:
    lines = [f"PID {one.pid} ({one.name}): {_ways(one)}" for one in seen.holders]
    hidden = [] if seen.whole else list(seen.facts.visibility.reasons)
    if seen.blind:
        hidden.insert(0, "BLIND: holders outside this container are not seen")
    return _check(7, "device holders", Outcome.NOT_SEEN if hidden else Outcome.FINE, *(lines or ["none"]), *dict.fromkeys(hidden))


def _ways(process: ProcessFacts) -> str:
    return ", ".join(f"{hold.device} by {_way(hold.via, hold.thread_id)}" for hold in process.holds)


def _way(via: HoldVia, thread: int | None) -> str:
    return f"live thread {thread}" if via is HoldVia.THREAD else via.value


def _suspects(seen: Seen) -> Iterator[Suspect]:
    """Holders, zombies, and what NVML lists."""
    here = {one.pid: one for one in (*seen.tree.processes, *seen.facts.processes)}
    holders = {one.pid: one for one in seen.holders}
    listed = _listed(seen.facts)
    zombies = {one.pid for one in seen.zombies_that_matter}
    for pid in sorted({*holders, *zombies, *(listed or ())}):
        process = holders.get(pid) or here.get(pid)
        in_nvml = _in_nvml(pid, listed, seen)
        holds = _holds(pid, holders, seen)
        alive = process is not None and (process.state not in DEAD or pid in holders)
        words, problem = _verdict(process, in_nvml, pid in holders, seen)
        yield Suspect(
            pid=pid,
            name="unknown" if process is None else printable(process.name),
            state=None if process is None else process.state,
            alive=alive,
            in_nvml=in_nvml,
            holds_device=holds,
            verdict=printable(words),
            problem=problem,
        )


def _listed(facts: NodeFacts) -> set[int] | None:
    gpus = facts.gpus.known()
    if gpus is None or any(gpu.processes.known() is None for gpu in gpus):
        return None
    return {one.pid for gpu in gpus for one in gpu.processes.known() or ()}


def _in_nvml(pid: int, listed: set[int] | None, seen: Seen) -> Sample[bool]:
    if listed is None:
        return Sample.absent("NVML's list is not known")
    if seen.blind:
        return Sample.absent("in a container NVML's PIDs may be the node's, and its list is not whole")
    return Sample.measured(pid in listed)


def _holds(pid: int, holders: dict[int, ProcessFacts], seen: Seen) -> Sample[bool]:
    if pid in holders:
        return Sample.measured(True)
    if seen.facts.visibility.level is VisibilityLevel.PARTIAL:
        return Sample.absent("descriptors of some processes could not be read")
    return Sample.measured(False)


def _verdict(process: ProcessFacts | None, in_nvml: Sample[bool], holds: bool, seen: Seen) -> tuple[str, bool]:  # noqa: PLR0911 - a row of the table each
    if process is None:
        if seen.blind:
            return "NVML lists it; it is no process of this container, or its number here is another", False
        return "NVML lists it and /proc does not show it: it ended just now, or the driver kept a dead client", False
    if process.state in DEAD and holds:
        threads = ", ".join(str(hold.thread_id) for hold in process.holds if hold.thread_id is not None)
        return f"dead leader, live thread {threads} holds the device: SIGKILL to PID {process.pid} still takes it", True
    if process.state in DEAD:
        return f"zombie: holds no GPU memory, uses up a PID; {who_reaps(process, seen.tree.processes)}", True
    known = in_nvml.known()
    if holds and known is False:
        return "HIDDEN: holds the device, and NVML does not list it", True
    if holds and known is None:
        return "alive and holds the device; whether NVML lists it cannot be told from here", False
    if holds:
        return "alive, holds the device, NVML lists it", False
    return "alive and listed by NVML; no descriptor or mapping of a device was found", False


def _combined(suspects: Sequence[Suspect], seen: Seen) -> Check:
    lines = [
        f"PID {one.pid} ({one.name}): in NVML {_yes_no(one.in_nvml)}, holds a device {_yes_no(one.holds_device)}, "
        f"{'alive' if one.alive else 'not alive'}. {one.verdict}"
        for one in suspects[:MAX_LINES]
    ]
    gap = seen.blind or not seen.whole or _listed(seen.facts) is None
    if not lines:
        far = ", as far as this container can see" if seen.blind else ", as far as could be seen: checks 6 and 7 say what was not"
        lines = ["nobody here holds a GPU" + (far if gap else "")]
    outcome = Outcome.PROBLEM if any(one.problem for one in suspects) else Outcome.NOT_SEEN if gap else Outcome.FINE
    return _check(8, "combined verdict", outcome, *lines)


def _yes_no(sample: Sample[bool]) -> str:
    known = sample.known()
    return "unknown" if known is None else "yes" if known else "no"


def _answer(checks: Sequence[Check]) -> Answer:
    """What a container cannot see does not make it fail: it says so. No GPU reading at all does."""
    problems = [f"check {one.number}, {one.title}" for one in checks if one.outcome is Outcome.PROBLEM]
    if problems:
        return Answer(exit=int(Exit.FOUND_PROBLEMS), sentences=(f"problems found: {'; '.join(problems)}",))
    memory = checks[4]
    if memory.outcome is Outcome.NOT_SEEN:
        return Answer(exit=int(Exit.COULD_NOT), sentences=(f"could not: {memory.lines[0]}",))
    unseen = ", ".join(str(one.number) for one in checks if one.outcome is Outcome.NOT_SEEN)
    return Answer(
        exit=int(Exit.DONE),
        sentences=("nothing wrong was seen" + (f"; not or not wholly visible here: check {unseen}" if unseen else ""),),
    )
