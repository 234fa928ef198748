"""The account of what earlier sweeps saw, and what the next one has to answer for. Pure.

Every pod that is remembered is found again or gets an answer; a node's last look and this sweep's first one enclose the time in
which no sweep looked.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from steps.contracts.cluster_facts import ClusterFacts, Phase, PodFacts
from steps.contracts.continuity import Continuity, DepartedPod, Departure, NodeWindow
from steps.contracts.decision import Memory, SeenNode, SeenPod
from steps.contracts.document import Sample, Stamp
from steps.contracts.node_facts import NodeFacts
from steps.contracts.release import ReleaseVerdict
from steps.contracts.traced import GpuClass, Traced, TracedNode
from steps.decide.departed import FINAL, Case, answer_on
from steps.decide.looks import first_look, last_look
from steps.decide.recall import Place, Recall, fitting, is_due
from steps.decide.wording import count_of, join_and, say_span

ENDED: Final = (Phase.SUCCEEDED, Phase.FAILED)


@dataclass(frozen=True, slots=True)
class Scene:
    """What this sweep found in the shard. facts: of the nodes that answered, by name. pods: by uid; listed_on: the same by node,
    in the order of their uids. listed_at: when they were listed."""

    traced: Mapping[str, TracedNode]
    facts: Mapping[str, NodeFacts]
    pods: Mapping[str, PodFacts]
    listed_on: Mapping[str | None, Sequence[PodFacts]]
    listed_at: datetime
    now: datetime
    place: Place


@dataclass(frozen=True, slots=True)
class Account:
    """The document, and what it leaves to be remembered."""

    continuity: Continuity
    nodes: tuple[SeenNode, ...]

    def remembered_in(self, memory: Memory, recalled: Recall, place: Place) -> Memory:
        """The memory with what the next sweep, and a second try of this one, must answer for."""
        before, dropped = fitting(self._as_missed(recalled.nodes))
        return msgspec.structs.replace(
            memory,
            run=place.run,
            run_uid=place.run_uid,
            nodes=self.nodes,
            before=before,
            before_run=recalled.earlier_run,
            before_dropped=recalled.dropped + dropped,
        )

    def _as_missed(self, nodes: Sequence[SeenNode]) -> tuple[SeenNode, ...]:
        """With since when its pods are missing, so that a second try, which lists them anew, does not say a later time."""
        missed = {one.uid: one.first_missed_at for one in self.continuity.departed if one.departure is not Departure.OUT_OF_SIGHT}

        def told(pod: SeenPod) -> SeenPod:
            return msgspec.structs.replace(pod, missed_at=missed.get(pod.uid, pod.missed_at))

        return tuple(msgspec.structs.replace(node, pods=tuple(told(pod) for pod in node.pods)) for node in nodes)


def scene_of(cluster: ClusterFacts, traced: Traced, facts: Sequence[NodeFacts], place: Place, now: datetime) -> Scene:
    """The documents of one shard, by name and uid."""
    pods = {pod.uid: pod for pod in cluster.pods}
    listed_on: dict[str | None, list[PodFacts]] = {}
    for uid in sorted(pods):
        listed_on.setdefault(pods[uid].node, []).append(pods[uid])
    return Scene(
        traced={node.node: node for node in traced.nodes},
        facts={one.node: one for one in facts},
        pods=pods,
        listed_on=listed_on,
        listed_at=cluster.stamp.made_at,
        now=now,
        place=place,
    )


def account_for(recalled: Recall, scene: Scene, stamp: Stamp) -> Account:
    """Who is still there, what became of the others, and the time in which no sweep looked, node by node."""
    still_there: list[str] = []
    departed: list[DepartedPod] = []
    missing: dict[str, list[SeenPod]] = {}
    for node in recalled.nodes:
        for pod in node.pods:
            departure = _departure(node.node, pod, scene)
            if departure is None:
                still_there.append(pod.uid)
                continue
            answered = _answer(node, pod, departure, scene)
            departed.append(answered)
            if answered.remembered:
                missing.setdefault(node.node, []).append(_missed(pod, departure, scene))
    nodes, left_out = fitting(tuple(_next_nodes(recalled.nodes, missing, scene)))
    kept = {pod.uid for node in nodes for pod in node.pods}
    told = tuple(one if not one.remembered or one.uid in kept else _last_word(one) for one in departed)
    windows = tuple(_windows(recalled.nodes, scene))
    return Account(
        Continuity(
            stamp=stamp,
            run=scene.place.run,
            shard=scene.place.shard,
            earlier_run=recalled.earlier_run,
            nodes=windows,
            still_there=tuple(sorted(still_there)),
            departed=tuple(sorted(told, key=lambda one: (one.node, one.namespace, one.name, one.uid))),
            not_remembered=recalled.dropped + left_out,
            sentence=_sentence(recalled, len(still_there), told, recalled.dropped + left_out),
        ),
        nodes,
    )


def _departure(node: str, pod: SeenPod, scene: Scene) -> Departure | None:
    if node not in scene.place.nodes:
        return Departure.OUT_OF_SIGHT
    listed = scene.pods.get(pod.uid)
    if listed is None:
        return Departure.GONE
    return Departure.ENDED if listed.phase in ENDED else None


def _answer(node: SeenNode, pod: SeenPod, departure: Departure, scene: Scene) -> DepartedPod:
    missed_at = scene.listed_at if pod.missed_at is None else min(pod.missed_at, scene.listed_at)
    tenants = frozenset(other.uid for other in node.pods if other.uid != pod.uid and set(other.devices) & set(pod.devices))
    case = Case(pod, node.node, departure, missed_at, tenants)
    found = answer_on(case, scene.traced.get(node.node), scene.facts.get(node.node))
    final = found.answer in FINAL
    dropped = not final and is_due(pod, scene.now)
    made = DepartedPod(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        node=node.node,
        departure=departure,
        last_seen_at=pod.seen_at,
        first_missed_at=missed_at,
        answer=found.answer,
        gpu_class=found.gpu_class,
        held_bytes=found.held_bytes,
        pids=found.pids,
        taken_over_by=found.taken_over_by,
        pending_until=found.pending_until,
        sentence=found.sentence,
        remembered=not final,
    )
    return _last_word(made) if dropped else made


def _last_word(pod: DepartedPod) -> DepartedPod:
    """Not answered, and no longer remembered: it says so."""
    words = f"{pod.sentence}; the memory drops it now (too long ago, or too many): no later sweep asks for it"
    return msgspec.structs.replace(pod, sentence=words, remembered=False)


def _missed(pod: SeenPod, departure: Departure, scene: Scene) -> SeenPod:
    """As it is remembered from now on. A pod out of sight may live: it is missed only once its node's list lacks it. A moment
    that lies ahead is none: a clock was put back, and with it the pod would be ending until then."""
    if departure is Departure.OUT_OF_SIGHT or (pod.missed_at is not None and pod.missed_at <= scene.listed_at):
        return pod
    return msgspec.structs.replace(pod, missed_at=scene.listed_at)


def _next_nodes(before: Sequence[SeenNode], missing: Mapping[str, Sequence[SeenPod]], scene: Scene) -> Iterator[SeenNode]:
    earlier = {node.node: node for node in before}
    for name in sorted(scene.place.nodes | set(earlier)):
        kept = tuple(missing.get(name, ()))
        if name not in scene.place.nodes:
            yield msgspec.structs.replace(earlier[name], pods=kept)
            continue
        facts, past = _answered(name, scene), earlier.get(name)
        looked = None if past is None else past.looked_at, None if past is None else past.looked_run
        looked_at, looked_run = looked if facts is None else (last_look(facts), scene.place.run)
        yield SeenNode(
            node=name,
            run=scene.place.run,
            told_at=scene.now,
            looked_at=looked_at,
            looked_run=looked_run,
            pods=(*_present(name, scene), *kept),
        )


def _answered(name: str, scene: Scene) -> NodeFacts | None:
    """The node's facts; None if it gave none, or NVML none: then nobody looked at its GPUs."""
    node = scene.traced.get(name)
    return scene.facts.get(name) if node is not None and node.problem is None else None


