"""One node's facts and the API's pods, joined: who was given each GPU, who holds it, and what that means."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import msgspec

from steps.contracts.cluster_facts import PodFacts
from steps.contracts.document import Sample, State
from steps.contracts.node_facts import Allocation, GpuFacts, NodeFacts, VisibilityLevel
from steps.contracts.traced import (
    AllocatedTo,
    Attribution,
    Finding,
    GpuClass,
    PodConnections,
    TracedGpu,
    TracedHolder,
    TracedNode,
)
from steps.trace.activity import NOT_THERE, largest, read_window
from steps.trace.attribution import Owner, PodIndex
from steps.trace.classify import Ending, GpuVerdict, View, classify, explained_by
from steps.trace.connections import connections_of
from steps.trace.devices import gpu_of_device
from steps.trace.holder_class import Judged, Surroundings, deadline
from steps.trace.holding import Held, Holding, held_on, owners_of
from steps.trace.lost import lost_gpus
from steps.trace.memory import baseline_bytes, unexplained_bytes
from steps.trace.remedies import REMEDY
from steps.trace.system_holders import is_mps_server


def trace_node(
    facts: NodeFacts, pods: Sequence[PodFacts] | None, *, now: datetime, lists: int = 1, existing: Collection[str] = ()
) -> TracedNode:
    """The join of one node. pods: all pods the API binds to it; None: the list is not at hand, then no pod can be called gone.

    lists: how many of the API's lists, some seconds apart, `pods` puts together; what one alone lacks is not yet gone.
    existing: uids that the caller takes for existing pods where the list is not at hand.

    now: against which graces are measured. A node whose NVML could not be asked has no GPUs and says so in `problem`.
    """
    on_disk = facts.pods_on_disk.known()
    index = PodIndex(pods, facts.node, () if on_disk is None else on_disk, lists=lists, existing=existing)
    owners = owners_of(facts, index)
    gpus = facts.gpus.known()
    problem = None
    if gpus is None:
        problem = f"NVML could not be asked: {facts.gpus.reason or facts.gpus.state.value}"
    traced = tuple(_trace_gpu(gpu, facts, index, owners, now) for gpu in gpus or ())
    lost = () if gpus is None else lost_gpus(facts, gpus)
    return TracedNode(
        node=facts.node,
        boot_id=facts.boot_id,
        problem=problem,
        gpus=traced + lost,
        connections=_dated(connections_of(facts.sockets, index), facts.stamp.made_at),
        scan=facts.scan,
    )


def _dated(connections: Sample[tuple[PodConnections, ...]], made_at: datetime) -> Sample[tuple[PodConnections, ...]]:
    """With the time of the facts where the reading has none of its own: outside its document nothing else says it."""
    return connections if connections.taken_at is not None else msgspec.structs.replace(connections, taken_at=made_at)


def silent_node(node: str, problem: str) -> TracedNode:
    """A node that was asked and did not answer: everything about it is unknown."""
    return TracedNode(
        node=node,
        boot_id=Sample.absent(problem),
        problem=problem,
        gpus=(),
        connections=Sample.absent(problem),
    )


def _trace_gpu(gpu: GpuFacts, facts: NodeFacts, index: PodIndex, owners: Mapping[int, Owner], now: datetime) -> TracedGpu:
    allocated = _allocated_to(gpu, facts, index)
    given = allocated.known()
    pods_given = None if given is None else frozenset(one.pod_uid for one in given)
    held = held_on(gpu, facts, owners, pods_given)
    around = Surroundings(
        window=read_window(gpu.activity),
        sharers=_sharers(held, allocated, index),
        figures=_figures(gpu, held),
        figures_lost=gpu.process_activity.known() is None and gpu.process_activity.state not in NOT_THERE,
        samples=facts.samples,
        now=now,
    )
    verdict = classify(View(gpu=gpu, facts=facts, held=held, around=around, ending=_ending(held, pods_given, index, now)))
    memory = gpu.memory
    last_look = gpu.activity[-1].taken_at if gpu.activity else None
    return TracedGpu(
        uuid=gpu.uuid,
        index=gpu.index,
        headline=verdict.headline,
        reason=verdict.reason,
        remedy=verdict.remedy,
        findings=verdict.findings + _empty_allocations(facts, held, given, index, verdict),
        allocated_to=allocated,
        holders=tuple(_traced(h, j) for h, j in zip(held.holdings, verdict.classes, strict=True)),
        total_bytes=memory.total_bytes,
        used_bytes=memory.used_bytes,
        baseline_bytes=baseline_bytes(memory),
        unexplained_bytes=unexplained_bytes(memory, memory.used_bytes, explained_by(held.holdings)),
        utilisation_ratio=largest([moment.utilisation_ratio for moment in gpu.activity], last_look),
        sm_active_ratio=largest([moment.sm_active_ratio for moment in gpu.activity], last_look),
    )


def _traced(holding: Holding, judged: Judged) -> TracedHolder:
    process, owner = holding.process, holding.owner
    return TracedHolder(
        pid=process.pid,
        start_time_ticks=process.start_time_ticks,
        state=process.state,
        name=process.name,
        gpu_memory_bytes=holding.memory,
        known_to_nvml=holding.listed is not None if holding.nvml_usable else None,
        qos=owner.qos,
        attribution=owner.attribution,
        attribution_reason=owner.reason,
        pod_uid=owner.pod_uid,
        pod=owner.name,
        namespace=owner.namespace,
        container=owner.container,
        session_uid=None if owner.pod is None else owner.pod.owner_uid,
        gpu_class=judged.gpu_class,
        reason=judged.reason,
        uninterruptible=holding.uninterruptible,
    )


def _figures(gpu: GpuFacts, held: Held) -> dict[int, float] | None:
    """Under MPS the server's figure is its clients' work, so a client's own zero says nothing (facts 3.7)."""
    known = gpu.process_activity.known()
    if known is None:
        return None
    mps = (
        gpu.mps_active.known() is True
        or gpu.mps_active.state is State.ERROR
        or any(is_mps_server(h.process) for h in held.holdings)
    )
    return {figure.pid: figure.sm_ratio for figure in known if figure.sm_ratio > 0 or not mps}


