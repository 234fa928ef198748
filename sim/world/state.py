"""What the state file holds. Mutable on purpose: a world changes; nothing of it leaves `sim` but through the ports."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from sim.world.boxes_state import SimBox

Json = dict[str, Any]


class Part(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of everything in the state file."""


class SimGpu(Part):
    """A GPU. Used memory is baseline + ghost + what processes hold; ghost_bytes: memory without any process.

    latched: the utilisation counter stands at 100 % whatever happens. metrics False: activity calls answer
    NotSupported. lost: the device calls answer GpuIsLost.
    """

    uuid: str
    index: int
    name: str
    total_bytes: int
    reserved_bytes: int
    baseline_bytes: int
    ghost_bytes: int = 0
    latched: bool = False
    metrics: bool = True
    lost: bool = False


class SimProcess(Part):
    """A process with a context on one GPU. pod_uid None: a process of the host. sm_ratio: 0 to 1, now.

    command: as somebody typed it into a shell; whoever reads the process sees it without its secrets.
    """

    pid: int
    start_time_ticks: int
    pod_uid: str | None
    container_id: str | None
    name: str
    executable: str
    command: str
    gpu_uuid: str
    memory_bytes: int
    sm_ratio: float = 0.0
    state: str = "S"
    listed_by_nvml: bool = True


class SimAllocation(Part):
    """An entry of the kubelet's device checkpoint; it outlives its pod until the next allocation (facts 2)."""

    device_id: str
    pod_uid: str
    container: str


class SimNode(Part):
    """silent: what runs there never answers."""

    name: str
    boot_id: str
    driver_version: str
    gpus: list[SimGpu]
    processes: list[SimProcess] = []
    allocations: list[SimAllocation] = []
    silent: bool = False


class Behaviour(Part):
    """What the pods of one Deployment do once they run.

    memory_bytes: on each of its GPUs, 0 means that no process opens a device. busy_gpus: how many of its GPUs work at
    sm_ratio. exits_after_s: after SIGTERM; None ignores it, so the full grace passes. outlives_pod: its processes
    survive the pod. leaves_ghost_bytes: stay on the device after everything else went.
    """

    program: str = "python3"
    command: str = "python3"
    memory_bytes: int = 0
    sm_ratio: float = 0.0
    busy_gpus: int = 0
    connections: int = 0
    exits_after_s: float | None = 2.0
    outlives_pod: bool = False
    leaves_ghost_bytes: int = 0
    latches_counter: bool = False
    breaks_metrics: bool = False


class Due(Part):
    """Something that happens to a pod at a time: its containers run, its processes end, its object goes; act: see boxes.py."""

    at: datetime
    what: Literal["run", "exit", "vanish", "act"]
    path: str
    uid: str
    note: str = ""


class Forbidden(Part):
    """A request the API answers with 403: verb (get, list, create, patch, delete or *) and a shell pattern of its path."""

    verb: str
    path: str


class World(Part):
    """now: simulated time. version: the last resourceVersion. serial: of the last uid. objects: by path of the API.

    boxes: insides of the termination experiment's containers, by pod uid. injected: a fault no signal can provoke: ghost (a killed
    worker leaves memory without a process) or stuck (a killed worker stays in state D).
    """

    now: datetime
    version: int = 0
    serial: int = 0
    objects: dict[str, Json] = {}
    nodes: dict[str, SimNode] = {}
    behaviours: dict[str, Behaviour] = {}
    connections: dict[str, int] = {}
    due: list[Due] = []
    forbidden: list[Forbidden] = []
    logs: dict[str, str] = {}
    boxes: dict[str, SimBox] = {}
    injected: str = ""


def stamp_text(moment: datetime) -> str:
    """A time as the API writes it: whole seconds, Z."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
