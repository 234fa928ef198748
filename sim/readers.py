"""The node's readers over the state file: GPUs, processes with their connections, and the kubelet's allocations."""

import shlex
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final, TypeVar

from sim.world.objects import of_kind
from sim.world.paths import POD
from sim.world.pods import GPU_RESOURCE, container_id
from sim.world.state import Json, SimGpu, SimNode, SimProcess, World
from sim.world.store import state_file
from steps.adapters.redact import redact_command
from steps.contracts.document import Sample
from steps.contracts.errors import BadInput, SourceUnavailable
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
    PodOnDisk,
    ProcessActivity,
    ProcessFacts,
    ProcessKind,
    Scan,
    SocketFacts,
    Visibility,
    VisibilityLevel,
)
from steps.contracts.ports import DeviceNode, GpuReading, ProcessScan, ProcessTree, Walk

GPU_MAJOR: Final = 195
SOURCE: Final = "simulator"
NOT_SUPPORTED: Final = "NotSupported"
LOST: Final = "GpuIsLost"


class SimulatedNode:
    """Implements GpuReader, ProcessReader and AllocationReader of one node. Raises SourceUnavailable if it is silent."""

    def __init__(self, path: Path, node: str) -> None:
        self._store, self._node = state_file(path), node

    def look(self) -> tuple[World, SimNode]:
        world = self._store.read()
        node = world.nodes.get(self._node)
        if node is None:
            raise BadInput(f"the simulated cluster has no node {self._node}; it has {', '.join(sorted(world.nodes))}")
        if node.silent:
            raise SourceUnavailable(f"node {self._node} does not answer (simulated); look at its kubelet")
        return world, node


class SimulatedGpus(SimulatedNode):
    """NVML as the node's driver would answer it."""

    def begin(self) -> Callable[[], GpuReading]:
        reading = self._read()
        return lambda: reading

    def _read(self) -> GpuReading:
        world, node = self.look()
        driver = Driver(
            driver_version=Sample.measured(node.driver_version),
            nvml_version=Sample.measured(f"13.{node.driver_version}"),
            cuda_version=Sample.measured("13.0"),
        )
        facts = tuple(_gpu_facts(world, node, gpu) for gpu in node.gpus)
        return GpuReading(driver=driver, gpus=Sample.measured(facts), pci_gpu_count=Sample.measured(len(node.gpus)))


class SimulatedProcesses(SimulatedNode):
    """/proc as a reader with every right sees it; command lines lose their secrets as they do there."""

    def devices(self, gpus: Sequence[GpuFacts]) -> Sample[tuple[DeviceNode, ...]]:
        self.look()
        named = [
            DeviceNode(name=f"nvidia{minor}", major=GPU_MAJOR, minor=minor, gpu_uuid=gpu.uuid)
            for gpu in gpus
            if (minor := gpu.minor_number.known()) is not None
        ]
        control = DeviceNode(name="nvidiactl", major=GPU_MAJOR, minor=255, gpu_uuid=None)
        return Sample.measured((*named, control))

    def walk(self) -> Walk:
        """Nothing: the state file is read whole by `scan`."""
        return Walk(frozenset(), (), {}, (), {})

    def scan(self, devices: Sequence[DeviceNode], also: Sequence[int], scan: Scan, walk: Walk | None = None) -> ProcessScan:
        world, node = self.look()
        names = {device.gpu_uuid: device.name for device in devices}
        seen = [p for p in node.processes if p.gpu_uuid in names or p.pid in also]
        return ProcessScan(
            boot_id=Sample.measured(node.boot_id),
            visibility=Visibility(level=VisibilityLevel.FULL),
            processes=tuple(_process_facts(process, names.get(process.gpu_uuid)) for process in seen),
            sockets=Sample.measured(tuple(_sockets(world, node))),
        )


class SimulatedAllocations(SimulatedNode):
    """The kubelet's device checkpoint."""

    def read(self) -> Sample[tuple[Allocation, ...]]:
        world, node = self.look()
        entries = tuple(
            Allocation(device_id=entry.device_id, resource=GPU_RESOURCE, pod_uid=entry.pod_uid, container=entry.container)
            for entry in node.allocations
        )
        return Sample.measured(entries, source="simulated kubelet checkpoint", taken_at=world.now)


class SimulatedPodFolders(SimulatedNode):
    """The kubelet's log folders, as node pods have them: names of the pods that are bound to the node, of no others."""

    def read(self, uids: Collection[str], containers: Collection[str], pids: Collection[int]) -> Sample[tuple[PodOnDisk, ...]]:
        world, node = self.look()
        pods = {pod["metadata"]["uid"]: pod for _, pod in of_kind(world, POD) if pod["spec"].get("nodeName") == node.name}
        named = (_on_disk(uid, pods[uid]) for uid in sorted(set(uids)) if uid in pods)
        return Sample.measured(tuple(named), "simulated log folders")


class SimulatedTree(SimulatedNode):
    """All processes of the node; a simulated one has no PID 1."""

    def read(self) -> ProcessTree:
        _, node = self.look()
        everyone = tuple(_process_facts(process, None) for process in node.processes)
        return ProcessTree(visibility=Visibility(level=VisibilityLevel.FULL), processes=everyone, total=len(everyone), pid1=None)


