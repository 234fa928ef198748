"""The collector against the driver, field by field; and which fields this model, or this driver, does not have."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from experiments.gpu_check.nvml import ask, attempt
from experiments.gpu_check.record import CannotRun, Measure, Value
from steps.adapters.nvml import NvmlReader
from steps.contracts.document import Sample
from steps.contracts.node_facts import GpuFacts

Direct = dict[str, Any]


class Field(NamedTuple):
    """collector: the reading in our facts. driver: the same asked directly, in our unit. slack: by how much two readings of
    different moments may differ; None: anything else must be equal."""

    name: str
    unit: str
    collector: Callable[[GpuFacts], Sample[Any]]
    driver: Callable[[Any, Any], Value]
    slack: float | None = None


def _v2(nvml: Any, handle: Any) -> Any:
    return nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2)


_LISTS: Final = (
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
)

FIELDS: Final = (
    Field("name", "", lambda g: g.name, lambda n, h: _text(n.nvmlDeviceGetName(h))),
    Field("minor number", "", lambda g: g.minor_number, lambda n, h: n.nvmlDeviceGetMinorNumber(h)),
    Field("PCI bus id", "", lambda g: g.pci_bus_id, lambda n, h: _text(n.nvmlDeviceGetPciInfo_v3(h).busId)),
    Field("memory total", "B", lambda g: g.memory.total_bytes, lambda n, h: int(_v2(n, h).total)),
    Field("memory used", "B", lambda g: g.memory.used_bytes, lambda n, h: int(_v2(n, h).used), 64 << 20),
    Field("memory free", "B", lambda g: g.memory.free_bytes, lambda n, h: int(_v2(n, h).free), 64 << 20),
    Field("memory reserved", "B", lambda g: g.memory.reserved_bytes, lambda n, h: int(_v2(n, h).reserved), 64 << 20),
    Field(
        "utilisation",
        "ratio",
        lambda g: g.activity[-1].utilisation_ratio,
        lambda n, h: n.nvmlDeviceGetUtilizationRates(h).gpu / 100,
        1.0,
    ),
    Field("power", "W", lambda g: g.power_w, lambda n, h: n.nvmlDeviceGetPowerUsage(h) / 1000, 50.0),
    Field("energy", "J", lambda g: g.energy_j, lambda n, h: n.nvmlDeviceGetTotalEnergyConsumption(h) / 1000, 20_000.0),
    Field("temperature", "C", lambda g: g.temperature_c, lambda n, h: n.nvmlDeviceGetTemperature(h, 0), 5.0),
    Field("SM clock", "MHz", lambda g: g.sm_clock_mhz, lambda n, h: n.nvmlDeviceGetClockInfo(h, 1), 2500.0),
    Field("performance state", "", lambda g: g.performance_state, lambda n, h: n.nvmlDeviceGetPerformanceState(h), 15.0),
    Field("persistence mode", "", lambda g: g.persistence_mode, lambda n, h: n.nvmlDeviceGetPersistenceMode(h) == 1),
    Field("accounting mode", "", lambda g: g.accounting_mode, lambda n, h: n.nvmlDeviceGetAccountingMode(h) == 1),
    Field("MIG mode", "", lambda g: g.mig_mode, lambda n, h: n.nvmlDeviceGetMigMode(h)[0] == 1),
    Field(
        "processes listed",
        "",
        lambda g: g.processes if (known := g.processes.known()) is None else Sample.measured(_pids(p.pid for p in known)),
        lambda n, h: _pids(p.pid for call in _LISTS for p in getattr(n, call)(h)),
    ),
)
COLLECTOR_ALONE: Final[dict[str, Callable[[GpuFacts], Sample[Any]]]] = {
    "SM activity by GPM": lambda g: g.activity[-1].sm_active_ratio,
    "graphics-engine activity by GPM": lambda g: g.activity[-1].graphics_active_ratio,
    "SM activity by process": lambda g: g.process_activity,
    "MPS": lambda g: g.mps_active,
}
"""What the check asks through the collector alone: presence on this model is the finding."""


def compare(index: int) -> tuple[Measure, ...]:
    """A measure for each field: what the collector read, and in the note how it stands to the driver's answer."""
    gpu = collected(index)
    direct: Direct = ask(lambda nvml: _direct(nvml, index))
    together = [told(field, field.collector(gpu), direct[field.name]) for field in FIELDS]
    alone = [_alone(name, reading(gpu)) for name, reading in COLLECTOR_ALONE.items()]
    differing = sum("DIFFERS" in measure.note for measure in together)
    absent = [measure.name for measure in (*together, *alone) if measure.value is None]
    return (
        Measure(name="UUID", value=gpu.uuid),
        Measure(name="fields that differ from the driver", value=differing),
        Measure(name="fields absent on this model", value=", ".join(absent) or "none"),
        *together,
        *alone,
    )


def collected(index: int) -> GpuFacts:
    """The collector's facts of one GPU. Raises CannotRun."""
    gpus = NvmlReader().begin()().gpus
    known = gpus.known()
    if known is None:
        raise CannotRun(f"the collector got no answer: {gpus.reason}")
    found = [gpu for gpu in known if gpu.parent_uuid is None and gpu.index == index]
    if not found:
        raise CannotRun(f"NVML lists no GPU {index}")
    return found[0]


def _direct(nvml: Any, index: int) -> Direct:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    return {field.name: attempt(nvml, partial(field.driver, nvml, handle)) for field in FIELDS}


def told(field: Field, ours: Sample[Any], theirs: Direct) -> Measure:
    """What the collector read, and how that stands to the driver's answer: {"value": ...} or {"error": words}."""
    value = ours.known()
    if "error" in theirs:
        agreed = value is None
        words = f"driver: {theirs['error']}; collector: {ours.reason if agreed else value}"
        return Measure(name=field.name, value=value, unit=field.unit, note=words if agreed else f"DIFFERS: {words}")
    driver = theirs["value"]
    if value is None:
        return Measure(name=field.name, value=None, unit=field.unit, note=f"DIFFERS: driver {driver}, collector: {ours.reason}")
    same = value == driver if field.slack is None else abs(value - driver) <= field.slack
    words = "as the driver says" if value == driver else f"driver: {driver}, at another moment"
    return Measure(name=field.name, value=value, unit=field.unit, note=words if same else f"DIFFERS: driver {driver}")


def _alone(name: str, reading: Sample[Any]) -> Measure:
    value = reading.known()
    shown = f"{len(value)} processes" if isinstance(value, tuple) else value
    return Measure(name=name, value=shown, note="" if value is not None else f"{reading.state.value}: {reading.reason}")


def _pids(pids: Any) -> str:
    return ", ".join(str(pid) for pid in sorted(set(pids))) or "none"


def _text(value: bytes | str) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value
