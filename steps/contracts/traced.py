"""The join: device and PID -> container -> pod -> session, with a class for every GPU and holder. Made by trace."""

import enum
from typing import Literal

from steps.contracts.document import Document, Sample, Stamp
from steps.contracts.node_facts import Scan


class GpuClass(enum.Enum):
    """The classes of facts/gpu-and-linux section 8; the same words for a holder and for the headline of a GPU."""

    BASELINE = "BASELINE"
    ACTIVE = "ACTIVE"
    IDLE_HOLDER = "IDLE_HOLDER"
    LOW_EFFICIENCY = "LOW_EFFICIENCY"
    ORPHAN_LIVE = "ORPHAN_LIVE"
    POD_GONE_LIVE = "POD_GONE_LIVE"
    ZOMBIE_BENIGN = "ZOMBIE_BENIGN"
    ZOMBIE_THREADED = "ZOMBIE_THREADED"
    HIDDEN_HOLDER = "HIDDEN_HOLDER"
    STUCK_D = "STUCK_D"
    GHOST_CONTEXT = "GHOST_CONTEXT"
    STALE_NVML_PID = "STALE_NVML_PID"
    PHANTOM_UTIL = "PHANTOM_UTIL"
    BLIND = "BLIND"
    ABI_MISMATCH = "ABI_MISMATCH"
    GPU_LOST = "GPU_LOST"
    SYSTEM_HOLDER = "SYSTEM_HOLDER"
    IN_GRACE = "IN_GRACE"
    ACTIVITY_UNKNOWN = "ACTIVITY_UNKNOWN"
    ACTIVITY_UNKNOWN_SHARED = "ACTIVITY_UNKNOWN_SHARED"
    UNKNOWN = "UNKNOWN"


class Qos(enum.Enum):
    GUARANTEED = "guaranteed"
    BURSTABLE = "burstable"
    BESTEFFORT = "besteffort"
    UNKNOWN = "unknown"
    NONE = "none"


class Attribution(enum.Enum):
    """How sure it is whose process this is. conflict: cgroup lines disagree or name a container the pod never had."""

    CONTAINER = "container"
    POD = "pod"
    POD_GONE = "pod gone"
    HOST = "host"
    CONFLICT = "conflict"
    UNKNOWN = "unknown"


class Finding(Document, frozen=True, kw_only=True):
    """One thing found beside or behind the headline. detail: a sentence with the evidence."""

    gpu_class: GpuClass
    detail: str
    remedy: str | None = None
    """The cheapest remedy that can work, in words; people carry it out."""


class TracedHolder(Document, frozen=True, kw_only=True):
    """A process on one GPU. known_to_nvml: NVML lists it there; None: its list
    there is not usable. pod_uid None: see attribution.
    state: letter of /proc stat. gpu_memory_bytes: NVML's figure, never a guess. uninterruptible: it or a thread of it is in D."""

    pid: int
    start_time_ticks: int
    state: str
    name: str
    gpu_memory_bytes: Sample[int]
    known_to_nvml: bool | None
    qos: Qos
    attribution: Attribution
    attribution_reason: str
    pod_uid: str | None
    pod: str | None
    namespace: str | None
    container: str | None
    session_uid: str | None
    gpu_class: GpuClass
    reason: str
    uninterruptible: bool = False


class AllocatedTo(Document, frozen=True, kw_only=True):
    """lives: whether the pod exists and has not ended; the kubelet's record outlives it until the next allocation. None: nobody
    who was asked knows."""

    device_id: str
    pod_uid: str
    pod: str | None
    namespace: str | None
    container: str
    session_uid: str | None
    lives: bool | None = None


class TracedGpu(Document, frozen=True, kw_only=True):
    """unexplained_bytes: used less baseline and listed processes; unknown as soon as one input is."""

    uuid: str
    index: int
    headline: GpuClass
    reason: str
    remedy: str | None
    findings: tuple[Finding, ...]
    allocated_to: Sample[tuple[AllocatedTo, ...]]
    holders: tuple[TracedHolder, ...]
    total_bytes: Sample[int]
    used_bytes: Sample[int]
    baseline_bytes: Sample[int]
    unexplained_bytes: Sample[int]
    utilisation_ratio: Sample[float]
    sm_active_ratio: Sample[float]


class TracedNode(Document, frozen=True, kw_only=True):
    """problem: why there is nothing to say about the node (it did not answer, NVML failed); its GPUs are then unknown.
    scan: how thoroughly its /proc was read."""

    node: str
    boot_id: Sample[str]
    problem: str | None
    gpus: tuple[TracedGpu, ...]
    connections: Sample[tuple["PodConnections", ...]]
    scan: Scan = Scan.FULL


class PodConnections(Document, frozen=True, kw_only=True):
    """Connections somebody holds into a pod. A pod that is not listed had no readable network namespace: unknown."""

    pod_uid: str
    established: Sample[int]


class Traced(Document, frozen=True, kw_only=True):
    """All nodes of a shard, those that did not answer included."""

    document: Literal["Traced/1"] = "Traced/1"
    stamp: Stamp
    nodes: tuple[TracedNode, ...]
