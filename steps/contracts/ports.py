"""The outside as protocols, each with a real and a simulated implementation; contract tests run over both.

Answers one must expect (gone, conflict, forbidden, invalid) are values; surprises raise SourceUnavailable, and a write
without an answer raises OutcomeUnknown. Every call has a timeout of its own; nothing in here repeats a write.
"""

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from steps.contracts.cluster_facts import GuardMet, OwnerRef, PodFacts, Session, Waiter
from steps.contracts.decision import Decisions, Memory
from steps.contracts.document import Document, Origin, Sample
from steps.contracts.node_facts import (
    Allocation,
    Driver,
    GpuFacts,
    HoldVia,
    PodOnDisk,
    ProcessFacts,
    Scan,
    SocketFacts,
    Visibility,
)
from steps.contracts.policy import Policy
from steps.contracts.run_record import RunRecord
from steps.contracts.stop_receipt import Intent


class Clock(Protocol):
    def now(self) -> datetime: ...  # aware, UTC
    def sleep(self, seconds: float) -> None: ...


# --- the node


class GpuReading(Document, frozen=True, kw_only=True):
    """What NVML says at one moment. gpus: each with exactly one Activity. refused: names of the readings that NVML refused for
    lack of permission (error 4): they are errors, and the reader's sight is partial (facts 3.8)."""

    driver: Driver
    gpus: Sample[tuple[GpuFacts, ...]]
    pci_gpu_count: Sample[int]
    refused: tuple[str, ...] = ()


class GpuReader(Protocol):
    def begin(self) -> Callable[[], GpuReading]:
        """Begin one look through NVML; the function returned, called once, waits for its end. A lost GPU is one of the GPUs,
        never the end of the scan; neither raises for NVML errors."""


class DeviceNode(Document, frozen=True, kw_only=True):
    """A device node of the driver: its name below /dev, and the GPU it stands for (None: nvidiactl, nvidia-uvm...)."""

    name: str
    major: int
    minor: int
    gpu_uuid: str | None


class ProcessScan(Document, frozen=True, kw_only=True):
    """processes: holders, processes in `also` (NVML's PIDs), and zombies in any pod's cgroup. boot_id: see facts 4.1."""

    boot_id: Sample[str]
    visibility: Visibility
    processes: tuple[ProcessFacts, ...]
    sockets: Sample[tuple[SocketFacts, ...]]


class Found(NamedTuple):
    """A device number that a process has open or mapped. thread_id, thread_state: of the live thread, if via a thread."""

    number: int
    via: HoldVia
    thread_id: int | None = None
    thread_state: str | None = None


class Walk(NamedTuple):
    """One pass over all processes, `pids`. numbers: those looked for. found: by PID. zombies: plain ones in any pod's cgroup.
    unreadable: PID -> why its descriptors or mappings could not be read."""

    numbers: frozenset[int]
    pids: tuple[int, ...]
    found: Mapping[int, tuple[Found, ...]]
    zombies: tuple[int, ...]
    unreadable: Mapping[int, str]


class ProcessReader(Protocol):
    def devices(self, gpus: Sequence[GpuFacts]) -> Sample[tuple[DeviceNode, ...]]:
        """The driver's device nodes on this node, joined to the GPUs by minor number."""

    def walk(self) -> Walk:
        """What a full scan can find before NVML has answered: who has any of the driver's device numbers."""

    def scan(self, devices: Sequence[DeviceNode], also: Sequence[int], scan: Scan, walk: Walk | None = None) -> ProcessScan:
        """One look through /proc; `also` are PIDs that NVML lists. walk: of this moment; None: a full scan makes its own."""


class AllocationReader(Protocol):
    def read(self) -> Sample[tuple[Allocation, ...]]:
        """Which devices the kubelet gave to which containers; a source that is missing is absent with its reason, not empty."""


class ProcessTree(Document, frozen=True, kw_only=True):
    """Every process that can be seen from here, by PID. total: how many there are; more than are listed if some were left out.

    pid1: what the namespace's PID 1 does with signals, None if its status cannot be read.
    """

    visibility: Visibility
    processes: tuple[ProcessFacts, ...]
    total: int
    pid1: "SignalHandling | None"


class SignalHandling(Document, frozen=True, kw_only=True):
    """catches_term: it has a handler for SIGTERM; a PID 1 without one ignores it. ignores_child: its children need no reaping."""

    catches_term: bool
    ignores_child: bool


class ProcessTreeReader(Protocol):
    def read(self) -> ProcessTree:
        """All processes, without asking what they hold. Raises SourceUnavailable where there is no /proc."""


class PodFolderReader(Protocol):
    def read(self, uids: Collection[str], containers: Collection[str], pids: Collection[int]) -> Sample[tuple[PodOnDisk, ...]]:
        """What the kubelet's folders know of these pods, and the runtime of these containers and sandboxes, by id, and of the
        sandboxes that these processes run in.

        Folders that are not here are absent with the reason, not empty.
        """


