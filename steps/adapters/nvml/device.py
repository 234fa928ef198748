"""One GPU or MIG instance, every field a reading of its own: what this model lacks is absent, what failed is an error."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from steps.adapters.nvml.accounting import accounted
from steps.adapters.nvml.activity import EngineActivity, GpmStart, process_activity, utilisation
from steps.adapters.nvml.bindings import (
    ARGUMENT_VERSION_MISMATCH,
    FUNCTION_NOT_FOUND,
    NOT_SUPPORTED,
    Device,
    Fault,
    Handle,
)
from steps.adapters.nvml.processes import read_processes
from steps.contracts.document import Sample
from steps.contracts.node_facts import Activity, GpuFacts, GpuMemory, Health, Layout, MemoryAccounting

T = TypeVar("T")

_GPU_TEMPERATURE: Final = 0
_SM_CLOCK: Final = 1
_MEMORY_CLOCK: Final = 2
_OLD_MEMORY_CALL: Final = frozenset({FUNCTION_NOT_FOUND, NOT_SUPPORTED, ARGUMENT_VERSION_MISMATCH})


@dataclass(frozen=True)
class Found:
    """A handle and where it came from. For a MIG instance `parent` is its GPU's handle and `gpu_instance` its number."""

    device: Device
    uuid: str
    index: int
    gpm: GpmStart
    mig_mode: Sample[bool]
    parent: Handle | None = None
    parent_uuid: str | None = None
    gpu_instance: int | None = None


def gpu_facts(found: Found, engines: EngineActivity, *, taken_at: datetime, pid_max: int) -> GpuFacts:
    """Everything NVML says about one device, its process lists included. The slow calls come last."""
    device, nvml, handle = found.device, found.device.nvml, found.device.handle
    memory = read_memory(device)
    activity = Activity(
        taken_at=taken_at,
        used_bytes=memory.used_bytes,
        utilisation_ratio=utilisation(device),
        sm_active_ratio=engines.sm,
        graphics_active_ratio=engines.graphics,
    )
    name = device.ask("name", lambda: nvml.nvmlDeviceGetName(handle))
    whole = device if found.parent is None else _Instance(device.nvml, handle)
    pci_bus_id = whole.ask("PCI address", lambda: _text(nvml.nvmlDeviceGetPciInfo_v3(handle).busId))
    power_w = whole.ask("power", lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000)
    energy_j = whole.ask("energy", lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000)
    temperature_c = whole.ask("temperature", lambda: int(nvml.nvmlDeviceGetTemperature(handle, _GPU_TEMPERATURE)))
    sm_clock_mhz = whole.ask("SM clock", lambda: int(nvml.nvmlDeviceGetClockInfo(handle, _SM_CLOCK)))
    memory_clock_mhz = whole.ask("memory clock", lambda: int(nvml.nvmlDeviceGetClockInfo(handle, _MEMORY_CLOCK)))
    performance_state = whole.ask("performance state", lambda: int(nvml.nvmlDeviceGetPerformanceState(handle)))
    persistence_mode = whole.ask("persistence mode", lambda: nvml.nvmlDeviceGetPersistenceMode(handle) == 1)
    accounting_mode = whole.ask("accounting mode", lambda: nvml.nvmlDeviceGetAccountingMode(handle) == 1)
    minor_number = whole.ask("minor number", lambda: int(nvml.nvmlDeviceGetMinorNumber(handle)))
    by_process = process_activity(device, int(taken_at.timestamp() * 1_000_000))
    remembered = accounted(device, accounting_mode)
    lists = read_processes(device, total_bytes=memory.total_bytes.known(), pid_max=pid_max)
    return GpuFacts(
        uuid=found.uuid,
        index=found.index,
        name=name,
        minor_number=minor_number,
        pci_bus_id=pci_bus_id,
        health=device.health,
        health_reason=device.health_reason,
        memory=memory,
        activity=(activity,),
        process_activity=by_process,
        processes=lists.processes,
        process_layout=lists.layout,
        power_w=power_w,
        energy_j=energy_j,
        temperature_c=temperature_c,
        sm_clock_mhz=sm_clock_mhz,
        performance_state=performance_state,
        persistence_mode=persistence_mode,
        mig_mode=found.mig_mode,
        mps_active=lists.mps_active,
        accounting_mode=accounting_mode,
        parent_uuid=found.parent_uuid,
        memory_clock_mhz=memory_clock_mhz,
        accounted=remembered,
    )


class _Instance(Device):
    """A MIG instance asked for what only its whole GPU has."""

    def ask(self, what: str, ask: Callable[[], T]) -> Sample[T]:
        return Sample.not_applicable(f"{what} belongs to the whole GPU")


def unreachable(uuid: str, index: int, fault: Fault, *, taken_at: datetime, parent_uuid: str | None = None) -> GpuFacts:
    """A device whose handle, or whose identity, NVML did not give: it is there, and nothing is known of it.

    uuid: made up from its index; no allocation names it.
    """
    device_health = {15: Health.LOST, 16: Health.RESET_REQUIRED}.get(fault.code, Health.UNKNOWN)
    gap: Sample[Any] = Sample.error(f"no handle: {fault}")
    return GpuFacts(
        uuid=uuid,
        index=index,
        name=gap,
        minor_number=gap,
        pci_bus_id=gap,
        health=device_health,
        health_reason=str(fault),
        memory=GpuMemory(accounting=MemoryAccounting.V2, total_bytes=gap, used_bytes=gap, free_bytes=gap, reserved_bytes=gap),
        activity=(
            Activity(taken_at=taken_at, used_bytes=gap, utilisation_ratio=gap, sm_active_ratio=gap, graphics_active_ratio=gap),
        ),
        process_activity=gap,
        processes=gap,
        process_layout=Layout.PLAUSIBLE,
        power_w=gap,
        energy_j=gap,
        temperature_c=gap,
        sm_clock_mhz=gap,
        performance_state=gap,
        persistence_mode=gap,
        mig_mode=gap,
        mps_active=gap,
        accounting_mode=gap,
        parent_uuid=parent_uuid,
        memory_clock_mhz=gap,
        accounted=gap,
    )


def read_memory(device: Device) -> GpuMemory:
    """Memory in v2 accounting; where the driver is older than that, in v1, which counts driver-reserved memory as used."""
    nvml, handle = device.nvml, device.handle
    try:
        info = device.call(lambda: nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2))
        return _memory(MemoryAccounting.V2, info, Sample.measured(int(info.reserved)))
    except Fault as fault:
        if fault.code not in _OLD_MEMORY_CALL:
            return _no_memory(device, MemoryAccounting.V2, fault)
    try:
        info = device.call(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        return _memory(MemoryAccounting.V1, info, Sample.absent("v1 accounting does not tell it apart from used"))
    except Fault as fault:
        return _no_memory(device, MemoryAccounting.V1, fault)


def _memory(accounting: MemoryAccounting, info: Any, reserved: Sample[int]) -> GpuMemory:
    return GpuMemory(
        accounting=accounting,
        total_bytes=Sample.measured(int(info.total)),
        used_bytes=Sample.measured(int(info.used)),
        free_bytes=Sample.measured(int(info.free)),
        reserved_bytes=reserved,
    )


def _no_memory(device: Device, accounting: MemoryAccounting, fault: Fault) -> GpuMemory:
    gap: Sample[int] = device.unknown("memory", fault)
    return GpuMemory(accounting=accounting, total_bytes=gap, used_bytes=gap, free_bytes=gap, reserved_bytes=gap)


def _text(value: bytes | str) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value
