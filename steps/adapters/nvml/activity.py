"""What a GPU does: utilisation, and SM and graphics-engine activity by GPM where the model has it (facts 3.6)."""

import math
from typing import Any, Final, NamedTuple

from steps.adapters.nvml.bindings import (
    FUNCTION_NOT_FOUND,
    NOT_FOUND,
    NOT_SUPPORTED,
    SUCCESS,
    Bindings,
    Device,
    Fault,
    Handle,
)
from steps.contracts.document import Sample, State
from steps.contracts.node_facts import ProcessActivity

GPM_SPAN_S: Final = 0.1
"""Least time between the two GPM samples."""
PROCESS_WINDOW_US: Final = 2_000_000
"""How far back process samples are asked. 0 would average over an undefined long window (nvtop#91)."""
_GPM_VERSION: Final = 1
_GRAPHICS_UTIL, _SM_UTIL = 1, 2


class EngineActivity(NamedTuple):
    sm: Sample[float]
    graphics: Sample[float]


class GpmStart(NamedTuple):
    """The first of two GPM samples. failed: why there is none."""

    sample: Any
    failed: Sample[float] | None


def ratio(percent: float, what: str) -> Sample[float]:
    """Percent as a ratio. Outside 0 to 100 it is clamped and marked as filled: not believed, hence not known."""
    if math.isnan(percent):
        return Sample.error(f"{what} is not a number")
    if 0 <= percent <= 100:
        return Sample.measured(round(percent / 100, 6))
    return Sample(value=min(max(percent / 100, 0.0), 1.0), state=State.FILLED, reason=f"{what} was given as {percent} %; clamped")


def utilisation(device: Device) -> Sample[float]:
    """Share of the last sample period (1/6 s to 1 s) in which any kernel ran. Not applicable on MIG, on parent
    and instance."""
    try:
        return ratio(device.call(lambda: device.nvml.nvmlDeviceGetUtilizationRates(device.handle)).gpu, "utilisation")
    except Fault as fault:
        return _lacking(device, "utilisation", fault)


def _lacking(device: Device, what: str, fault: Fault) -> Sample[float]:
    """A counter that this model or driver does not have is not applicable: judged without it. Any other failure is a gap."""
    if fault.code in (NOT_SUPPORTED, FUNCTION_NOT_FOUND):
        return Sample.not_applicable(f"{what}: {fault}")
    return device.unknown(what, fault)


def start_gpm(device: Device, parent: Handle | None, gpu_instance: int | None) -> GpmStart:
    """Take the first GPM sample of a GPU, or of a MIG instance through its parent."""
    nvml = device.nvml
    asked = device.handle if parent is None else parent
    try:
        if not device.call(lambda: nvml.nvmlGpmQueryDeviceSupport(asked)).isSupportedDevice:
            return GpmStart(None, Sample.not_applicable("this model has no GPM (before Hopper)"))
        sample = device.call(nvml.nvmlGpmSampleAlloc)
    except Fault as fault:
        return GpmStart(None, _lacking(device, "GPM", fault))
    try:
        _take(device, asked, gpu_instance, sample)
    except Fault as fault:
        _free(nvml, sample)
        return GpmStart(None, device.unknown("GPM sample", fault))
    return GpmStart(sample, None)


def finish_gpm(device: Device, parent: Handle | None, gpu_instance: int | None, start: GpmStart) -> EngineActivity:
    """Take the second sample, at least GPM_SPAN_S after the first, and compare. Both samples are freed."""
    if start.failed is not None:
        return EngineActivity(start.failed, start.failed)
    nvml = device.nvml
    try:
        second = device.call(nvml.nvmlGpmSampleAlloc)
        try:
            _take(device, device.handle if parent is None else parent, gpu_instance, second)
            return _compared(device, start.sample, second)
        finally:
            _free(nvml, second)
    except Fault as fault:
        failed: Sample[float] = device.unknown("GPM metrics", fault)
        return EngineActivity(failed, failed)
    finally:
        _free(nvml, start.sample)


def _take(device: Device, asked: Handle, gpu_instance: int | None, sample: Any) -> None:
    nvml = device.nvml
    if gpu_instance is None:
        device.call(lambda: nvml.nvmlGpmSampleGet(asked, sample))
    else:
        device.call(lambda: nvml.nvmlGpmMigSampleGet(asked, gpu_instance, sample))


def _free(nvml: Bindings, sample: Any) -> None:
    try:
        nvml.nvmlGpmSampleFree(sample)
    except nvml.NVMLError:
        return  # the process ends in a moment and takes it along


def _compared(device: Device, first: Any, second: Any) -> EngineActivity:
    request = device.nvml.c_nvmlGpmMetricsGet_t()
    request.version, request.numMetrics = _GPM_VERSION, 2
    request.sample1, request.sample2 = first, second
    for slot, metric in enumerate((_SM_UTIL, _GRAPHICS_UTIL)):
        request.metrics[slot].metricId = metric
    answer = device.call(lambda: device.nvml.nvmlGpmMetricsGet(request))
    sm, graphics = answer.metrics[0], answer.metrics[1]
    return EngineActivity(_metric(device, sm, "SM activity"), _metric(device, graphics, "graphics activity"))


def _metric(device: Device, metric: Any, what: str) -> Sample[float]:
    """Each metric has a return code of its own."""
    if metric.nvmlReturn != SUCCESS:
        return device.unknown(what, Fault(int(metric.nvmlReturn), "this GPM metric failed"))
    return ratio(float(metric.value), what)


def process_activity(device: Device, now_us: int) -> Sample[tuple[ProcessActivity, ...]]:
    """The highest SM utilisation of each process within the window.

    NOT_FOUND means that NVML holds no samples, which is not the same as no work: absent.
    """
    since = now_us - PROCESS_WINDOW_US
    try:
        samples = device.call(lambda: device.nvml.nvmlDeviceGetProcessUtilization(device.handle, since))
    except Fault as fault:
        if fault.code == SUCCESS:  # how the bindings report an empty list
            return Sample.measured(())
        if fault.code == NOT_FOUND:
            return Sample.absent("NVML holds no process samples of the last seconds")
        return device.unknown("process utilisation", fault)
    fresh = [one for one in samples if one.timeStamp > since]
    strange = next((one for one in fresh if one.smUtil > 100), None)
    if strange is not None:
        return Sample.error(f"process utilisation of PID {strange.pid} was given as {strange.smUtil} %")
    highest: dict[int, int] = {}
    for one in fresh:
        highest[one.pid] = max(highest.get(one.pid, one.smUtil), one.smUtil)
    return Sample.measured(tuple(ProcessActivity(pid=pid, sm_ratio=percent / 100) for pid, percent in sorted(highest.items())))