# --- the cluster


class GpuNode(Document, frozen=True, kw_only=True):
    name: str
    gpus: int
    ready: bool


class ClusterReader(Protocol):
    def gpu_nodes(self) -> tuple[GpuNode, ...]:
        """Nodes that offer GPUs, by name. Raises SourceUnavailable."""

    def pods_on(self, nodes: Sequence[str]) -> tuple[PodFacts, ...]:
        """All pods bound to these nodes, one paged list; `owner_uid` is the top owner's."""

    def sessions(self, policy: Policy, pods: Sequence[PodFacts]) -> tuple[Session, ...]:
        """The GPU workloads of the policy's namespaces (also those at 0 replicas that have pods left), with guards.

        pods: all pods of the surveyed nodes; sessions with none of them and no waiting pod are left out. A namespace that
        does not exist has none: `absent_namespaces` names it.
        """

    def absent_namespaces(self, policy: Policy) -> tuple[str, ...]:
        """Namespaces of the policy that do not exist, in its order. One that may not be read is not among them."""

    def waiters(self, namespaces: Sequence[str] | None) -> tuple[Waiter, ...]:
        """Pods that are Pending because no GPU is free, oldest first; None: of all namespaces."""


class OwnerState(Document, frozen=True, kw_only=True):
    """An owner as just read: what the stop compares, and the version that guards its write.

    placed_pods: uids of its pods that have a node and have not ended, by the owner's selector."""

    owner: OwnerRef
    replicas: int
    judged_digest: str
    resource_version: str
    guards: tuple[GuardMet, ...]
    placed_pods: tuple[str, ...]


class Count(Document, frozen=True, kw_only=True):
    """The count that an owner asks for, and the version that guards the next write of it."""

    replicas: int
    resource_version: str


class Rejection(enum.Enum):
    """A write that the API server answered with no."""

    CONFLICT = "conflict"
    FORBIDDEN = "forbidden"
    INVALID = "invalid"
    GONE = "gone"


class Rejected(Document, frozen=True, kw_only=True):
    rejection: Rejection
    detail: str


class OwnerSwitch(Protocol):
    """The owner's own switch: `/scale` for a Deployment."""

    def read(self, owner: OwnerRef, policy: Policy) -> OwnerState | Rejected:
        """The owner afresh, guards judged again by the same code as survey. GONE: no such object, or another uid."""

    def count(self, owner: OwnerRef) -> Count | Rejected:
        """The count alone, no guards: for restore, and to look again after a write without an answer. GONE as above."""

    def scale(self, owner: OwnerRef, replicas: int, *, if_version: str) -> Count | Rejected:
        """Write the count once, guarded by the version. Raises OutcomeUnknown after a timeout."""


class DecisionStore(Protocol):
    def keep(self, decisions: Decisions, run_uid: str) -> None:
        """Keep a shard's acting decisions for stop; keeping the same again is no error."""

    def load(self, run: str, shard: int) -> Decisions | None: ...


class MemoryStore(Protocol):
    def load(self, shard: int) -> tuple[Memory | None, str]:
        """The memory and the version that guards the next save (empty: there is none yet)."""

    def save(self, shard: int, memory: Memory, *, if_version: str) -> Rejected | None: ...


class IntentStore(Protocol):
    def create(self, intent: Intent) -> Intent | None:
        """None: created, the claim is ours. Else the Intent that already exists for this owner uid."""

    def load(self, owner_uid: str) -> Intent | None: ...
    def list(self) -> tuple[Intent, ...]: ...
    def delete(self, owner_uid: str, *, decision_id: str) -> None:
        """Remove the Intent if it still is that decision's; no error if there is none or another's."""


class EventSink(Protocol):
    def record(self, regarding: OwnerRef, reason: str, action: str, note: str, *, warning: bool = False) -> Rejected | None:
        """One Kubernetes Event on the owner; note is cut to 1 kB."""


class RunReader(Protocol):
    def read(self, run: str) -> RunRecord: ...
    def log(self, pod: str, container: str, limit_bytes: int) -> Sample[str]:
        """The end of one container's log."""


class Outside(Protocol):
    """Everything a step may touch, made when first asked for: a step without API calls never loads the API client."""

    origin: Origin
    environment: Mapping[str, str]

    @property
    def clock(self) -> Clock: ...
    def gpus(self) -> GpuReader: ...
    def processes(self) -> ProcessReader: ...
    def allocations(self) -> AllocationReader: ...
    def pods_on_disk(self) -> PodFolderReader: ...
    def process_tree(self) -> ProcessTreeReader: ...
    def cluster(self) -> ClusterReader: ...
    def owners(self) -> OwnerSwitch: ...
    def decisions(self) -> DecisionStore: ...
    def memory(self) -> MemoryStore: ...
    def intents(self) -> IntentStore: ...
    def events(self) -> EventSink: ...
    def runs(self) -> RunReader: ...
