"""The simulated driver's state as values, and the text that `sim/nvml` reads. `state_file` puts it on disk.

What processes hold or compute is not in here: that is in the locks (docs/simulated-gpu.md). Standard library only, so that
a node needs nothing installed.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

T = TypeVar("T")

MIB: Final = 1 << 20
GIB: Final = 1 << 30
NO_INSTANCE: Final = 0xFFFFFFFF
NOT_LOST: Final = 0
GPU_IS_LOST: Final = 15
RESET_REQUIRED: Final = 16


class StateError(Exception):
    """A state file or an order that cannot be understood; `str()` is the sentence for a person."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """An injected fault of one function: an NVML error code, a delay in milliseconds, or both.

    function: the exact exported name (`nvmlDeviceGetMemoryInfo_v2`) or its beginning and `*`. times: how often it strikes in
    each process that loads the library, counted anew after each change of the state; None: always.
    """

    function: str
    error: int | None = None
    delay_ms: int | None = None
    times: int | None = None


@dataclass(frozen=True, kw_only=True)
class ScriptedProcess:
    """A process that NVML lists because the scenario says so (a dead PID, another namespace's); it adds no used memory.

    used_bytes None: not available.
    """

    kind: Literal["C", "G", "M"]
    pid: int
    used_bytes: int | None
    gpu_instance: int = NO_INSTANCE
    compute_instance: int = NO_INSTANCE


@dataclass(frozen=True, kw_only=True)
class MigInstance:
    uuid: str
    gpu_instance: int
    compute_instance: int
    total_bytes: int


@dataclass(frozen=True, kw_only=True)
class Accounted:
    """What accounting mode remembers of one process, dead or alive."""

    pid: int
    running: bool
    gpu_percent: int
    peak_bytes: int
    time_ms: int
    start_us: int


def _number(key: str, default: T) -> T:
    """A field of Gpu that is one line `key number` of the file; None is written as -1, a bool as 0 or 1."""
    return field(default=default, metadata={"key": key})


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU. Bytes are bytes, power milliwatts; memory in use is baseline_bytes + ghost_bytes + what locks hold.

    latched_utilisation, latched_sm: percent that is reported whatever happens (a stuck counter). lost: NOT_LOST, GPU_IS_LOST or
    RESET_REQUIRED, the answer to every reading. entry_bytes: size of a process entry under the `_v3` symbols (24; early R535: 32).
    grow_by, grow_times: processes that appear between count probe and list, and how often (None: always).
    process_memory: False = NVML cannot tell a process's memory. energy_mj None: not supported.
    """

    uuid: str
    name: str = "Simulated GPU (H100 80GB HBM3)"
    serial: str = ""
    pci: str = "00000000:01:00.0"
    minor: int = _number("minor", 0)
    total_bytes: int = _number("total", 80 * GIB)
    reserved_bytes: int = _number("reserved", 600 * MIB)
    baseline_bytes: int = _number("baseline", 4 * MIB)
    ghost_bytes: int = _number("ghost", 0)
    latched_utilisation: int | None = _number("latch_utilisation", None)
    latched_sm: int | None = _number("latch_sm", None)
    architecture: int = _number("architecture", 9)
    compute_major: int = _number("compute_major", 9)
    compute_minor: int = _number("compute_minor", 0)
    power_idle_mw: int = _number("power_idle_mw", 70_000)
    power_limit_mw: int = _number("power_limit_mw", 700_000)
    energy_mj: int | None = _number("energy_mj", None)
    temperature_c: int = _number("temperature", 33)
    sm_clock_mhz: int = _number("sm_clock_mhz", 1980)
    persistence: bool = _number("persistence", True)
    lost: int = _number("lost", NOT_LOST)
    gpm: bool = _number("gpm", True)
    accounting: bool = _number("accounting", False)
    process_memory: bool = _number("process_memory", True)
    entry_bytes: int = _number("layout", 24)
    grow_by: int = _number("grow", 0)
    grow_times: int | None = _number("grow_times", None)
    mig: tuple[MigInstance, ...] = ()
    scripted: tuple[ScriptedProcess, ...] = ()
    accounted: tuple[Accounted, ...] = ()
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, kw_only=True)
class State:
    """The whole node. faults: those of every GPU and of the library (`nvmlInitWithFlags`)."""

    gpus: tuple[Gpu, ...]
    driver_version: str = "580.95.05"
    nvml_version: str = "13.580.95.05"
    cuda_version: int = 13000
    faults: tuple[Fault, ...] = ()

    def gpu(self, uuid: str) -> Gpu:
        """Raises StateError if there is none."""
        for gpu in self.gpus:
            if gpu.uuid == uuid:
                return gpu
        raise StateError(f"no simulated GPU {uuid}; there are {', '.join(gpu.uuid for gpu in self.gpus) or 'none'}")

    def with_gpu(self, uuid: str, **changes: Any) -> "State":
        """The state with fields of one GPU changed."""
        changed = dataclasses.replace(self.gpu(uuid), **changes)
        return dataclasses.replace(self, gpus=tuple(changed if gpu.uuid == uuid else gpu for gpu in self.gpus))


