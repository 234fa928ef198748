"""The one recording from which every file, verdict and picture of the experiment is made: what drive did, and what watch saw.

Both run on the same node and read its one clock, so their times may be compared.
"""

import enum
from datetime import datetime
from typing import Literal

from experiments.zombie.observation import Observation
from experiments.zombie.scenarios import ScenarioId
from steps.contracts.cluster_facts import PodFacts
from steps.contracts.document import Document, Sample, Stamp
from steps.contracts.node_facts import Driver, NodeFacts


class Ending(enum.Enum):
    """How the session is ended. sigkill: PID 1 is made to ignore SIGTERM, so that only the end of grace ends it."""

    DELETE = "delete"
    SIGKILL = "sigkill"
    FORCE = "force"
    EVICT = "evict"


class Shape(enum.Enum):
    """What the worker is: see images/scenarios/worker.py."""

    PLAIN = "plain"
    TRAINING_CHILD = "training-child"
    MULTIPROCESSING = "multiprocessing"
    SETSID = "setsid"


class Kind(enum.Enum):
    """What the session is, and so who answers its deletion."""

    POD = "pod"
    DEPLOYMENT = "deployment"


class Settings(Document, frozen=True, kw_only=True):
    """What a person chose for the run. grace_s: of the pod. observe_s: how long each state is watched before the next act."""

    namespace: str
    node: str
    repetitions: int
    memory_mib: int
    grace_s: int
    prestop_wait_s: int
    observe_s: float
    ending: Ending
    shape: Shape
    kind: Kind
    backend: str
    image: str
    pull: str


class What(enum.Enum):
    """One thing that drive did or saw. The value is what a person reads on the timeline."""

    WATCHED = "watch is ready"
    CREATE = "session created"
    RUNNING = "container runs"
    SPAWN = "parent started the worker and left"
    HOLDS = "worker holds the memory"
    OBSERVED = "observed inside the container"
    KILL = "kill -9 to the worker"
    RESPAWN = "a second worker started"
    HOLDS_AGAIN = "second worker holds the memory"
    DELETE = "deletion asked for"
    TERMINATING = "deletion accepted"
    GONE = "object gone"
    RECREATED = "somebody made it again"
    BROKEN_OFF = "broken off; cleaning up"
    CLEANED = "cleaned up"
    SAID = "the pod log says"


class Mark(Document, frozen=True, kw_only=True):
    """until: where the moment is only known as an interval (last look without it, first look with it)."""

    at: datetime
    what: What
    detail: str = ""
    until: datetime | None = None


class Repetition(Document, frozen=True, kw_only=True):
    """One session from creation to the end of its object. failure: the sentence why it did not get to its end.

    pods: as the API last described each pod of the session, so that the node's processes can be named.
    log: the pod log as last read. log_whole: it was read until the container had ended, so what is not in it was not said.
    killed_pid, orphan_pid: the container's numbers.
    recreated: pods of the same name or owner and another uid that were there after the deletion, with what made them.
    """

    number: int
    pod_uid: str | None
    pods: tuple[PodFacts, ...]
    image_id: str | None
    marks: tuple[Mark, ...]
    killed_pid: int | None
    orphan_pid: int | None
    after_spawn: Observation | None
    after_kill: Observation | None
    before_delete: Observation | None
    log: Sample[str]
    log_whole: bool
    recreated: tuple[str, ...]
    failure: str | None


class DriveRecord(Document, frozen=True, kw_only=True):
    """failure: why nothing, or not all, was driven; None if every repetition was begun. Written anew after each repetition, so that
    what was driven survives the end of drive."""

    document: Literal["DriveRecord/1"] = "DriveRecord/1"
    stamp: Stamp
    scenario: ScenarioId
    settings: Settings
    repetitions: tuple[Repetition, ...]
    failure: str | None


class WatchedProcess(Document, frozen=True, kw_only=True):
    """A process of a pod that was given a GPU while we watched, or one that has a GPU.

    holds: it has a GPU's device node open; None: it could not be read. in_nvml None: not in a list that was read,
    and the list of a GPU could not be. nvml_bytes None: NVML does not list it, or not its memory, or that is not known.
    """

    pid: int
    start_time_ticks: int
    parent_pid: int
    state: str
    name: str
    pid_in_container: int | None
    pod_uid: str | None
    container_id: str | None
    holds: bool | None
    in_nvml: bool | None
    nvml_bytes: int | None


class WatchedGpu(Document, frozen=True, kw_only=True):
    """list_problem: why NVML's list of its processes could not be read; then holders may be missing from the look."""

    uuid: str
    used_bytes: Sample[int]
    list_problem: str | None = None


class Stretch(Document, frozen=True, kw_only=True):
    """Consecutive looks that saw the same, from the first to the last of them; at: when a look began.

    first_done_at: when the first of them was through. What it saw gone went before that; what the last one saw lived at last_at.
    """

    first_at: datetime
    first_done_at: datetime
    last_at: datetime
    looks: int
    gpus: tuple[WatchedGpu, ...]
    processes: tuple[WatchedProcess, ...]


class Portrait(Document, frozen=True, kw_only=True):
    """A full look of the product's own collector at a moment that watch chose because things had come to rest."""

    at: datetime
    facts: NodeFacts


class Given(Document, frozen=True, kw_only=True):
    """The kubelet gave a device to a pod. at: when watch first saw it."""

    at: datetime
    pod_uid: str
    container: str
    device: str


class GpuSeen(Document, frozen=True, kw_only=True):
    uuid: str
    index: int
    name: Sample[str]
    total_bytes: Sample[int]


class WatchRecording(Document, frozen=True, kw_only=True):
    """clean: whether every GPU of the node was free before anything began; then a sentence. ended: why watching ended."""

    document: Literal["WatchRecording/1"] = "WatchRecording/1"
    stamp: Stamp
    scenario: ScenarioId
    node: str
    boot_id: Sample[str]
    kernel: Sample[str]
    driver: Driver
    gpus: tuple[GpuSeen, ...]
    clean: bool
    clean_sentence: str
    interval_s: float
    settle_s: float
    """How long it was watched on purpose after drive had ended."""
    looks: int
    longest_gap_s: float
    given: tuple[Given, ...]
    stretches: tuple[Stretch, ...]
    portraits: tuple[Portrait, ...]
    portraits_dropped: int
    ended: str
