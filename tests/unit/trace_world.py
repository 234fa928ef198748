"""Builders for facts of a node: the ordinary is supplied, a test names what deviates."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from steps.contracts.cluster_facts import ContainerFacts, Phase, PodFacts
from steps.contracts.document import Origin, Sample, Stamp
from steps.contracts.node_facts import (
    Activity,
    Allocation,
    Driver,
    GpuFacts,
    GpuMemory,
    GpuProcess,
    Health,
    Hold,
    HoldVia,
    Layout,
    MemoryAccounting,
    NodeFacts,
    ProcessActivity,
    ProcessFacts,
    ProcessKind,
    Scan,
    SocketFacts,
    Visibility,
    VisibilityLevel,
)

MIB: Final = 1024 * 1024
NOON: Final = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
NODE: Final = "node-a"
GPU_A: Final = "GPU-aaaaaaaa-0000-4000-8000-000000000001"
GPU_B: Final = "GPU-bbbbbbbb-0000-4000-8000-000000000002"
POD_A: Final = "11111111-aaaa-4bbb-8ccc-000000000001"
POD_B: Final = "22222222-aaaa-4bbb-8ccc-000000000002"
CONTAINER_A: Final = "a" * 64
CONTAINER_B: Final = "b" * 64


def unknown(reason: str = "not built") -> Sample[Any]:
    return Sample.absent(reason)


def measured(value: Any) -> Sample[Any]:
    """None becomes unknown: a builder's shorthand, for tests only."""
    return unknown("not available") if value is None else Sample.measured(value)


def cgroup_of(pod: str = POD_A, container: str = CONTAINER_A) -> tuple[str, ...]:
    slice_name = f"kubepods-burstable-pod{pod.replace('-', '_')}.slice"
    return (f"0::/kubepods.slice/kubepods-burstable.slice/{slice_name}/cri-containerd-{container}.scope",)


def process(pid: int = 4001, cgroup: tuple[str, ...] | None = cgroup_of(), **other: Any) -> ProcessFacts:
    """A live process with the first GPU's node open; start time follows from the PID."""
    given: dict[str, Any] = {
        "start_time_ticks": 1000 + pid,
        "parent_pid": 1,
        "process_group": pid,
        "session_id": pid,
        "state": "S",
        "name": "python3",
        "executable": Sample.measured("/usr/bin/python3"),
        "command": unknown(),
        "threads": 1,
        "holds": (hold(),),
        "adopted": unknown("PPid 1 alone says nothing"),
        "samples_in_state": 4,
    }
    return ProcessFacts(pid=pid, cgroup=measured(cgroup), **{**given, **other})


def hold(device: str = "nvidia0", gpu: str | None = GPU_A, via: HoldVia = HoldVia.DESCRIPTOR, **other: Any) -> Hold:
    return Hold(device=device, gpu_uuid=gpu, via=via, **other)


def listed(pid: int = 4001, mib: int | None = 8000, kind: ProcessKind = ProcessKind.COMPUTE) -> GpuProcess:
    return GpuProcess(pid=pid, used_memory_bytes=measured(None if mib is None else mib * MIB), kinds=(kind,))


def moment(used_mib: int | None = 0, util: float | None = 0.0, sm: float | None = None, graphics: float | None = None) -> Activity:
    return Activity(
        taken_at=NOON,
        used_bytes=measured(None if used_mib is None else used_mib * MIB),
        utilisation_ratio=measured(util),
        sm_active_ratio=measured(sm),
        graphics_active_ratio=measured(graphics),
    )


def memory(
    used_mib: int | None = 0, total_mib: int | None = 81920, reserved_mib: int | None = None, accounting: str = "v2"
) -> GpuMemory:
    return GpuMemory(
        accounting=MemoryAccounting(accounting),
        total_bytes=measured(None if total_mib is None else total_mib * MIB),
        used_bytes=measured(None if used_mib is None else used_mib * MIB),
        free_bytes=unknown(),
        reserved_bytes=measured(None if reserved_mib is None else reserved_mib * MIB),
    )