def highest_version(function: str, version: int) -> tuple[Fault, ...]:
    """A driver that knows `function` only up to `_v<version>`: later ones answer FunctionNotFound, as a missing symbol does."""
    function_not_found = 13
    return tuple(Fault(function=f"{function}_v{later}", error=function_not_found) for later in range(version + 1, 5))


def not_supported(*functions: str) -> tuple[Fault, ...]:
    """Functions that this GPU does not have: error 3."""
    return tuple(Fault(function=function, error=3) for function in functions)


NO_ACTIVITY: Final = not_supported(
    "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetProcessUtilization", "nvmlGpmSampleGet", "nvmlGpmMigSampleGet"
)
"""A GPU whose activity nobody can tell (MIG on older drivers, missing metrics)."""

PROCESSES_REFUSED: Final = tuple(
    Fault(function=f"nvmlDeviceGet{kind}RunningProcesses*", error=4) for kind in ("Compute", "Graphics", "MPSCompute")
)
"""A reader without the right to see who is on the GPU: error 4, NoPermission."""


def ordinary_node(gpus: int) -> State:
    """A node with so many free GPUs, UUIDs and bus addresses counted up."""
    return State(
        gpus=tuple(
            Gpu(uuid=f"GPU-51510000-0000-4000-8000-{index:012x}", minor=index, pci=f"00000000:{index + 1:02X}:00.0")
            for index in range(gpus)
        )
    )


def folders(state: State) -> tuple[Path, ...]:
    """The folders, below the simulator's, in which processes lock files for memory and activity."""
    uuids = [uuid for gpu in state.gpus for uuid in (gpu.uuid, *(instance.uuid for instance in gpu.mig))]
    return tuple(Path(kind) / uuid for kind in ("memory", "activity") for uuid in uuids)


def render(state: State) -> str:
    """The file's text."""
    lines = [
        "# written by sim/node/state.py",
        f"driver {state.driver_version}",
        f"nvml {state.nvml_version}",
        f"cuda {state.cuda_version}",
    ]
    lines += [line for fault in state.faults for line in _fault_lines(fault)]
    for gpu in state.gpus:
        lines += _gpu_lines(gpu)
    return "\n".join(lines) + "\n"


def _fault_lines(fault: Fault) -> list[str]:
    times = -1 if fault.times is None else fault.times
    lines = [] if fault.delay_ms is None else [f"delay {fault.function} {fault.delay_ms} {times}"]
    return lines if fault.error is None else [*lines, f"error {fault.function} {fault.error} {times}"]


def _gpu_lines(gpu: Gpu) -> list[str]:
    lines = [f"gpu {gpu.uuid}", f"name {gpu.name}", f"pci {gpu.pci}", *([f"serial {gpu.serial}"] if gpu.serial else [])]
    for name, key in GPU_NUMBERS.items():
        value: int | None = getattr(gpu, name)
        lines.append(f"{key} {-1 if value is None else int(value)}")
    lines += [f"mig {one.uuid} {one.gpu_instance} {one.compute_instance} {one.total_bytes}" for one in gpu.mig]
    for process in gpu.scripted:
        used = -1 if process.used_bytes is None else process.used_bytes
        lines.append(f"process {process.kind} {process.pid} {used} {process.gpu_instance} {process.compute_instance}")
    for known in gpu.accounted:
        lines.append(
            f"accounted {known.pid} {int(known.running)} {known.gpu_percent} {known.peak_bytes} {known.time_ms} {known.start_us}"
        )
    return lines + [line for fault in gpu.faults for line in _fault_lines(fault)]


GPU_NUMBERS: Final[Mapping[str, str]] = {one.name: one.metadata["key"] for one in dataclasses.fields(Gpu) if "key" in one.metadata}
