"""What one look at one node says: GPUs, who was given them, who holds them. Made by collect and capture.

Ids follow facts/gpu-and-linux: a process is (boot id, pid, start time); device memory is v2 accounting unless it says v1.
"""

import enum
from typing import Literal

from steps.contracts.cluster_facts import ContainerFacts
from steps.contracts.document import Document, Instant, Sample, Stamp


class Scan(enum.Enum):
    """How thoroughly /proc was read. A quick scan is never the basis of a stop or of verify."""

    FULL = "full"
    QUICK = "quick"


class VisibilityLevel(enum.Enum):
    """full: every process was readable; partial: some were not; blind: another PID namespace than the node's."""

    FULL = "full"
    PARTIAL = "partial"
    BLIND = "blind"


class Visibility(Document, frozen=True, kw_only=True):
    """What the reader could see, and why not more."""

    level: VisibilityLevel
    reasons: tuple[str, ...] = ()
    unreadable_processes: int = 0


class MemoryAccounting(enum.Enum):
    """v1 counts driver-reserved memory as used, v2 reports it apart."""

    V1 = "v1"
    V2 = "v2"


class GpuMemory(Document, frozen=True, kw_only=True):
    accounting: MemoryAccounting
    total_bytes: Sample[int]
    used_bytes: Sample[int]
    free_bytes: Sample[int]
    reserved_bytes: Sample[int]


class Health(enum.Enum):
    """What NVML says of the device itself."""

    OK = "ok"
    LOST = "lost"
    RESET_REQUIRED = "reset required"
    UNKNOWN = "unknown"


class ProcessKind(enum.Enum):
    """The NVML list a process stood in."""

    COMPUTE = "compute"
    GRAPHICS = "graphics"
    MPS = "mps"


class GpuProcess(Document, frozen=True, kw_only=True):
    """One entry of NVML's process lists; memory None in a container or on a MIG parent arrives as absent."""

    pid: int
    used_memory_bytes: Sample[int]
    kinds: tuple[ProcessKind, ...]


class Layout(enum.Enum):
    """Whether driver and bindings agree on the size of a process entry (nvitop#79, go-nvml#75)."""

    PLAUSIBLE = "plausible"
    MISMATCH = "mismatch"


class Activity(Document, frozen=True, kw_only=True):
    """One moment of a GPU. Ratios are 0 to 1."""

    taken_at: Instant
    used_bytes: Sample[int]
    utilisation_ratio: Sample[float]
    sm_active_ratio: Sample[float]
    graphics_active_ratio: Sample[float]


class ProcessActivity(Document, frozen=True, kw_only=True):
    """SM utilisation of one process over NVML's last sample period, 0 to 1."""

    pid: int
    sm_ratio: float


class AccountedProcess(Document, frozen=True, kw_only=True):
    """A process that has ended, as NVML's accounting mode remembers it. ran_s: how long it had a context."""

    pid: int
    peak_memory_bytes: Sample[int]
    ran_s: float


class GpuFacts(Document, frozen=True, kw_only=True):
    """One GPU, or one MIG instance of it (then `parent_uuid` is set)."""

    uuid: str
    index: int
    name: Sample[str]
    minor_number: Sample[int]
    pci_bus_id: Sample[str]
    health: Health
    health_reason: str | None = None
    memory: GpuMemory
    activity: tuple[Activity, ...]
    """One entry a sample, oldest first; never empty. The last one is the present."""
    process_activity: Sample[tuple[ProcessActivity, ...]]
    processes: Sample[tuple[GpuProcess, ...]]
    process_layout: Layout
    power_w: Sample[float]
    energy_j: Sample[float]
    temperature_c: Sample[int]
    sm_clock_mhz: Sample[int]
    performance_state: Sample[int]
    persistence_mode: Sample[bool]
    mig_mode: Sample[bool]
    mps_active: Sample[bool]
    accounting_mode: Sample[bool]
    parent_uuid: str | None = None
    memory_clock_mhz: Sample[int] = Sample.absent("not read")
    accounted: Sample[tuple[AccountedProcess, ...]] = Sample.not_applicable("accounting mode is off")
    """The latest that ended, newest first."""


class HoldVia(enum.Enum):
    """How a process was found to hold a device."""

    DESCRIPTOR = "descriptor"
    MAPPING = "mapping"
    THREAD = "thread"