def _present(name: str, scene: Scene) -> Iterator[SeenPod]:
    """The pods of the node that asked for a GPU, were given one, or hold one, and have not ended."""
    node = scene.traced.get(name)
    for pod in scene.listed_on.get(name, ()):
        if pod.phase in ENDED:
            continue
        devices, found = _devices(pod, node)
        if pod.gpus_requested > 0 or found:
            yield SeenPod(
                uid=pod.uid,
                namespace=pod.namespace,
                name=pod.name,
                grace_s=pod.grace_s,
                devices=devices,
                seen_at=scene.listed_at,
            )


def _devices(pod: PodFacts, node: TracedNode | None) -> tuple[tuple[str, ...], bool]:
    """(GPUs of the pod by uuid, empty unless all it asked for are known; whether any was found)."""
    given: dict[str, set[str]] = {}
    holding: set[str] = set()
    for gpu in () if node is None else node.gpus:
        ids = {one.device_id for one in gpu.allocated_to.known() or () if one.pod_uid == pod.uid}
        if ids:
            given[gpu.uuid] = ids
        if any(one.pod_uid == pod.uid and one.gpu_class is not GpuClass.SYSTEM_HOLDER for one in gpu.holders):
            holding.add(gpu.uuid)
    complete = sum(len(ids) for ids in given.values()) >= pod.gpus_requested
    return tuple(sorted({*given, *holding})) if complete else (), bool(given or holding)


