"""What has to be proven on this node: which devices the stopped session had, who held them right before, until when to wait."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from steps.contracts.decision import JudgedPod
from steps.contracts.document import Sample
from steps.contracts.errors import BadInput
from steps.contracts.node_facts import NodeFacts
from steps.contracts.stop_receipt import StopReceipt
from steps.contracts.traced import Attribution, GpuClass, TracedGpu, TracedHolder
from steps.trace.devices import gpu_of_device
from steps.trace.node import trace_node

MARGIN_S: Final = 2 + 10 + 5
"""On top of the pod's own grace: 2 s after a long preStop, the runtime's 10 s, the driver's 5 s (facts/gpu-and-linux 6)."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A process, once the boot id is the same: a reused PID has another start time."""

    pid: int
    start_time_ticks: int


@dataclass(frozen=True, slots=True)
class Before:
    """One device in the capture. own: processes that must be gone. tenants: pods that shared it already, no new takers.
    held: whether the session held memory or the device."""

    at: datetime
    own: frozenset[Identity]
    tenants: frozenset[str]
    used_bytes: Sample[int]
    held: bool


@dataclass(frozen=True, slots=True)
class Device:
    """A device to watch. name: the GPU's uuid, or the kubelet's id if NVML lists no such GPU. before: None without a capture."""

    name: str
    before: Before | None


@dataclass(frozen=True, slots=True)
class Plan:
    """unreadable_before: processes the capture could not read, None without one. remark: what makes the proof weaker."""

    pod_uids: tuple[str, ...]
    deadline: datetime
    boot_id: Sample[str] | None
    unreadable_before: int | None
    devices: tuple[Device, ...]
    remark: str | None


def plan_of(receipt: StopReceipt, pods: Sequence[JudgedPod], capture: NodeFacts | None, first: NodeFacts) -> Plan:
    """The plan for the node of the first look. pods: the session's pods there, at least one.

    The devices are those the decision named, and those that capture and first look show as given to the session's pods
    or held by them: the kubelet remembers an allocation until the next one (facts 2.1).
    """
    uids = frozenset(pod.uid for pod in pods)
    acted_at = first.stamp.made_at if receipt.acted_at is None else receipt.acted_at
    traced = None if capture is None else _gpus(capture)
    names = _device_names(pods, capture, first)
    remark = None
    if capture is None:
        remark = "no capture of this node was handed over: judged by allocation and memory alone"
    return Plan(
        pod_uids=tuple(sorted(uids)),
        deadline=acted_at + timedelta(seconds=max(pod.grace_s for pod in pods) + MARGIN_S),
        boot_id=None if capture is None else capture.boot_id,
        unreadable_before=None if capture is None else capture.visibility.unreadable_processes,
        devices=tuple(Device(name, _before(name, capture, traced, uids)) for name in names),
        remark=remark,
    )


def pods_here(receipt: StopReceipt, node: str) -> tuple[JudgedPod, ...]:
    """The session's pods on a node, at least one. Raises BadInput if the stop did not act, or names no pod there."""
    if not receipt.acted:
        raise BadInput(
            f"the receipt of decision {receipt.decision_id} says nothing was stopped ({receipt.sentence}): nothing to verify"
        )
    pods = tuple(pod for pod in receipt.pods if pod.node == node)
    if not pods:
        raise BadInput(
            f"the receipt of decision {receipt.decision_id} names no pod on node {node}; run verify on the session's nodes"
        )
    return pods


def _gpus(facts: NodeFacts) -> tuple[TracedGpu, ...]:
    return trace_node(facts, None, now=facts.stamp.made_at).gpus


def _device_names(pods: Sequence[JudgedPod], capture: NodeFacts | None, first: NodeFacts) -> tuple[str, ...]:
    looks = [facts for facts in (capture, first) if facts is not None]
    gpus = [gpu for facts in looks for gpu in facts.gpus.known() or ()]
    uids = {pod.uid for pod in pods}
    ids = [device for pod in pods for device in pod.devices.known() or ()]
    ids += [one.device_id for facts in looks for one in facts.allocations.known() or () if one.pod_uid in uids]
    named = [device if (gpu := gpu_of_device(device, gpus)) is None else gpu.uuid for device in ids]
    held = [gpu.uuid for facts in looks for gpu in _gpus(facts) if any(holder.pod_uid in uids for holder in gpu.holders)]
    return tuple(dict.fromkeys([*named, *held]))


def _before(name: str, capture: NodeFacts | None, traced: Sequence[TracedGpu] | None, uids: frozenset[str]) -> Before | None:
    if capture is None or traced is None:
        return None
    gpu = next((gpu for gpu in traced if gpu.uuid == name), None)
    if gpu is None:
        return None
    own = frozenset(Identity(h.pid, h.start_time_ticks) for h in gpu.holders if must_go(h, uids))
    given = gpu.allocated_to.known() or ()
    tenants = {h.pod_uid for h in gpu.holders if h.pod_uid is not None} | {one.pod_uid for one in given}
    used = gpu.used_bytes
    return Before(at=capture.stamp.made_at, own=own, tenants=frozenset(tenants) - uids, used_bytes=used, held=bool(own))


def must_go(holder: TracedHolder, uids: frozenset[str]) -> bool:
    """The session's own holders, and those nobody can attribute: on the session's device the doubt is held against it."""
    if holder.pod_uid is not None:
        return holder.pod_uid in uids
    unattributed = holder.attribution in (Attribution.UNKNOWN, Attribution.CONFLICT)
    return unattributed and holder.gpu_class is not GpuClass.SYSTEM_HOLDER
