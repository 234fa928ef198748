"""One look through NVML, from init to shutdown. A lost GPU is one of the GPUs, never the end of the scan."""

from datetime import datetime
from functools import partial
from typing import Any, Final

from steps.adapters.nvml.activity import GPM_SPAN_S, finish_gpm, start_gpm
from steps.adapters.nvml.bindings import (
    DRIVER_NOT_LOADED,
    LIBRARY_NOT_FOUND,
    NO_PERMISSION,
    NOT_FOUND,
    VERSION_MISMATCH,
    Bindings,
    Device,
    Fault,
    call,
)
from steps.adapters.nvml.device import Found, gpu_facts, unreachable
from steps.contracts.document import Sample
from steps.contracts.node_facts import Driver, GpuFacts
from steps.contracts.ports import Clock, GpuReading

MAX_DEVICES: Final = 64
_WHAT_TO_DO: Final = {
    LIBRARY_NOT_FOUND: "libnvidia-ml.so.1 is not here: run this on a GPU node, with the nvidia runtime",
    DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded: wait for its pod, or load it",
    VERSION_MISMATCH: "library and kernel module are of different versions: the driver was updated, reload it or reboot",
}


def read_nvml(nvml: Bindings, clock: Clock, *, pid_max: int, pci_gpu_count: Sample[int]) -> GpuReading:
    """All devices of the node. If NVML itself refuses, `gpus` is an error with a sentence.

    Each look opens the library and closes it again: an open handle would keep a GPU from being reset (facts 7).
    """
    try:
        call(nvml, nvml.nvmlInit)
    except Fault as fault:
        words = f"{fault}; {_WHAT_TO_DO[fault.code]}" if fault.code in _WHAT_TO_DO else str(fault)
        return failed_reading(words, pci_gpu_count, ("everything",) if fault.code == NO_PERMISSION else ())
    library = Device(nvml, None)
    try:
        driver, gpus = _driver(library), _gpus(library, clock, pid_max)
    finally:
        _shut_down(nvml)
    return GpuReading(driver=driver, gpus=gpus, pci_gpu_count=pci_gpu_count, refused=tuple(dict.fromkeys(library.refused)))


def failed_reading(reason: str, pci_gpu_count: Sample[int], refused: tuple[str, ...] = ()) -> GpuReading:
    """What is left when NVML could not be asked. reason: a sentence."""
    gap: Sample[Any] = Sample.error(reason, source="NVML")
    driver = Driver(driver_version=gap, nvml_version=gap, cuda_version=gap)
    return GpuReading(driver=driver, gpus=gap, pci_gpu_count=pci_gpu_count, refused=refused)


def _shut_down(nvml: Bindings) -> None:
    try:
        nvml.nvmlShutdown()
    except nvml.NVMLError:
        return  # what was read stands; the process that holds the library ends next


def _driver(library: Device) -> Driver:
    nvml = library.nvml
    return Driver(
        driver_version=library.ask("driver version", nvml.nvmlSystemGetDriverVersion),
        nvml_version=library.ask("NVML version", nvml.nvmlSystemGetNVMLVersion),
        cuda_version=library.ask("CUDA version", lambda: _cuda(nvml.nvmlSystemGetCudaDriverVersion_v2())),
    )


def _cuda(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _gpus(library: Device, clock: Clock, pid_max: int) -> Sample[tuple[GpuFacts, ...]]:
    """All first GPM samples, then a short wait, then the rest: the wait is paid once, not once a GPU."""
    counted = library.ask("count of devices", library.nvml.nvmlDeviceGetCount)
    count = counted.known()
    if count is None:
        return Sample.error(counted.reason or counted.state.value, source="NVML")
    if count > MAX_DEVICES:
        return Sample.error(f"NVML counts {count} devices; more than {MAX_DEVICES} cannot be", source="NVML")
    found = [one for index in range(count) for one in _open(library, index, clock.now())]
    if any(isinstance(one, Found) and one.gpm.failed is None for one in found):
        clock.sleep(GPM_SPAN_S)
    return Sample.measured(tuple(one if isinstance(one, GpuFacts) else _finish(one, clock.now(), pid_max) for one in found), "NVML")


def _finish(found: Found, now: datetime, pid_max: int) -> GpuFacts:
    engines = finish_gpm(found.device, found.parent, found.gpu_instance, found.gpm)
    return gpu_facts(found, engines, taken_at=now, pid_max=pid_max)


def _open(library: Device, index: int, now: datetime) -> list[Found | GpuFacts]:
    """A GPU and its MIG instances; finished facts for what could not be opened."""
    nvml = library.nvml
    try:
        device = Device(nvml, library.call(partial(nvml.nvmlDeviceGetHandleByIndex, index)), refused=library.refused)
        uuid = device.call(lambda: nvml.nvmlDeviceGetUUID(device.handle))
    except Fault as fault:
        library.unknown(f"GPU {index}", fault)
        return [unreachable(f"unknown-{index}", index, fault, taken_at=now)]
    mig = device.ask("MIG mode", lambda: nvml.nvmlDeviceGetMigMode(device.handle)[0] == 1)
    gpu = Found(device=device, uuid=uuid, index=index, gpm=start_gpm(device, None, None), mig_mode=mig)
    return [gpu, *(_instances(gpu, now) if mig.known() is True else [])]


def _instances(gpu: Found, now: datetime) -> list[Found | GpuFacts]:
    nvml, parent = gpu.device.nvml, gpu.device.handle
    try:
        slots = gpu.device.call(lambda: nvml.nvmlDeviceGetMaxMigDeviceCount(parent))
    except Fault as fault:
        gpu.device.unknown("MIG instances", fault)
        return [unreachable(f"unknown-mig-of-{gpu.uuid}", 0, fault, taken_at=now, parent_uuid=gpu.uuid)]
    opened = (_instance(gpu, slot, now) for slot in range(min(slots, MAX_DEVICES)))
    return [one for one in opened if one is not None]


def _instance(gpu: Found, slot: int, now: datetime) -> Found | GpuFacts | None:
    """None: nothing in this slot."""
    nvml, parent = gpu.device.nvml, gpu.device.handle
    try:
        handle = gpu.device.call(lambda: nvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, slot))
        device = Device(nvml, handle, refused=gpu.device.refused)
        uuid = device.call(lambda: nvml.nvmlDeviceGetUUID(handle))
        instance = device.call(lambda: nvml.nvmlDeviceGetGpuInstanceId(handle))
    except Fault as fault:
        if fault.code == NOT_FOUND:
            return None
        gpu.device.unknown(f"MIG instance {slot}", fault)
        return unreachable(f"unknown-mig-{slot}-of-{gpu.uuid}", slot, fault, taken_at=now, parent_uuid=gpu.uuid)
    return Found(
        device=device,
        uuid=uuid,
        index=slot,
        gpm=start_gpm(device, parent, instance),
        mig_mode=Sample.not_applicable("it is itself a MIG instance"),
        parent=parent,
        parent_uuid=gpu.uuid,
        gpu_instance=instance,
    )