def _windows(before: Sequence[SeenNode], scene: Scene) -> Iterator[NodeWindow]:
    earlier = {node.node: node for node in before}
    for name in sorted(scene.place.nodes):
        facts, past = _answered(name, scene), earlier.get(name)
        until = None if facts is None else first_look(facts)
        since = None if past is None else past.looked_at
        ahead = since is not None and since > (until or scene.now)
        yield NodeWindow(
            node=name,
            earlier_run=None if past is None else past.looked_run,
            unwatched_from=None if ahead else since,
            unwatched_until=until,
            unexplained_bytes=_unexplained(scene.traced.get(name)),
            sentence=_ahead(until) if ahead else _window(since, until),
        )


def _ahead(until: datetime | None) -> str:
    looked = "it did not answer" if until is None else f"first look at {_moment(until)}"
    return f"{looked}; the remembered look lies in the future, so how long no sweep looked is not known"


def _window(since: datetime | None, until: datetime | None) -> str:
    if until is None:
        known = "no earlier look at it is remembered" if since is None else f"no sweep has looked since {_moment(since)}"
        return f"it did not answer, and {known}"
    if since is None:
        return f"no earlier look at it is remembered: what was there before {_moment(until)} is not known"
    return f"no sweep looked from {_moment(since)} to {_moment(until)}, {say_span((until - since).total_seconds())}"


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _unexplained(node: TracedNode | None) -> Sample[int]:
    """Of all GPUs of the node together; unknown as soon as one is."""
    if node is None or node.problem is not None:
        return Sample.absent("it has nothing to say" if node is None or node.problem is None else node.problem)
    total = 0
    for gpu in node.gpus:
        amount = gpu.unexplained_bytes.known()
        if amount is None:
            return Sample.absent(f"GPU {gpu.index}: {gpu.unexplained_bytes.reason or gpu.unexplained_bytes.state.value}")
        total += amount
    return Sample.measured(total)


def _sentence(recalled: Recall, there: int, departed: Sequence[DepartedPod], left_out: int) -> str:
    parts = []
    if recalled.lost:
        parts.append("what this shard remembered cannot be read and is lost")
    if recalled.earlier_run is None:
        parts.append("no earlier sweep is remembered: nothing is said of the time before this one")
    else:
        parts.append(f"since {recalled.earlier_run}: {said_of(there, (one.answer for one in departed))}")
    if left_out:
        parts.append(f"the memory has no room for {count_of(left_out, 'pod')}, which no later sweep will miss")
    return "; ".join(parts)


def said_of(there: int, answers: Iterable[ReleaseVerdict]) -> str:
    """`3 pods still there, 2 departed (1 returned and 1 unknown)`."""
    counts = Counter(answers)
    words = f"{count_of(there, 'pod')} still there, {counts.total()} departed"
    parts = [f"{counts[verdict]} {verdict.value}" for verdict in ReleaseVerdict if counts[verdict]]
    return f"{words} ({join_and(parts)})" if parts else words