def _allocated_to(gpu: GpuFacts, facts: NodeFacts, index: PodIndex) -> Sample[tuple[AllocatedTo, ...]]:
    """Who was given this device, with the source and state of the kubelet's record."""
    record = facts.allocations
    if record.value is None:
        return Sample(value=None, state=record.state, source=record.source, taken_at=record.taken_at, reason=record.reason)
    gpus = facts.gpus.known() or ()
    mine = tuple(_given(one, index) for one in record.value if _names(one, gpu, gpus))
    return Sample(value=mine, state=record.state, source=record.source, taken_at=record.taken_at, reason=record.reason)


def _names(allocation: Allocation, gpu: GpuFacts, gpus: Sequence[GpuFacts]) -> bool:
    named = gpu_of_device(allocation.device_id, gpus)
    return named is not None and named.uuid == gpu.uuid


def _given(allocation: Allocation, index: PodIndex) -> AllocatedTo:
    pod = index.pod(allocation.pod_uid)
    named = pod if pod is not None else index.on_disk(allocation.pod_uid)
    return AllocatedTo(
        device_id=allocation.device_id,
        pod_uid=allocation.pod_uid if pod is None else pod.uid,
        pod=None if named is None else named.name,
        namespace=None if named is None else named.namespace,
        container=allocation.container,
        session_uid=None if pod is None else pod.owner_uid,
        lives=index.lives(allocation.pod_uid),
    )


def _ending(held: Held, given: frozenset[str] | None, index: PodIndex, now: datetime) -> Ending | None:
    """Pods whose deadline has not passed: of this GPU; if nobody knows whose it is, all of the node that ask for one."""
    left = frozenset(owner.pod_uid for _, owner in held.zombies)
    terminating = [(pod, until) for pod in index.here if (until := deadline(pod)) is not None and now < until]
    mine = [(pod, until) for pod, until in terminating if pod.uid in left or (given is not None and pod.uid in given)]
    if mine:
        return Ending(tuple(pod for pod, _ in mine), max(until for _, until in mine), known=True)
    maybe = [(pod, until) for pod, until in terminating if given is None and pod.gpus_requested > 0]
    return Ending(tuple(pod for pod, _ in maybe), max(until for _, until in maybe), known=False) if maybe else None


def _sharers(held: Held, allocated: Sample[tuple[AllocatedTo, ...]], index: PodIndex) -> int | None:
    """How many different owners are on the device: of holders (all unattributable ones as one more), and live pods given it.
    None: the kubelet's record is there and could not be read."""
    given = allocated.known()
    if given is None and allocated.state not in NOT_THERE:
        return None
    tenants = [holding.owner for holding in held.holdings if not holding.system]
    pods = {owner.pod_uid for owner in tenants if owner.pod_uid is not None}
    others = {owner.attribution for owner in tenants if owner.pod_uid is None}
    pods |= {one.pod_uid for one in given or () if _lives(one, index)}
    return len(pods) + len(others)


def _lives(given: AllocatedTo, index: PodIndex) -> bool:
    """The kubelet forgets an allocation only at the next one: a pod that is surely gone shares nothing."""
    return index.lives(given.pod_uid) is not False


def _empty_allocations(
    facts: NodeFacts, held: Held, given: Sequence[AllocatedTo] | None, index: PodIndex, verdict: GpuVerdict
) -> tuple[Finding, ...]:
    """A pod that was given the device and has no process on it holds it idle all the same (facts 2.1)."""
    clear = verdict.headline not in (GpuClass.ABI_MISMATCH, GpuClass.GPU_LOST, GpuClass.BLIND)
    if given is None or facts.visibility.level is not VisibilityLevel.FULL or not clear:
        return ()
    holders = {holding.owner.pod_uid for holding in held.holdings}
    unsure = any(h.owner.attribution in (Attribution.UNKNOWN, Attribution.CONFLICT) for h in held.holdings)
    empty = sorted({one.pod_uid for one in given if one.pod_uid not in holders and index.lives(one.pod_uid) is True})
    if unsure or not empty:
        return ()
    words = f"allocated to pod {', '.join(empty)}, which has no process on it"
    return (Finding(gpu_class=GpuClass.IDLE_HOLDER, detail=words, remedy=REMEDY[GpuClass.IDLE_HOLDER]),)
