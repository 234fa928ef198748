"""What we use of `pynvml` (distribution nvidia-ml-py), as a type, and how its errors become readings.

The distribution named `pynvml` is something else and warns on import (facts 3.1): depend on nvidia-ml-py alone.
"""
# The names are theirs.
# ruff: noqa: N802, N815

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from steps.contracts.document import Sample
from steps.contracts.node_facts import Health

T = TypeVar("T")

SUCCESS: Final = 0
NOT_SUPPORTED: Final = 3
NO_PERMISSION: Final = 4
NOT_FOUND: Final = 6
INSUFFICIENT_SIZE: Final = 7
DRIVER_NOT_LOADED: Final = 9
LIBRARY_NOT_FOUND: Final = 12
FUNCTION_NOT_FOUND: Final = 13
GPU_IS_LOST: Final = 15
RESET_REQUIRED: Final = 16
VERSION_MISMATCH: Final = 18
ARGUMENT_VERSION_MISMATCH: Final = 25

_ABSENT: Final = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH})
"""This model, or this driver, has no such reading: nothing is broken."""
_HEALTH: Final = {GPU_IS_LOST: Health.LOST, RESET_REQUIRED: Health.RESET_REQUIRED}

Handle = Any
"""A ctypes pointer of the bindings; opaque to us."""


class Bindings(Protocol):
    """The module `pynvml`. Structures come back as ctypes objects; their fields are read where they are used."""

    NVMLError: type[Exception]
    NVMLLibraryMismatchError: type[Exception]
    nvmlMemory_v2: int

    def nvmlInit(self) -> None: ...
    def nvmlShutdown(self) -> None: ...
    def nvmlSystemGetDriverVersion(self) -> str: ...
    def nvmlSystemGetNVMLVersion(self) -> str: ...
    def nvmlSystemGetCudaDriverVersion_v2(self) -> int: ...
    def nvmlDeviceGetCount(self) -> int: ...
    def nvmlDeviceGetHandleByIndex(self, index: int) -> Handle: ...
    def nvmlDeviceGetUUID(self, handle: Handle) -> str: ...
    def nvmlDeviceGetName(self, handle: Handle) -> str: ...
    def nvmlDeviceGetMinorNumber(self, handle: Handle) -> int: ...
    def nvmlDeviceGetPciInfo_v3(self, handle: Handle) -> Any: ...
    def nvmlDeviceGetMemoryInfo(self, handle: Handle, version: int | None = None) -> Any: ...
    def nvmlDeviceGetUtilizationRates(self, handle: Handle) -> Any: ...
    def nvmlDeviceGetProcessUtilization(self, handle: Handle, since_us: int) -> Sequence[Any]: ...
    def nvmlDeviceGetPowerUsage(self, handle: Handle) -> int: ...
    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Handle) -> int: ...
    def nvmlDeviceGetTemperature(self, handle: Handle, sensor: int) -> int: ...
    def nvmlDeviceGetClockInfo(self, handle: Handle, clock: int) -> int: ...
    def nvmlDeviceGetPerformanceState(self, handle: Handle) -> int: ...
    def nvmlDeviceGetPersistenceMode(self, handle: Handle) -> int: ...
    def nvmlDeviceGetAccountingMode(self, handle: Handle) -> int: ...
    def nvmlDeviceGetAccountingPids(self, handle: Handle) -> Sequence[int]: ...
    def nvmlDeviceGetAccountingStats(self, handle: Handle, pid: int) -> Any: ...
    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle: Handle) -> Sequence[Any]: ...
    def nvmlDeviceGetComputeRunningProcesses_v2(self, handle: Handle) -> Sequence[Any]: ...
    def nvmlDeviceGetGraphicsRunningProcesses_v3(self, handle: Handle) -> Sequence[Any]: ...
    def nvmlDeviceGetGraphicsRunningProcesses_v2(self, handle: Handle) -> Sequence[Any]: ...
    def nvmlDeviceGetMPSComputeRunningProcesses_v3(self, handle: Handle) -> Sequence[Any]: ...
    def nvmlDeviceGetMPSComputeRunningProcesses_v2(self, handle: Handle) -> Sequence[Any]: ...
    def nvmlDeviceGetMigMode(self, handle: Handle) -> Sequence[int]: ...
    def nvmlDeviceGetMaxMigDeviceCount(self, handle: Handle) -> int: ...
    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Handle, index: int) -> Handle: ...
    def nvmlDeviceGetGpuInstanceId(self, handle: Handle) -> int: ...
    def nvmlGpmQueryDeviceSupport(self, handle: Handle) -> Any: ...
    def nvmlGpmSampleAlloc(self) -> Any: ...
    def nvmlGpmSampleFree(self, sample: Any) -> None: ...
    def nvmlGpmSampleGet(self, handle: Handle, sample: Any) -> Any: ...
    def nvmlGpmMigSampleGet(self, handle: Handle, gpu_instance: int, sample: Any) -> Any: ...
    def nvmlGpmMetricsGet(self, request: Any) -> Any: ...
    def c_nvmlGpmMetricsGet_t(self) -> Any: ...


class Fault(Exception):
    """An NVML call said no. code: NVML's, or FUNCTION_NOT_FOUND where bindings and library do not match."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(f"{words} (NVML {code})")
        self.code = code


def call(nvml: Bindings, ask: Callable[[], T]) -> T:
    """The answer of one NVML call. Raises Fault for every error the bindings know.

    NVMLLibraryMismatchError is no NVMLError (facts 3.1), and means a function that this library lacks.
    """
    try:
        return ask()
    except nvml.NVMLError as error:
        raise Fault(int(getattr(error, "value", -1)), str(error)) from error
    except nvml.NVMLLibraryMismatchError as error:
        raise Fault(FUNCTION_NOT_FOUND, str(error)) from error


@dataclass
class Device:
    """One handle being asked. What its calls say about the device's health is kept: the first bad word stands.

    refused: names of readings that NVML refused for lack of permission, of all devices that share the list."""

    nvml: Bindings
    handle: Handle
    health: Health = Health.OK
    health_reason: str | None = None
    refused: list[str] = field(default_factory=list)

    def ask(self, what: str, ask: Callable[[], T]) -> Sample[T]:
        """One reading: absent where the model or driver has none, error where the call failed."""
        try:
            return Sample.measured(self.call(ask))
        except Fault as fault:
            return self.unknown(what, fault)

    def unknown(self, what: str, fault: Fault) -> Sample[Any]:
        """The reading that a failed call leaves. A refusal is kept besides: then the reader's sight is partial (facts 3.8)."""
        if fault.code == NO_PERMISSION:
            self.refused.append(what)
        return unknown(what, fault)

    def call(self, ask: Callable[[], T]) -> T:
        """One answer. Raises Fault, after noting a lost device."""
        try:
            return call(self.nvml, ask)
        except Fault as fault:
            if fault.code in _HEALTH and self.health is Health.OK:
                self.health, self.health_reason = _HEALTH[fault.code], str(fault)
            raise


def unknown(what: str, fault: Fault) -> Sample[Any]:
    """The reading that a failed call leaves: absent where model or driver have no such thing, else an error."""
    reason = f"{what}: {fault}"
    return Sample.absent(reason) if fault.code in _ABSENT else Sample.error(reason)
