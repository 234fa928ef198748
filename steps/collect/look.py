"""A look at a node: some readings of its GPUs, allocations, processes and connections, put together as NodeFacts.

Used by collect, capture and verify. What the looks disagree on is put together so that no gap gets lost and no sign of
life either; judging is left to others.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from steps.collect.combine import combine_gpus, combine_processes, combine_sockets, combine_visibility
from steps.collect.relevance import containers_in, keep_relevant, pods_in
from steps.contracts.document import Sample, Stamp
from steps.contracts.errors import BadInput
from steps.contracts.node_facts import Allocation, GpuFacts, NodeFacts, Scan, VisibilityLevel
from steps.contracts.ports import GpuReading, Outside, ProcessScan


class Look(NamedTuple):
    """One moment. NVML and a walk over all processes run side by side; then the processes that either names are looked up."""

    at: datetime
    gpus: GpuReading
    processes: ProcessScan


def look(
    node: str, outside: Outside, samples: int, interval_s: float, *, made_by: str = "collect", scan: Scan = Scan.FULL
) -> NodeFacts:
    """Watch the node for `samples` looks, `interval_s` apart. Raises BadInput for less than one look."""
    if samples < 1:
        raise BadInput(f"--samples={samples} is no look at all; give 1 or more")
    looks = [glance(outside, scan)]
    for _ in range(samples - 1):
        outside.clock.sleep(interval_s)
        looks.append(glance(outside, scan))
    return facts_of(node, looks, outside, made_by=made_by, scan=scan)


def facts_of(node: str, looks: Sequence[Look], outside: Outside, *, made_by: str, scan: Scan = Scan.FULL) -> NodeFacts:
    """What these looks, oldest first, say together; allocations and the kubelet's folders are read now, after all of them."""
    allocations = outside.allocations().read()
    facts = _facts(node, looks, allocations, scan, Stamp(made_by=made_by, made_at=outside.clock.now(), origin=outside.origin))
    lines = [line for process in facts.processes if (known := process.cgroup.known()) is not None for line in known]
    pids = [process.pid for process in facts.processes]
    given = allocations.known()
    uids = pods_in(lines) | {one.pod_uid for one in (() if given is None else given)}
    return msgspec.structs.replace(facts, pods_on_disk=outside.pods_on_disk().read(uids, containers_in(lines), pids))


def glance(outside: Outside, scan: Scan = Scan.FULL) -> Look:
    """One look at everything that changes from moment to moment."""
    at = outside.clock.now()
    answer = outside.gpus().begin()
    reader = outside.processes()
    walk = reader.walk() if scan is Scan.FULL else None
    reading = answer()
    gpus = reading.gpus.known()
    listed = () if gpus is None else gpus
    nodes = reader.devices(listed)
    known_nodes = nodes.known()
    found = reader.scan(() if known_nodes is None else known_nodes, _pids(listed), scan, walk)
    return Look(at, reading, _with_gaps(found, reading.refused, nodes, listed))


def _pids(gpus: Sequence[GpuFacts]) -> tuple[int, ...]:
    lists = [listed for gpu in gpus if (listed := gpu.processes.known()) is not None]
    return tuple(sorted({process.pid for listed in lists for process in listed}))


def _with_gaps(found: ProcessScan, refused: Sequence[str], nodes: Sample[Any], gpus: Sequence[GpuFacts]) -> ProcessScan:
    """The scan, its visibility lowered by what hides holders: a GPU whose device number is not known, and whatever NVML refused."""
    gaps = [] if not refused else [f"NVML refused, for lack of permission (error 4): {', '.join(refused)}"]
    unseen = _unrecognised(nodes, gpus)
    gaps += [] if unseen is None else [unseen]
    if not gaps:
        return found
    seen = found.visibility
    lowered = VisibilityLevel.PARTIAL if seen.level is VisibilityLevel.FULL else seen.level
    return msgspec.structs.replace(found, visibility=msgspec.structs.replace(seen, level=lowered, reasons=(*seen.reasons, *gaps)))


def _unrecognised(nodes: Sample[Any], gpus: Sequence[GpuFacts]) -> str | None:
    """Which GPUs' holders could not be recognised, and why; None: of none."""
    known = nodes.known()
    recognised = set() if known is None else {node.gpu_uuid for node in known}
    unseen = [gpu.uuid for gpu in gpus if gpu.parent_uuid is None and gpu.uuid not in recognised]
    if not unseen:
        return None
    why = nodes.reason if nodes.reason is not None else "they have no device node"
    return f"holders of {', '.join(unseen)} cannot be recognised: {why}"


def _facts(node: str, looks: Sequence[Look], allocations: Sample[tuple[Allocation, ...]], scan: Scan, stamp: Stamp) -> NodeFacts:
    last = looks[-1]
    listed = last.gpus.gpus.known()
    kept = keep_relevant(
        combine_processes([one.processes for one in looks]),
        combine_sockets([one.processes.sockets for one in looks]),
        combine_visibility([one.processes.visibility for one in looks]),
        allocations=allocations,
        listed_by_nvml=_pids(() if listed is None else listed),
    )
    return NodeFacts(
        stamp=stamp,
        node=node,
        boot_id=last.processes.boot_id,
        scan=scan,
        samples=len(looks),
        span_s=(last.at - looks[0].at).total_seconds(),
        visibility=kept.visibility,
        driver=last.gpus.driver,
        gpus=combine_gpus([(one.at, one.gpus.gpus) for one in looks]),
        pci_gpu_count=last.gpus.pci_gpu_count,
        allocations=allocations,
        processes=kept.processes,
        sockets=kept.sockets,
    )
