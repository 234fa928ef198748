"""What the eight checks inside the container said: the JSON of images/scenarios/observe.py, as a document."""

from datetime import datetime

from steps.contracts.document import Document


class SeenProcess(Document, frozen=True, kw_only=True):
    """PIDs are the container's."""

    pid: int
    ppid: int
    state: str
    name: str
    command: str
    threads: int


class ListedProcess(Document, frozen=True, kw_only=True):
    """An entry of NVML's list as the container sees it; used_bytes None: not available there."""

    pid: int
    used_bytes: int | None


class SeenGpu(Document, frozen=True, kw_only=True):
    uuid: str
    used_bytes: int
    total_bytes: int
    processes: tuple[ListedProcess, ...]


class SeenGpus(Document, frozen=True, kw_only=True):
    """problem: why NVML could not be asked; `gpus` then says nothing."""

    problem: str | None
    gpus: tuple[SeenGpu, ...]


class SeenHolder(Document, frozen=True, kw_only=True):
    """devices None: its descriptors may not be read, see problem."""

    pid: int
    devices: tuple[str, ...] | None
    problem: str | None


class SeenVerdict(Document, frozen=True, kw_only=True):
    """in_nvml None: not listed, which proves nothing inside a container, where NVML's PIDs are the host's."""

    pid: int
    in_nvml: bool | None
    holds_device: bool
    alive: bool
    state: str | None


class Observation(Document, frozen=True, kw_only=True):
    """One exec of observe.py. pid1 None: /proc/1 could not be read."""

    at: datetime
    pid1: SeenProcess | None
    tree: tuple[SeenProcess, ...]
    zombies: tuple[int, ...]
    orphans: tuple[int, ...]
    gpus: SeenGpus
    holders: tuple[SeenHolder, ...]
    verdicts: tuple[SeenVerdict, ...]
