"""What an idle GPU shows in both ways of accounting, and what each call costs."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from experiments.gpu_check.nvml import ask, attempt
from experiments.gpu_check.record import CannotRun, Measure

CALLS_TIMED: Final = 40

COSTS: Final[dict[str, Callable[[Any, Any], object]]] = {
    "memory v2": lambda n, h: n.nvmlDeviceGetMemoryInfo(h, n.nvmlMemory_v2),
    "memory v1": lambda n, h: n.nvmlDeviceGetMemoryInfo(h),
    "utilisation": lambda n, h: n.nvmlDeviceGetUtilizationRates(h),
    "process utilisation": lambda n, h: n.nvmlDeviceGetProcessUtilization(h, int((time.time() - 2) * 1e6)),
    "compute process list": lambda n, h: n.nvmlDeviceGetComputeRunningProcesses_v3(h),
    "graphics process list": lambda n, h: n.nvmlDeviceGetGraphicsRunningProcesses_v3(h),
    "MPS process list": lambda n, h: n.nvmlDeviceGetMPSComputeRunningProcesses_v3(h),
    "power": lambda n, h: n.nvmlDeviceGetPowerUsage(h),
    "energy": lambda n, h: n.nvmlDeviceGetTotalEnergyConsumption(h),
    "temperature": lambda n, h: n.nvmlDeviceGetTemperature(h, 0),
    "SM clock": lambda n, h: n.nvmlDeviceGetClockInfo(h, 1),
    "handle by index": lambda n, _: n.nvmlDeviceGetHandleByIndex(0),
}


def baseline(index: int) -> tuple[Measure, ...]:
    """Used memory of a GPU that nobody holds. Raises CannotRun while somebody does."""
    answer = ask(lambda nvml: _baseline(nvml, index))
    if answer["listed"]:
        raise CannotRun(f"the GPU is not idle: NVML lists PID {', '.join(map(str, answer['listed']))}")
    return tuple(
        Measure(name=name, value=one.get("value"), unit="B", note=one.get("error", ""))
        for name, one in answer.items()
        if name != "listed"
    )


def _baseline(nvml: Any, index: int) -> dict[str, Any]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    listed = [process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)]
    return {
        "listed": listed,
        "used, v1": attempt(nvml, lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).used)),
        "used, v2": attempt(nvml, lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2).used)),
        "reserved, v2": attempt(nvml, lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2).reserved)),
        "total": attempt(nvml, lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).total)),
    }


def costs(index: int) -> tuple[Measure, ...]:
    """Median and largest time of each call, in microseconds, on the GPU as it is."""
    answer = ask(lambda nvml: _costs(nvml, index), 60.0)
    return tuple(
        Measure(
            name=name,
            value=one.get("value", {}).get("median"),
            unit="us",
            note=one.get("error") or f"largest {one['value']['largest']} us",
        )
        for name, one in answer.items()
    )


def _costs(nvml: Any, index: int) -> dict[str, Any]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    asked = {name: attempt(nvml, partial(_times, partial(call, nvml, handle))) for name, call in COSTS.items()}
    return {"open and close of the library": {"value": _times(lambda: (nvml.nvmlInit(), nvml.nvmlShutdown()))}, **asked}


def _times(call: Callable[[], object]) -> dict[str, float]:
    taken = []
    for _ in range(CALLS_TIMED):
        began = time.perf_counter()
        call()
        taken.append((time.perf_counter() - began) * 1e6)
    taken.sort()
    return {"median": round(taken[len(taken) // 2], 1), "largest": round(taken[-1], 1)}