class Hold(Document, frozen=True, kw_only=True):
    """One device node held. device: its name below /dev (`nvidia0`, `nvidiactl`, `nvidia-uvm`); gpu_uuid: None for
    nodes that name no GPU, and for a GPU that NVML no longer lists. thread_id: the live thread, if via a thread, and
    thread_state its letter of stat."""

    device: str
    gpu_uuid: str | None
    via: HoldVia
    thread_id: int | None = None
    thread_state: str | None = None


class ProcessFacts(Document, frozen=True, kw_only=True):
    """A process that matters for a GPU: it holds a device, NVML lists it, or it is a zombie of a pod with a GPU.

    state: the letter of /proc/<pid>/stat. command: redacted, at most 256 characters. threads: how many.
    cgroup: the lines of /proc/<pid>/cgroup (of a live thread if the leader is a zombie), as read from here.
    parent_in_container: the PPid as the process's own PID namespace sees it (1 = its PID 1), None if not known.
    kill_pending: SIGKILL is pending without effect (facts 4.5). threads_in_d: of a process that holds a device and whose leader
    lives, other threads in uninterruptible sleep. samples_in_d: in how many of the latest looks in a row one same of them was.
    """

    pid: int
    start_time_ticks: int
    parent_pid: int
    process_group: int
    session_id: int
    state: str
    name: str
    executable: Sample[str]
    command: Sample[str]
    threads: int
    cgroup: Sample[tuple[str, ...]]
    holds: tuple[Hold, ...]
    pid_in_container: int | None = None
    parent_executable: str | None = None
    adopted: Sample[bool]
    """True: the parent that started it died (facts 4.6: its session or group leader is dead; or PPid is PID 1 and it
    started well after it). PPid 1 alone says nothing."""
    kill_pending: bool = False
    samples_in_state: int = 1
    threads_in_d: tuple[int, ...] = ()
    samples_in_d: int = 0


class SocketFacts(Document, frozen=True, kw_only=True):
    """ESTABLISHED connections accepted inside one network namespace of a pod (not those it opened itself).

    cgroup: lines of one process in that namespace; which pod it is follows from them.
    """

    network_namespace: str
    cgroup: tuple[str, ...]
    established: Sample[int]


class Allocation(Document, frozen=True, kw_only=True):
    """A device given to a container by the kubelet. It says nothing about processes or memory."""

    device_id: str
    resource: str
    pod_uid: str
    container: str


class PodOnDisk(Document, frozen=True, kw_only=True):
    """A pod as the kubelet's folders on the node know it, also after the API server forgot it.

    namespace, name: None where its logs are gone. kept: the kubelet still has the pod's own folder, so it has not finished with
    it; None if those folders cannot be listed from here. containers: by their log links and
    the runtime's bundles; None if neither can be read.
    """

    uid: str
    namespace: str | None
    name: str | None
    kept: bool | None
    containers: tuple[ContainerFacts, ...] | None = None
    sandbox_ids: tuple[str, ...] = ()
    """Ids that the runtime runs as this pod's sandbox; empty where it was not asked as well."""


class Driver(Document, frozen=True, kw_only=True):
    driver_version: Sample[str]
    nvml_version: Sample[str]
    cuda_version: Sample[str]


class NodeFacts(Document, frozen=True, kw_only=True):
    """One look at one node. `samples` and `span_s` say over how many looks and how many seconds it was watched."""

    document: Literal["NodeFacts/1"] = "NodeFacts/1"
    stamp: Stamp
    node: str
    boot_id: Sample[str]
    scan: Scan
    samples: int
    span_s: float
    visibility: Visibility
    driver: Driver
    gpus: Sample[tuple[GpuFacts, ...]]
    """Not measured: NVML itself could not be asked, with the reason. Empty: NVML says there is none."""
    pci_gpu_count: Sample[int]
    allocations: Sample[tuple[Allocation, ...]]
    processes: tuple[ProcessFacts, ...]
    sockets: Sample[tuple[SocketFacts, ...]]
    pods_on_disk: Sample[tuple[PodOnDisk, ...]] = Sample.absent("the kubelet's folders were not looked at")
    """Of the pods that cgroups or allocations above name."""
