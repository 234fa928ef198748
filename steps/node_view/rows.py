"""The rows of `gpu-reclaim trace`: one a process, and one a device that a pod was given and uses by no process. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from steps.contracts.document import Sample
from steps.contracts.node_facts import Allocation, NodeFacts, ProcessFacts
from steps.contracts.traced import AllocatedTo, Attribution, GpuClass, Qos, TracedGpu, TracedHolder
from steps.node_view.picture import NodePicture
from steps.node_view.words import NOT_APPLICABLE, UNKNOWN, mib, printable
from steps.trace.attribution import Owner, PodIndex, attribute

COLUMNS: Final = ("PID", "STATE", "GPU_MEM", "NSMI", "QOS", "POD", "NAMESPACE", "CONTAINER")
WIDE_COLUMNS: Final = (*COLUMNS, "GPU", "CLASS", "NAME", "WHOSE")
SHRINKING: Final = (5, 6, 7)
EMPTY: Final = "empty"
"""STATE of a device that was given to a pod without a process on it."""
GIVEN: Final = "given"
"""STATE of a device that a pod was given, where NVML does not answer or holders cannot be told: whether it is used is not known."""
UNTOLD: Final = (GpuClass.BLIND, GpuClass.ABI_MISMATCH, GpuClass.GPU_LOST)
"""Headlines under which nothing is said about holders."""
STALE: Final = "stale"
"""STATE of such a record whose pod is gone: the kubelet drops it at the next allocation, and nobody holds anything."""


@dataclass(frozen=True, slots=True)
class Place:
    """Whose a row is, in words for the columns POD, NAMESPACE and CONTAINER."""

    pod: str
    namespace: str
    container: str


def narrow_rows(picture: NodePicture) -> list[tuple[str, ...]]:
    """One row a process, whatever number of GPUs it is on: memory is the sum, and unknown as soon as one part is."""
    by_pid: dict[int, list[TracedHolder]] = {}
    for gpu in picture.traced.gpus:
        for holder in gpu.holders:
            by_pid.setdefault(holder.pid, []).append(holder)
    rows = [_process_row(held) for _, held in sorted(by_pid.items())]
    if picture.traced.problem is not None:
        rows += [_unlisted_row(process, owner) for process, owner in holders_without_nvml(picture.facts)]
        rows += [_given_row(one, _index(picture.facts)) for one in picture.facts.allocations.known() or ()]
    return rows + [_empty_row(given, gpu) for gpu in picture.traced.gpus for given in empty_allocations(gpu)]


def wide_rows(picture: NodePicture) -> list[tuple[str, ...]]:
    """One row a process and GPU, with the GPU's index, class, name and whose it is by which evidence."""
    rows: list[tuple[str, ...]] = []
    for gpu in picture.traced.gpus:
        index = str(gpu.index)
        for holder in sorted(gpu.holders, key=lambda one: one.pid):
            more = (index, holder.gpu_class.value, printable(holder.name), printable(holder.attribution_reason))
            rows.append((*_process_row([holder]), *more))
        rows += [(*_empty_row(given, gpu), index, NOT_APPLICABLE, NOT_APPLICABLE, _source(gpu)) for given in empty_allocations(gpu)]
    if picture.traced.problem is not None:
        for process, owner in holders_without_nvml(picture.facts):
            nodes = ",".join(sorted({hold.device for hold in process.holds}))
            rows.append((*_unlisted_row(process, owner), nodes, UNKNOWN, printable(process.name), printable(owner.reason)))
        for one in picture.facts.allocations.known() or ():
            given = _given_row(one, _index(picture.facts))
            rows.append((*given, printable(one.device_id), NOT_APPLICABLE, NOT_APPLICABLE, "by the kubelet's record"))
    return rows


def empty_allocations(gpu: TracedGpu) -> list[AllocatedTo]:
    """Devices that a pod was given and has no process on. Empty if the record is not known, which the text says apart."""
    given = gpu.allocated_to.known()
    holders = {holder.pod_uid for holder in gpu.holders}
    return [one for one in (() if given is None else given) if one.pod_uid not in holders]


def holders_without_nvml(facts: NodeFacts) -> Iterator[tuple[ProcessFacts, Owner]]:
    """Where NVML does not answer: who holds a device node that names a GPU, told by /proc alone."""
    index = _index(facts)
    for process in sorted(facts.processes, key=lambda one: one.pid):
        if any(hold.device.removeprefix("nvidia").isdecimal() for hold in process.holds):
            yield process, attribute(process.cgroup, index)


def _index(facts: NodeFacts) -> PodIndex:
    on_disk = facts.pods_on_disk.known()
    return PodIndex(None, facts.node, () if on_disk is None else on_disk)


def _process_row(held: Sequence[TracedHolder]) -> tuple[str, ...]:
    first = held[0]
    place = _place(first.attribution, first.pod_uid, first.pod, first.namespace, first.container)
    return (
        str(first.pid),
        printable(first.state),
        _sum([one.gpu_memory_bytes for one in held]),
        _listed([one.known_to_nvml for one in held]),
        first.qos.value,
        *_cells(place),
    )


def _listed(known: Sequence[bool | None]) -> str:
    """`no` is an accusation, so it needs a list: one that NVML refused or that cannot be right accuses nobody."""
    return "no" if False in known else UNKNOWN if None in known else "yes"


def _unlisted_row(process: ProcessFacts, owner: Owner) -> tuple[str, ...]:
    place = _place(owner.attribution, owner.pod_uid, owner.name, owner.namespace, owner.container)
    return (str(process.pid), printable(process.state), UNKNOWN, UNKNOWN, owner.qos.value, *_cells(place))


def _empty_row(given: AllocatedTo, gpu: TracedGpu) -> tuple[str, ...]:
    place = _place(Attribution.CONTAINER, given.pod_uid, given.pod, given.namespace, given.container)
    state = STALE if given.lives is False else GIVEN if gpu.headline in UNTOLD else EMPTY
    return (NOT_APPLICABLE, state, NOT_APPLICABLE, NOT_APPLICABLE, Qos.UNKNOWN.value, *_cells(place))


def _given_row(one: Allocation, pods: PodIndex) -> tuple[str, ...]:
    named = pods.on_disk(one.pod_uid)
    name, namespace = (None, None) if named is None else (named.name, named.namespace)
    place = _place(Attribution.CONTAINER, one.pod_uid, name, namespace, one.container)
    return (NOT_APPLICABLE, GIVEN, NOT_APPLICABLE, NOT_APPLICABLE, Qos.UNKNOWN.value, *_cells(place))


def _sum(parts: Sequence[Sample[int]]) -> str:
    known = [value for part in parts if (value := part.known()) is not None]
    return mib(Sample.measured(sum(known))) if len(known) == len(parts) else UNKNOWN


def _place(attribution: Attribution, uid: str | None, pod: str | None, namespace: str | None, container: str | None) -> Place:
    """A host's process has no pod, and a pod without a name is told by its uid; a conflict names nobody."""
    if attribution is Attribution.HOST:
        return Place(NOT_APPLICABLE, NOT_APPLICABLE, NOT_APPLICABLE)
    if attribution is Attribution.CONFLICT:
        return Place("CONFLICT", UNKNOWN, UNKNOWN)
    return Place(pod or uid or UNKNOWN, namespace or UNKNOWN, container or UNKNOWN)


def _cells(place: Place) -> tuple[str, str, str]:
    return printable(place.pod), printable(place.namespace), printable(place.container)


def _source(gpu: TracedGpu) -> str:
    return f"by {gpu.allocated_to.source}" if gpu.allocated_to.source else "by the kubelet's record"
