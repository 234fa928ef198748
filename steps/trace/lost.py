"""GPUs that the PCI bus has, or had, and NVML no longer lists (facts/gpu-and-linux 3.8: off the bus without an Xid)."""

from collections.abc import Sequence

from steps.contracts.document import Sample
from steps.contracts.node_facts import GpuFacts, Hold, NodeFacts, ProcessFacts
from steps.contracts.traced import AllocatedTo, Finding, GpuClass, TracedGpu
from steps.trace.devices import gpu_of_device
from steps.trace.holding import is_stuck
from steps.trace.remedies import REMEDY


def lost_gpus(facts: NodeFacts, gpus: Sequence[GpuFacts]) -> tuple[TracedGpu, ...]:
    """One entry for each GPU by which NVML's count falls short of PCI's. Unknown counts prove nothing.

    A lost GPU is named by the allocations that NVML's list cannot place, as far as there are such; its readings are unknown.
    """
    on_bus = facts.pci_gpu_count.known()
    listed = sum(gpu.parent_uuid is None for gpu in gpus)
    if on_bus is None or on_bus <= listed:
        return ()
    missing = on_bus - listed
    reason = f"PCI shows {on_bus} GPUs, NVML lists {listed}: {missing} left the bus"
    names = _unplaced(facts, gpus)
    first = 1 + max((gpu.index for gpu in gpus), default=-1)
    named = [names[place] if place < len(names) else f"unlisted-{place}" for place in range(missing)]
    return tuple(_lost(uuid, first + place, reason, facts) for place, uuid in enumerate(named))


def _unplaced(facts: NodeFacts, gpus: Sequence[GpuFacts]) -> list[str]:
    allocations = facts.allocations.known() or ()
    bases = {one.device_id.split("::", 1)[0] for one in allocations if gpu_of_device(one.device_id, gpus) is None}
    return sorted(base for base in bases if base.startswith("GPU-"))


def _lost(uuid: str, index: int, reason: str, facts: NodeFacts) -> TracedGpu:
    unknown = "NVML does not list this GPU"
    given = [one for one in facts.allocations.known() or () if one.device_id.split("::", 1)[0] == uuid]
    allocated = tuple(
        AllocatedTo(
            device_id=one.device_id, pod_uid=one.pod_uid, pod=None, namespace=None, container=one.container, session_uid=None
        )
        for one in given
    )
    return TracedGpu(
        uuid=uuid,
        index=index,
        headline=GpuClass.GPU_LOST,
        reason=reason,
        remedy=REMEDY[GpuClass.GPU_LOST],
        findings=_holders_of_lost(facts),
        allocated_to=Sample.measured(allocated) if given else Sample.absent(unknown),
        holders=(),
        total_bytes=Sample.absent(unknown),
        used_bytes=Sample.absent(unknown),
        baseline_bytes=Sample.absent(unknown),
        unexplained_bytes=Sample.absent(unknown),
        utilisation_ratio=Sample.absent(unknown),
        sm_active_ratio=Sample.absent(unknown),
    )


def _holders_of_lost(facts: NodeFacts) -> tuple[Finding, ...]:
    """Processes that still hold a GPU node which belongs to no listed GPU, and those of them that are stuck in D."""
    holders = [process for process in facts.processes if any(_of_no_listed_gpu(hold) for hold in process.holds)]
    stuck = [process for process in holders if is_stuck(process, facts)]
    found = []
    if holders:
        found.append(_finding(GpuClass.HIDDEN_HOLDER, f"{_pids(holders)} holds the node of a GPU that NVML does not list"))
    if stuck:
        found.append(_finding(GpuClass.STUCK_D, f"{_pids(stuck)} holds it in uninterruptible sleep"))
    return tuple(found)


def _of_no_listed_gpu(hold: Hold) -> bool:
    return hold.gpu_uuid is None and hold.device.removeprefix("nvidia").isdecimal()


def _pids(processes: Sequence[ProcessFacts]) -> str:
    return f"PID {', '.join(str(process.pid) for process in processes)}"


def _finding(gpu_class: GpuClass, detail: str) -> Finding:
    return Finding(gpu_class=gpu_class, detail=detail, remedy=REMEDY[GpuClass.GPU_LOST])
