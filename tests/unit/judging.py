"""Builders for the tests of judgement: they supply the ordinary (one idle session on one GPU, nobody connected, seen idle
for an hour), so that a test's body shows only what deviates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from steps.contracts.cluster_facts import ClusterFacts, GuardMet, OwnerRef, Phase, PodFacts, Session, Waiter
from steps.contracts.decision import Decision, Memory, SessionMemory
from steps.contracts.document import Origin, Sample, Stamp
from steps.contracts.policy import Mode, Policy
from steps.contracts.traced import (
    AllocatedTo,
    Attribution,
    Finding,
    GpuClass,
    PodConnections,
    Qos,
    Traced,
    TracedGpu,
    TracedHolder,
    TracedNode,
)
from steps.decide.judge import Judgement, Run, judge
from steps.decide.policy import policy_hash

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
GIB = 1024**3


def ago(**span: float) -> datetime:
    return NOON - timedelta(**span)


def owner(name: str = "a", kind: str = "Deployment") -> OwnerRef:
    return OwnerRef(api_version="apps/v1", kind=kind, namespace="team", name=name, uid=f"uid-{name}")


def pod(
    name: str, node: str | None = "node-a", *, started: datetime | None = None, gpus: int = 1, phase: Phase = Phase.RUNNING
) -> PodFacts:
    return PodFacts(
        uid=f"pod-{name}",
        name=name,
        namespace="team",
        node=node,
        phase=phase,
        created_at=ago(hours=6),
        started_at=started or ago(hours=6),
        deletion_requested_at=None,
        grace_s=30,
        gpus_requested=gpus,
        containers=(),
    )


def session(name: str = "a", *, pods: Sequence[str] = ("a-1",), guards: Sequence[GuardMet] = (), replicas: int = 1) -> Session:
    return Session(
        owner=owner(name),
        replicas=replicas,
        judged_digest="digest",
        gpus_requested=1,
        created_at=ago(hours=6),
        pod_uids=tuple(f"pod-{one}" for one in pods),
        guards=tuple(guards),
    )


def waiter(name: str) -> Waiter:
    return Waiter(
        pod_uid=f"pod-{name}",
        name=name,
        namespace="team",
        gpus_requested=1,
        pending_since=ago(minutes=20),
        message=Sample.measured("0/1 nodes are available: 1 Insufficient nvidia.com/gpu."),
    )


def holder(
    pod_name: str | None = "a-1", gpu_class: GpuClass = GpuClass.IDLE_HOLDER, pid: int = 4001, name: str = "python3"
) -> TracedHolder:
    return TracedHolder(
        pid=pid,
        start_time_ticks=100,
        state="S",
        name=name,
        gpu_memory_bytes=Sample.measured(2 * GIB),
        known_to_nvml=True,
        qos=Qos.BURSTABLE,
        attribution=Attribution.CONTAINER if pod_name else Attribution.HOST,
        attribution_reason="the container is in the pod's statuses",
        pod_uid=f"pod-{pod_name}" if pod_name else None,
        pod=pod_name,
        namespace="team" if pod_name else None,
        container="main" if pod_name else None,
        session_uid="uid-a" if pod_name else None,
        gpu_class=gpu_class,
        reason="no work was seen",
    )


def given(device: str, pod_name: str) -> AllocatedTo:
    return AllocatedTo(
        device_id=device, pod_uid=f"pod-{pod_name}", pod=pod_name, namespace="team", container="main", session_uid=None
    )


def gpu(
    index: int = 0,
    *,
    node: str = "node-a",
    to: Sequence[str] = ("a-1",),
    headline: GpuClass = GpuClass.IDLE_HOLDER,
    utilisation: Sample[float] | float = 0.0,
    sm: Sample[float] | float = 0.0,
    holders: Sequence[TracedHolder] | None = None,
    allocated: Sample[tuple[AllocatedTo, ...]] | None = None,
    findings: Sequence[Finding] = (),
) -> TracedGpu:
    uuid = f"GPU-{node}-{index}"
    return TracedGpu(
        uuid=uuid,
        index=index,
        headline=headline,
        reason=f"made {headline.value} by a test",
        remedy=None,
        findings=tuple(findings),
        allocated_to=Sample.measured(tuple(given(uuid, name) for name in to)) if allocated is None else allocated,
        holders=tuple(holders) if holders is not None else (holder(to[0]),) if to else (),
        total_bytes=Sample.measured(80 * GIB),
        used_bytes=Sample.measured(2 * GIB),
        baseline_bytes=Sample.measured(0),
        unexplained_bytes=Sample.measured(0),
        utilisation_ratio=utilisation
        if isinstance(utilisation, Sample)
        else Sample.measured(utilisation, taken_at=ago(seconds=20)),
        sm_active_ratio=sm if isinstance(sm, Sample) else Sample.measured(sm, taken_at=ago(seconds=20)),
    )


def connections(counts: Mapping[str, int | Sample[int]]) -> Sample[tuple[PodConnections, ...]]:
    return Sample.measured(
        tuple(
            PodConnections(pod_uid=f"pod-{name}", established=c if isinstance(c, Sample) else Sample.measured(c))
            for name, c in counts.items()
        )
    )


def node(
    *gpus: TracedGpu,
    name: str = "node-a",
    problem: str | None = None,
    connected: Mapping[str, int | Sample[int]] | Sample[tuple[PodConnections, ...]] | None = None,
) -> TracedNode:
    if not isinstance(connected, Sample):
        connected = connections({"a-1": 0} if connected is None else connected)
    return TracedNode(node=name, boot_id=Sample.measured("boot"), problem=problem, gpus=gpus, connections=connected)


def stamp(made_by: str = "test") -> Stamp:
    return Stamp(made_by=made_by, made_at=NOON, origin=Origin.SIMULATED)


ACTING = Policy(mode=Mode.ACT, namespaces=("team",), idle_after_s=1800, minimum_age_s=1800)


@dataclass
class Sweep:
    """A sweep of the ordinary: change what the test is about, then ask for the judgement."""

    sessions: Sequence[Session] = field(default_factory=lambda: [session()])
    pods: Sequence[PodFacts] = field(default_factory=lambda: [pod("a-1")])
    nodes: Sequence[TracedNode] = field(default_factory=lambda: [node(gpu())])
    waiters: Sequence[Waiter] = ()
    policy: Policy = ACTING
    idle_since: datetime | None = field(default_factory=lambda: ago(minutes=60))
    memory: Memory | None = None
    dry_run: bool = False
    run: str = "sweep-2"
    now: datetime = NOON
    shard: int = 0
    shards: int = 1

    def remembered(self) -> Memory:
        """The memory of an earlier sweep under the same policy, which saw every session idle."""
        if self.memory is not None:
            return self.memory
        entries = [] if self.idle_since is None else [entry(one, self.idle_since) for one in self.sessions]
        return Memory(
            policy_hash=policy_hash(self.policy),
            written_at=ago(minutes=5),
            sessions=tuple(entries),
            first_run_under_policy="sweep-1",
        )

    def judge(self, *, lost_memory: bool = False) -> Judgement:
        names = tuple(one.node for one in self.nodes)
        cluster = ClusterFacts(
            stamp=stamp(), nodes=names, pods=tuple(self.pods), sessions=tuple(self.sessions), waiters=tuple(self.waiters)
        )
        traced = Traced(stamp=stamp(), nodes=tuple(self.nodes))
        run = Run(self.run, self.dry_run, self.now, self.shard, self.shards)
        return judge(cluster, traced, None if lost_memory else self.remembered(), self.policy, run)

    def decision(self) -> Decision:
        (decision,) = self.judge().decisions
        return decision

    def but(self, **changes: object) -> "Sweep":
        return replace(self, **changes)  # type: ignore[arg-type]


def entry(one: Session, idle_since: datetime, last_seen_at: datetime | None = None) -> SessionMemory:
    return SessionMemory(
        session_uid=one.owner.uid,
        pod_uids=tuple(sorted(one.pod_uids)),
        idle_since=idle_since,
        last_seen_at=last_seen_at or ago(minutes=5),
    )