def gpu(
    uuid: str = GPU_A,
    *,
    used_mib: int | None = 0,
    processes: Sequence[GpuProcess] | None = (),
    activity: Sequence[Activity] | None = None,
    figures: Sequence[ProcessActivity] | None = None,
    samples: int = 4,
    index: int = 0,
    **other: Any,
) -> GpuFacts:
    given: dict[str, Any] = {
        "name": unknown(),
        "minor_number": Sample.measured(index),
        "pci_bus_id": unknown(),
        "health": Health.OK,
        "memory": memory(used_mib),
        "process_layout": Layout.PLAUSIBLE,
    }
    rest = (
        "power_w",
        "energy_j",
        "temperature_c",
        "sm_clock_mhz",
        "performance_state",
        "persistence_mode",
        "mig_mode",
        "mps_active",
        "accounting_mode",
    )
    given.update({name: unknown() for name in rest})
    return GpuFacts(
        uuid=uuid,
        index=index,
        activity=(moment(used_mib),) * samples if activity is None else tuple(activity),
        process_activity=measured(None if figures is None else tuple(figures)),
        processes=measured(None if processes is None else tuple(processes)),
        **{**given, **other},
    )


def facts(
    gpus: Sequence[GpuFacts] | None = None,
    processes: Sequence[ProcessFacts] = (),
    *,
    allocations: Sequence[Allocation] | None = (),
    sockets: Sequence[SocketFacts] | None = (),
    at: datetime = NOON,
    **other: Any,
) -> NodeFacts:
    """Four looks over 90 s, everything readable."""
    given: dict[str, Any] = {
        "node": NODE,
        "boot_id": Sample.measured("boot-1"),
        "scan": Scan.FULL,
        "samples": 4,
        "span_s": 90.0,
        "visibility": Visibility(level=VisibilityLevel.FULL),
        "driver": Driver(driver_version=unknown(), nvml_version=unknown(), cuda_version=unknown()),
        "pci_gpu_count": unknown(),
    }
    return NodeFacts(
        stamp=Stamp(made_by="test", made_at=at, origin=Origin.SIMULATED),
        gpus=Sample.measured((gpu(),) if gpus is None else tuple(gpus)),
        processes=tuple(processes),
        allocations=measured(None if allocations is None else tuple(allocations)),
        sockets=measured(None if sockets is None else tuple(sockets)),
        **{**given, **other},
    )


def allocation(device: str = GPU_A, pod: str = POD_A) -> Allocation:
    return Allocation(device_id=device, resource="nvidia.com/gpu", pod_uid=pod, container="main")


def partial(unreadable: int = 1) -> Visibility:
    return Visibility(level=VisibilityLevel.PARTIAL, reasons=("EACCES on fd",), unreadable_processes=unreadable)


def blind() -> Visibility:
    return Visibility(level=VisibilityLevel.BLIND, reasons=("another PID namespace than the node's",))


def pod(
    uid: str = POD_A, containers: Sequence[str] = (CONTAINER_A,), *, terminating_s: float | None = None, **other: Any
) -> PodFacts:
    given: dict[str, Any] = {
        "name": f"pod-{uid[:4]}",
        "namespace": "team",
        "node": NODE,
        "phase": Phase.RUNNING,
        "created_at": NOON - timedelta(days=1),
        "started_at": NOON - timedelta(days=1),
        "deletion_requested_at": None if terminating_s is None else NOON - timedelta(seconds=terminating_s),
        "grace_s": 30,
        "gpus_requested": 1,
        "containers": (ContainerFacts(name="main", container_ids=tuple(containers)),),
        "owner_uid": f"session-{uid[:4]}",
    }
    return PodFacts(uid=uid, **{**given, **other})
