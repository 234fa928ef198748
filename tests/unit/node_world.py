"""A node that is not there: readers that answer what they are given, one answer a look, and builders of ordinary facts."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from steps.contracts.document import Origin, Sample
from steps.contracts.node_facts import (
    Allocation,
    GpuFacts,
    Hold,
    HoldVia,
    PodOnDisk,
    ProcessFacts,
    Scan,
    SocketFacts,
    Visibility,
    VisibilityLevel,
)
from steps.contracts.ports import DeviceNode, GpuReading, ProcessScan, Walk
from tests.unit.fake_nvml import FakeClock, FakeGpu, FakeNvml, read

T = TypeVar("T")

POD = "11112222-3333-4444-5555-666677778888"
CGROUP = f"0::/kubepods/burstable/pod{POD}/{'ab' * 32}"
FULL = Visibility(level=VisibilityLevel.FULL)


def reading(*gpus: FakeGpu) -> GpuReading:
    """What the real NVML code makes of these GPUs."""
    return read(FakeNvml(*gpus))


def process(
    pid: int = 7, *, state: str = "S", start: int = 100, cgroup: str = CGROUP, device: str | None = "nvidia0"
) -> ProcessFacts:
    holds = () if device is None else (Hold(device=device, gpu_uuid="GPU-a", via=HoldVia.DESCRIPTOR),)
    return ProcessFacts(
        pid=pid,
        start_time_ticks=start,
        parent_pid=1,
        process_group=pid,
        session_id=pid,
        state=state,
        name="python3",
        executable=Sample.measured("/usr/bin/python3"),
        command=Sample.measured("python3 train.py"),
        threads=1,
        cgroup=Sample.measured((cgroup,)),
        holds=holds,
        adopted=Sample.measured(False),
    )


def space(count: int | None, name: str = "4026532000", cgroup: str = CGROUP) -> SocketFacts:
    established: Sample[int] = Sample.error("not readable") if count is None else Sample.measured(count)
    return SocketFacts(network_namespace=name, cgroup=(cgroup,), established=established)


def scan(
    *processes: ProcessFacts,
    sockets: Sample[tuple[SocketFacts, ...]] | None = None,
    visibility: Visibility = FULL,
) -> ProcessScan:
    empty: Sample[tuple[SocketFacts, ...]] = Sample.measured(())
    return ProcessScan(
        boot_id=Sample.measured("boot"),
        visibility=visibility,
        processes=processes,
        sockets=empty if sockets is None else sockets,
    )


def given(*pods: str) -> Sample[tuple[Allocation, ...]]:
    return Sample.measured(
        tuple(Allocation(device_id="GPU-a", resource="nvidia.com/gpu", pod_uid=pod, container="main") for pod in pods)
    )


@dataclass
class World:
    """Fits Outside as far as a look uses it. Each list is used up one answer a look; the last answer repeats."""

    readings: list[GpuReading]
    scans: list[ProcessScan]
    allocated: Sample[tuple[Allocation, ...]] = field(default_factory=lambda: given(POD))
    nodes: Sample[tuple[DeviceNode, ...]] | None = None
    folders: Sample[tuple[PodOnDisk, ...]] = field(default_factory=lambda: Sample.absent("no kubelet here"))
    clock: FakeClock = field(default_factory=FakeClock)
    origin: Origin = Origin.REAL
    environment: Mapping[str, str] = field(default_factory=dict)
    asked: list[tuple[tuple[str, ...], tuple[int, ...], Scan]] = field(default_factory=list)

    def gpus(self) -> "GpuAnswers":
        return GpuAnswers(self)

    def processes(self) -> "ProcessAnswers":
        return ProcessAnswers(self)

    def allocations(self) -> "AllocationAnswer":
        return AllocationAnswer(self.allocated)

    def pods_on_disk(self) -> "FolderAnswer":
        return FolderAnswer(self.folders)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a look does not need {name}")


@dataclass
class GpuAnswers:
    world: World

    def begin(self) -> Callable[[], GpuReading]:
        return lambda: _next(self.world.readings)


@dataclass
class ProcessAnswers:
    world: World

    def devices(self, gpus: Sequence[GpuFacts]) -> Sample[tuple[DeviceNode, ...]]:
        if self.world.nodes is not None:
            return self.world.nodes
        whole = [gpu for gpu in gpus if gpu.parent_uuid is None]
        return Sample.measured(
            tuple(DeviceNode(name=f"nvidia{n}", major=195, minor=n, gpu_uuid=gpu.uuid) for n, gpu in enumerate(whole))
        )

    def walk(self) -> Walk:
        return Walk(frozenset(), (), {}, (), {})

    def scan(self, devices: Sequence[DeviceNode], also: Sequence[int], scan: Scan, walk: Walk | None = None) -> ProcessScan:
        assert (walk is None) == (scan is Scan.QUICK), "a full look walks while NVML answers, a quick one does not"
        self.world.asked.append((tuple(node.name for node in devices), tuple(also), scan))
        return _next(self.world.scans)


@dataclass
class AllocationAnswer:
    answer: Sample[tuple[Allocation, ...]]

    def read(self) -> Sample[tuple[Allocation, ...]]:
        return self.answer


@dataclass
class FolderAnswer:
    """Only of the pods that are asked for, as the real folders answer."""

    answer: Sample[tuple[PodOnDisk, ...]]

    def read(self, uids: Collection[str], containers: Collection[str], pids: Collection[int]) -> Sample[tuple[PodOnDisk, ...]]:
        known = self.answer.known()
        return self.answer if known is None else Sample.measured(tuple(one for one in known if one.uid in uids), self.answer.source)


def _next(answers: list[T]) -> T:
    return answers[0] if len(answers) == 1 else answers.pop(0)