T = TypeVar("T")


def _on_disk(uid: str, pod: Json) -> PodOnDisk:
    return PodOnDisk(uid=uid, namespace=pod["metadata"]["namespace"], name=pod["metadata"]["name"], kept=None)


def _device(gpu: SimGpu, value: T) -> Sample[T]:
    """What every call to a lost device lacks."""
    return Sample[T].error(LOST, SOURCE) if gpu.lost else Sample.measured(value)


def _activity(gpu: SimGpu, value: T) -> Sample[T]:
    """Activity, where the device reports any: not supported is never zero."""
    return Sample[T].absent(NOT_SUPPORTED, SOURCE) if not gpu.metrics else _device(gpu, value)


def _gpu_facts(world: World, node: SimNode, gpu: SimGpu) -> GpuFacts:
    processes = [p for p in node.processes if p.gpu_uuid == gpu.uuid]
    listed = tuple(
        GpuProcess(pid=p.pid, used_memory_bytes=Sample.measured(p.memory_bytes), kinds=(ProcessKind.COMPUTE,))
        for p in processes
        if p.listed_by_nvml
    )
    shares = tuple(ProcessActivity(pid=p.pid, sm_ratio=p.sm_ratio) for p in processes if p.listed_by_nvml)
    busy = max((p.sm_ratio for p in processes), default=0.0)
    used = gpu.baseline_bytes + gpu.ghost_bytes + sum(p.memory_bytes for p in processes)
    activity = Activity(
        taken_at=world.now,
        used_bytes=_device(gpu, used),
        utilisation_ratio=_activity(gpu, 1.0 if gpu.latched or busy else 0.0),
        sm_active_ratio=_activity(gpu, busy),
        graphics_active_ratio=_activity(gpu, busy),
    )
    return GpuFacts(
        uuid=gpu.uuid,
        index=gpu.index,
        name=_device(gpu, gpu.name),
        minor_number=Sample.measured(gpu.index),
        pci_bus_id=Sample.measured(f"00000000:{gpu.index + 1:02X}:00.0"),
        health=Health.LOST if gpu.lost else Health.OK,
        health_reason=LOST if gpu.lost else None,
        memory=_memory(gpu, used),
        activity=(activity,),
        process_activity=_activity(gpu, shares),
        processes=_device(gpu, listed),
        process_layout=Layout.PLAUSIBLE,
        power_w=_device(gpu, 60.0 + 240.0 * busy),
        energy_j=Sample.absent("the simulator counts no energy", SOURCE),
        temperature_c=_device(gpu, 35),
        sm_clock_mhz=_device(gpu, 1410 if processes else 210),
        performance_state=_device(gpu, 0 if processes else 8),
        persistence_mode=_device(gpu, True),
        mig_mode=_device(gpu, False),
        mps_active=_device(gpu, False),
        accounting_mode=_device(gpu, False),
    )


def _memory(gpu: SimGpu, used: int) -> GpuMemory:
    return GpuMemory(
        accounting=MemoryAccounting.V2,
        total_bytes=_device(gpu, gpu.total_bytes),
        used_bytes=_device(gpu, used),
        free_bytes=_device(gpu, gpu.total_bytes - gpu.reserved_bytes - used),
        reserved_bytes=_device(gpu, gpu.reserved_bytes),
    )


def _process_facts(process: SimProcess, device: str | None) -> ProcessFacts:
    lines = () if process.pod_uid is None else (_cgroup(process.pod_uid, process.container_id),)
    holds = () if device is None else (Hold(device=device, gpu_uuid=process.gpu_uuid, via=HoldVia.DESCRIPTOR),)
    return ProcessFacts(
        pid=process.pid,
        start_time_ticks=process.start_time_ticks,
        parent_pid=process.pid - 1,
        process_group=process.pid,
        session_id=process.pid,
        state=process.state,
        name=process.name,
        executable=Sample.measured(process.executable),
        command=Sample.measured(redact_command(shlex.split(process.command))),
        threads=8,
        cgroup=Sample.measured(lines or ("0::/system.slice/host.service",)),
        holds=holds,
        adopted=Sample.measured(False),
    )


def _sockets(world: World, node: SimNode) -> list[SocketFacts]:
    """One network namespace for each running pod of the node."""
    found = []
    for _, pod in of_kind(world, POD):
        uid = pod["metadata"]["uid"]
        if pod["spec"].get("nodeName") == node.name and uid in world.connections:
            found.append(_socket(pod, world.connections[uid]))
    return found


def _socket(pod: Json, connections: int) -> SocketFacts:
    uid = pod["metadata"]["uid"]
    line = _cgroup(uid, container_id(uid, pod["spec"]["containers"][0]["name"]))
    return SocketFacts(network_namespace=f"net:[{uid[:8]}]", cgroup=(line,), established=Sample.measured(connections))


def _cgroup(pod_uid: str, container: str | None) -> str:
    """The path that the systemd driver and containerd give (facts/gpu-and-linux 1)."""
    pod = f"kubepods-burstable-pod{pod_uid.replace('-', '_')}.slice"
    scope = f"/cri-containerd-{container}.scope" if container else ""
    return f"0::/kubepods.slice/kubepods-burstable.slice/{pod}{scope}"
