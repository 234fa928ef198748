"""What the rules look at: a session with its judged pods, its age, its signals and its idle clock."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from steps.contracts.cluster_facts import ClusterFacts, Phase, PodFacts, Session
from steps.contracts.decision import JudgedPod
from steps.contracts.document import Sample, State
from steps.contracts.node_facts import Scan
from steps.contracts.traced import Traced, TracedNode
from steps.decide.memory import Clock, Seen
from steps.decide.signals import Signals, has_started, read_signals


@dataclass(frozen=True, slots=True)
class Look:
    """One session as this sweep sees it, before memory is asked.

    youngest_start: start of the youngest pod that has a node; absent as soon as one of them has not started.
    quick: the /proc of any of its nodes was read only for what NVML lists.
    """

    session: Session
    pods: tuple[JudgedPod, ...]
    youngest_start: Sample[datetime]
    signals: Signals
    quick: bool = False

    @property
    def holds_nothing(self) -> bool:
        """Every pod still waits for a node, or was given no device. A gap is not nothing."""
        return not any(has_started(pod) and pod.devices.known() != () for pod in self.pods)

    @property
    def placed(self) -> tuple[str, ...]:
        """uids of the pods that the idle clock is about."""
        return tuple(sorted(pod.uid for pod in self.pods if has_started(pod)))

    @property
    def is_idle(self) -> bool:
        """Both signals were read, and neither shows life."""
        return self.signals.working.known() is False and self.signals.present.known() is False

    @property
    def seen(self) -> Seen:
        """What the idle clock needs to know. A session that holds nothing has no clock: there is nothing to give back."""
        return Seen(
            session_uid=self.session.owner.uid,
            pod_uids=self.placed,
            idle=self.is_idle and not self.holds_nothing,
            started_at=self.youngest_start.known(),
            untold=self.quick and not self.is_idle and not self.is_alive,
        )

    @property
    def is_alive(self) -> bool:
        """Either signal shows life."""
        return self.signals.working.known() is True or self.signals.present.known() is True


@dataclass(frozen=True, slots=True)
class Case:
    """A look with its idle clock: everything a rule may know, beside policy and time."""

    look: Look
    clock: Clock


def looks_of(cluster: ClusterFacts, traced: Traced, now: datetime) -> tuple[Look, ...]:
    """One look a session, in the order of the facts."""
    nodes = {node.node: node for node in traced.nodes}
    facts = {pod.uid: pod for pod in cluster.pods}
    waiting = {waiter.pod_uid: waiter.name for waiter in cluster.waiters}
    return tuple(_look(session, facts, waiting, nodes, now) for session in cluster.sessions)


def _look(
    session: Session,
    facts: Mapping[str, PodFacts],
    waiting: Mapping[str, str],
    nodes: Mapping[str, TracedNode],
    now: datetime,
) -> Look:
    pods = tuple(_judged_pods(session, facts, waiting, nodes))
    started = [facts[pod.uid] for pod in pods if pod.uid in facts and pod.node is not None]
    return Look(
        session=session,
        pods=pods,
        youngest_start=_youngest(started),
        signals=read_signals(pods, nodes, now),
        quick=any(pod.node in nodes and nodes[pod.node].scan is Scan.QUICK for pod in pods if pod.node is not None),
    )


def _judged_pods(
    session: Session, facts: Mapping[str, PodFacts], waiting: Mapping[str, str], nodes: Mapping[str, TracedNode]
) -> Iterator[JudgedPod]:
    """Pods that ended are left out: they run nothing, and the kubelet's book keeps their devices until the next
    allocation (facts/gpu-and-linux 2.1)."""
    for uid in session.pod_uids:
        pod = facts.get(uid)
        if pod is None:
            yield _unseen_pod(uid, waiting)
        elif pod.phase not in (Phase.SUCCEEDED, Phase.FAILED):
            yield JudgedPod(uid=uid, name=pod.name, node=pod.node, grace_s=pod.grace_s, devices=_devices(pod, nodes))


def _unseen_pod(uid: str, waiting: Mapping[str, str]) -> JudgedPod:
    """A pod that is on none of the surveyed nodes: it waits for a GPU, or nobody knows what it does."""
    if uid in waiting:
        devices: Sample[tuple[str, ...]] = Sample.not_applicable("it is Pending and has no node")
        return JudgedPod(uid=uid, name=waiting[uid], node=None, grace_s=0, devices=devices)
    devices = Sample.absent("it is on none of the nodes that were looked at, and it does not wait for a GPU")
    return JudgedPod(uid=uid, name=uid, node=None, grace_s=0, devices=devices)


def _devices(pod: PodFacts, nodes: Mapping[str, TracedNode]) -> Sample[tuple[str, ...]]:
    """The devices the kubelet gave to the pod. Unknown if the node is silent, if any GPU's allocations are unknown, or if
    their number is not what the pod asked for."""
    if pod.node is None:
        pending = pod.phase is Phase.PENDING
        return Sample.not_applicable("it is Pending and has no node") if pending else Sample.absent("the API names no node")
    node = nodes.get(pod.node)
    if node is None or node.problem is not None:
        return Sample.absent(f"node {pod.node} {'was not looked at' if node is None else f'has nothing to say: {node.problem}'}")
    for gpu in node.gpus:
        if gpu.allocated_to.known() is None:
            return Sample(value=None, state=gpu.allocated_to.state, source=gpu.allocated_to.source, reason=gpu.allocated_to.reason)
    given = (allocation for gpu in node.gpus if gpu.allocated_to.value is not None for allocation in gpu.allocated_to.value)
    devices = sorted({allocation.device_id for allocation in given if allocation.pod_uid == pod.uid})
    if len(devices) != pod.gpus_requested:
        return Sample.error(f"it asked for {pod.gpus_requested}, and the allocations on {pod.node} name {len(devices)}")
    return Sample.measured(tuple(devices))


def _youngest(pods: Sequence[PodFacts]) -> Sample[datetime]:
    for pod in pods:
        if pod.started_at is None:
            return Sample.absent(f"pod {pod.name} has not started yet")
    starts = [pod.started_at for pod in pods if pod.started_at is not None]
    return Sample.measured(max(starts)) if starts else Sample(value=None, state=State.NOT_APPLICABLE, reason="no pod has a node")
