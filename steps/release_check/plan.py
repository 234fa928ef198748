"""What to watch for a pod that is gone: its devices as far as the node still tells, and whose processes must be gone. Pure.

The kubelet forgets a dead pod's allocation only at the next one, so it often still names the device. Where it does not, any GPU
of the node may have been the pod's.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

import msgspec

from steps.contracts.document import Sample
from steps.contracts.node_facts import NodeFacts, ProcessFacts
from steps.contracts.traced import TracedGpu, TracedHolder
from steps.trace.cgroup import parse_file
from steps.trace.devices import gpu_of_device
from steps.trace.node import trace_node
from steps.verify.plan import MARGIN_S, Before, Device, Identity, Plan


@dataclass(frozen=True, slots=True)
class DeletedPod:
    """The pod as the event describes it. container_ids: without the runtime's prefix. being_deleted: the event says so; else the
    pod may live, since one that leaves a source's selection is told as deleted, too."""

    uid: str
    container_ids: frozenset[str]
    being_deleted: bool
    grace_s: int


@dataclass(frozen=True, slots=True)
class Outlook:
    """The plan, and what it rests on. named: the devices are known to be the pod's; else they are all the node has.
    holders: the pod's own at the first look."""

    plan: Plan
    named: bool
    holders: tuple[TracedHolder, ...]


def container_ids(listed: str) -> frozenset[str]:
    """The ids in a JSON list of `runtime://id`; one that never ran is empty and left out."""
    full = msgspec.json.decode(listed, type=tuple[str, ...])
    return frozenset(one.partition("://")[2] for one in full if one)


def outlook(pod: DeletedPod, first: NodeFacts) -> Outlook:
    """The plan as of the first look. The deadline counts from then on: the pod's whole grace, and the margins of verify, because
    after a force delete the processes may have all of it left."""
    gpus = trace_node(first, None, now=first.stamp.made_at).gpus
    own = _processes_of(pod, first.processes)
    holding = {gpu.uuid: _holders(gpu, pod, own) for gpu in gpus}
    given = _given(pod, first)
    named = tuple(dict.fromkeys([*given, *(uuid for uuid, holders in holding.items() if holders)]))
    plan = Plan(
        pod_uids=(pod.uid,),
        deadline=first.stamp.made_at + timedelta(seconds=pod.grace_s + MARGIN_S),
        boot_id=first.boot_id,
        unreadable_before=None,
        devices=tuple(_device(name, gpus, holding, first) for name in named or tuple(holding)),
        remark=None,
    )
    return Outlook(plan, bool(named), tuple(holder for holders in holding.values() for holder in holders))


def _processes_of(pod: DeletedPod, processes: Iterable[ProcessFacts]) -> frozenset[Identity]:
    """Those in one of the pod's containers: where the cgroup shows no pod, or a static pod's hash, the container id tells."""
    return frozenset(
        Identity(process.pid, process.start_time_ticks)
        for process in processes
        if parse_file(process.cgroup.known() or ()).name.container_id in pod.container_ids
    )


def _holders(gpu: TracedGpu, pod: DeletedPod, own: frozenset[Identity]) -> tuple[TracedHolder, ...]:
    return tuple(one for one in gpu.holders if one.pod_uid == pod.uid or Identity(one.pid, one.start_time_ticks) in own)


def _given(pod: DeletedPod, first: NodeFacts) -> tuple[str, ...]:
    """Devices the kubelet still has down as this pod's, by the GPU's uuid, or by its own id where NVML lists no such GPU."""
    gpus = first.gpus.known() or ()
    ids = [one.device_id for one in first.allocations.known() or () if one.pod_uid == pod.uid]
    return tuple(device if (gpu := gpu_of_device(device, gpus)) is None else gpu.uuid for device in ids)


def _device(name: str, gpus: Iterable[TracedGpu], holding: dict[str, tuple[TracedHolder, ...]], first: NodeFacts) -> Device:
    gpu = next((one for one in gpus if one.uuid == name), None)
    if gpu is None:
        return Device(name, None)
    own = frozenset(Identity(one.pid, one.start_time_ticks) for one in holding[name])
    used: Sample[int] = gpu.used_bytes
    return Device(name, Before(at=first.stamp.made_at, own=own, tenants=frozenset(), used_bytes=used, held=bool(own)))
