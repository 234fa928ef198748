"""Builders for the time between two sweeps: one node, one pod that an earlier sweep saw on it, and what is there now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from steps.contracts.cluster_facts import ClusterFacts, PodFacts
from steps.contracts.continuity import Continuity, DepartedPod, Departure, NodeWindow
from steps.contracts.decision import Memory, SeenNode, SeenPod
from steps.contracts.document import Sample, Stamp
from steps.contracts.node_facts import NodeFacts, Scan
from steps.contracts.release import ReleaseVerdict
from steps.contracts.traced import GpuClass, Traced, TracedNode
from steps.decide.continuity import Account, account_for, scene_of
from steps.decide.recall import Place, recall
from tests.unit import trace_world
from tests.unit.judging import NOON, ago, gpu, node, stamp

EARLIER = ago(minutes=10)
LATER = NOON + timedelta(minutes=10)


def seen_pod(
    name: str = "a-1", *, devices: Sequence[str] = ("GPU-node-a-0",), seen_at: datetime = EARLIER, missed_at: datetime | None = None
) -> SeenPod:
    return SeenPod(
        uid=f"pod-{name}",
        namespace="team",
        name=name,
        grace_s=30,
        devices=tuple(devices),
        seen_at=seen_at,
        missed_at=missed_at,
    )


def seen_node(*pods: SeenPod, name: str = "node-a", run: str = "sweep-1", told_at: datetime = EARLIER, **other: Any) -> SeenNode:
    given: dict[str, Any] = {"looked_at": told_at, "looked_run": run, **other}
    return SeenNode(node=name, run=run, told_at=told_at, pods=pods, **given)


def memory(*nodes: SeenNode, run: str = "sweep-1", written_at: datetime = EARLIER) -> Memory:
    return Memory(policy_hash="hash", written_at=written_at, sessions=(), run=run, run_uid=f"uid-of-{run}", nodes=nodes)


def looked(name: str = "node-a", *, at: datetime = NOON, scan: Scan = Scan.FULL, **other: Any) -> NodeFacts:
    """Facts of a node whose only look was at `at`."""
    device = trace_world.gpu(activity=[msgspec.structs.replace(trace_world.moment(), taken_at=at)])
    return trace_world.facts((device,), at=at, node=name, scan=scan, **other)


@dataclass(frozen=True)
class Shard:
    """A shard of one node whose GPU is free and whose pods are all gone: change what the test is about."""

    memories: Mapping[int, Memory] = field(default_factory=lambda: {0: memory(seen_node(seen_pod()))})
    nodes: Sequence[TracedNode] = field(default_factory=lambda: [free_node()])
    facts: Sequence[NodeFacts] = field(default_factory=lambda: [looked()])
    pods: Sequence[PodFacts] = ()
    shard: int = 0
    shards: int = 1
    run: str = "sweep-2"
    now: datetime = NOON
    lost: bool = False

    @property
    def place(self) -> Place:
        return Place(self.shard, self.shards, frozenset(one.node for one in self.nodes), self.run, f"uid-of-{self.run}")

    def account(self) -> Account:
        names = tuple(one.node for one in self.nodes)
        place = self.place
        made = Stamp(made_by="survey", made_at=self.now, origin=stamp().origin)
        cluster = ClusterFacts(stamp=made, nodes=names, pods=tuple(self.pods), sessions=(), waiters=())
        scene = scene_of(cluster, Traced(stamp=stamp(), nodes=tuple(self.nodes)), self.facts, place, self.now)
        return account_for(recall(self.memories, place, self.now, lost=self.lost), scene, stamp("decide"))

    def memory(self) -> Memory:
        """What it leaves behind."""
        recalled = recall(self.memories, self.place, self.now, lost=self.lost)
        plain = Memory(policy_hash="hash", written_at=self.now, sessions=())
        return self.account().remembered_in(plain, recalled, self.place)

    def departed(self) -> DepartedPod:
        (only,) = self.account().continuity.departed
        return only

    def but(self, **changes: Any) -> "Shard":
        return replace(self, **changes)


def free_node(name: str = "node-a", **changes: Any) -> TracedNode:
    """One GPU, given to nobody, held by nobody, at baseline."""

    device = gpu(node=name, to=(), headline=GpuClass.BASELINE, holders=())
    return node(msgspec.structs.replace(device, used_bytes=Sample.measured(0), **changes), name=name)


def departed_pod(name: str = "a-1", **changes: Any) -> DepartedPod:
    made = DepartedPod(
        uid=f"pod-{name}",
        namespace="team",
        name=name,
        node="node-a",
        departure=Departure.GONE,
        last_seen_at=EARLIER,
        first_missed_at=NOON,
        answer=ReleaseVerdict.RETURNED,
        gpu_class=None,
        held_bytes=Sample.measured(0),
        pids=(),
        taken_over_by=None,
        pending_until=None,
        sentence="nothing of it is left on GPU 0",
        remembered=False,
    )
    return msgspec.structs.replace(made, **changes)


def continuity(*departed: DepartedPod, shard: int = 0, **changes: Any) -> Continuity:
    """Of a first sweep, unless a test says otherwise."""
    window = NodeWindow(
        node="node-a",
        earlier_run=None,
        unwatched_from=None,
        unwatched_until=NOON,
        unexplained_bytes=Sample.measured(0),
        sentence="no earlier look at it is remembered: what was there before 2026-11-30 12:00:00 UTC is not known",
    )
    made = Continuity(
        stamp=stamp("decide"),
        run="sweep-2",
        shard=shard,
        earlier_run=None,
        nodes=(window,),
        still_there=(),
        departed=departed,
        not_remembered=0,
        sentence="no earlier sweep is remembered: nothing is said of the time before this one",
    )
    return msgspec.structs.replace(made, **changes)
