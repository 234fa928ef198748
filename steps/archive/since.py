"""The whole run's account of the time since earlier sweeps: the shards' put together, each pod once, with who watched. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from steps.archive.evidence import RunEvidence
from steps.archive.shown import say_moment
from steps.contracts.continuity import Accounted, Continuity, DepartedPod, Departure, Since, Watch
from steps.contracts.document import Stamp
from steps.contracts.release_check import Answer
from steps.decide.continuity import said_of
from steps.decide.wording import count_of, say_span

DEPARTED: Final[Mapping[Departure, str]] = {
    Departure.GONE: "gone from the API server's list between",
    Departure.ENDED: "ended between",
    Departure.OUT_OF_SIGHT: "not looked for, since its node was not among those asked, between",
}
PROVEN: Final = frozenset({Answer.RETURNED, Answer.TAKEN_OVER, Answer.LEAKED})


def continuities_of(evidence: RunEvidence) -> tuple[Continuity, ...]:
    """Of the shards that published theirs."""
    return tuple(shard.continuity for shard in evidence.shards if shard.continuity is not None)


def earlier_runs_of(shards: Sequence[Continuity]) -> tuple[str, ...]:
    """The runs that looked last, by name: of any shard, and of any of its nodes."""
    runs = {shard.earlier_run for shard in shards} | {node.earlier_run for shard in shards for node in shard.nodes}
    return tuple(sorted(run for run in runs if run is not None))


def departed_of(shards: Sequence[Continuity]) -> tuple[DepartedPod, ...]:
    """Each pod once. A shard that keeps a pod of a node that is another shard's now has nothing to say if that one speaks of it."""
    there = {uid for shard in shards for uid in shard.still_there}
    ordered = sorted(
        (pod for shard in shards for pod in shard.departed if pod.uid not in there),
        key=lambda pod: (pod.departure is Departure.OUT_OF_SIGHT, pod.node, pod.namespace, pod.name, pod.uid),
    )
    return tuple({pod.uid: pod for pod in reversed(ordered)}.values())[::-1]


def since_of(
    run: str, shards: Sequence[Continuity], watches: Mapping[str, tuple[Watch, ...]], gaps: Sequence[str], stamp: Stamp
) -> Since:
    """The document. watches: by pod uid, oldest first."""
    there = {uid for shard in shards for uid in shard.still_there}
    departed = departed_of(shards)
    return Since(
        stamp=stamp,
        run=run,
        sentence=_sentence(shards, len(there), departed),
        earlier_runs=earlier_runs_of(shards),
        nodes=tuple(sorted((node for shard in shards for node in shard.nodes), key=lambda node: node.node)),
        still_there=len(there),
        departed=tuple(accounted(pod, watches.get(pod.uid, ())) for pod in departed),
        gaps=tuple(dict.fromkeys([*gaps, *_left_out(shards)])),
    )


def accounted(pod: DepartedPod, watched: tuple[Watch, ...]) -> Accounted:
    """The pod with one sentence that holds both: who watched it go, and what this sweep finds."""
    when = f"{DEPARTED[pod.departure]} {say_moment(pod.last_seen_at)} and {say_moment(pod.first_missed_at)}"
    return Accounted(
        pod=pod, watched=watched, sentence=f"{when}; {_watched(watched)}; this sweep: {pod.answer.value}, {pod.sentence}"
    )


def _watched(watched: Sequence[Watch]) -> str:
    """The last that came to an end. A check that found the pod alive watched no departure; unknown and pending verify nothing."""
    proofs = [(one, one.answer) for one in watched if one.answer in PROVEN]
    if proofs and (answer := proofs[-1][1]) is not None:
        return f"verified by {proofs[-1][0].step} {proofs[-1][0].run}: {answer.value}"
    if watched:
        last = watched[-1]
        told = last.sentence if last.answer is None else f"{last.answer.value}, {last.sentence}"
        return f"not verified: {last.step} {last.run} is there, and says: {told}"
    return "no evidence of a release check is there: nobody watched, or a check still runs"


def _sentence(shards: Sequence[Continuity], there: int, departed: Sequence[DepartedPod]) -> str:
    if not shards:
        return "no shard gave an account of the time before this run"
    runs = sorted({shard.earlier_run for shard in shards if shard.earlier_run is not None})
    if not runs:
        return "no earlier sweep is remembered: nothing is said of the time before this one"
    words = [f"since {', '.join(runs)}: {said_of(there, (pod.answer for pod in departed))}", *_unwatched(shards)]
    fresh = sum(shard.earlier_run is None for shard in shards)
    if fresh:
        words.append(f"{fresh} of {len(shards)} shards remember no earlier sweep")
    return "; ".join(words)


def _unwatched(shards: Sequence[Continuity]) -> Iterator[str]:
    """The longest time in which no sweep looked at a node, and how many nodes that time is open or unknown for."""
    nodes = [node for shard in shards for node in shard.nodes]
    spans = [
        (node.unwatched_until - node.unwatched_from).total_seconds()
        for node in nodes
        if node.unwatched_from is not None and node.unwatched_until is not None
    ]
    if spans:
        yield f"no sweep looked for {say_span(max(spans))}" + (" at the most" if len(spans) > 1 else "")
    silent = sum(node.unwatched_until is None for node in nodes)
    if silent:
        yield f"{count_of(silent, 'node')} did not answer, unwatched still"
    new = len(nodes) - len(spans) - silent
    if new:
        yield f"no earlier look is known of {count_of(new, 'node')}"


def _left_out(shards: Sequence[Continuity]) -> Iterator[str]:
    for shard in shards:
        if shard.not_remembered:
            yield f"shard {shard.shard} has no room to remember {shard.not_remembered} pods: the next sweep does not miss them"
