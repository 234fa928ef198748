"""A `pynvml` that is not there: the functions NvmlReader's child uses, over plain values. Errors are put in by function name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Final

from steps.adapters.nvml.scan import read_nvml
from steps.contracts.document import Sample
from steps.contracts.node_facts import GpuFacts
from steps.contracts.ports import GpuReading

NOON: Final = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
GIB: Final = 1 << 30
PID_MAX: Final = 4_194_304


class FakeNvmlError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"error {value}")
        self.value = value


class FakeMismatchError(Exception):
    """As in the bindings, not a subclass of their NVMLError."""


def listed(pid: int, used: int | None = 5 * GIB) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, usedGpuMemory=used)


def worked(pid: int, percent: int, seconds_ago: float = 0.5) -> SimpleNamespace:
    at = NOON - timedelta(seconds=seconds_ago)
    return SimpleNamespace(pid=pid, smUtil=percent, timeStamp=int(at.timestamp() * 1_000_000))


@dataclass
class FakeGpu:
    """Ordinary values of an idle Hopper. errors: function name -> code, mismatch: functions that the library lacks."""

    uuid: str = "GPU-a"
    minor: int = 0
    total: int = 80 * GIB
    used: int = 4 << 20
    reserved: int = 600 << 20
    utilisation: int = 0
    sm_percent: float = 0.0
    graphics_percent: float = 0.0
    compute: Sequence[Any] = ()
    compute_v2: Sequence[Any] | None = None
    graphics: Sequence[Any] = ()
    mps: Sequence[Any] = ()
    process_samples: Sequence[Any] = ()
    gpm: bool = True
    mig: Sequence["FakeGpu | None"] = ()
    gpu_instance: int | None = None
    errors: dict[str, int] = field(default_factory=dict)
    metric_errors: tuple[int, int] = (0, 0)
    fail_times: dict[str, int] = field(default_factory=dict)
    """Function name -> how often its error strikes; without an entry: always."""


class FakeNvml:
    NVMLError: type[Exception] = FakeNvmlError
    NVMLLibraryMismatchError: type[Exception] = FakeMismatchError
    nvmlMemory_v2 = 0x02000028  # noqa: N815

    def __init__(self, *gpus: FakeGpu, errors: dict[str, int] | None = None, mismatched: Sequence[str] = ()) -> None:
        self.gpus = gpus
        self.errors = {} if errors is None else errors
        self.mismatched = mismatched
        self.open = 0
        self.samples_held = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Every function of the bindings: first the errors, then the answer in `_answer_<name>`."""

        def ask(*arguments: Any) -> Any:
            if name in self.mismatched:
                raise FakeMismatchError(name)
            gpu = arguments[0] if arguments and isinstance(arguments[0], FakeGpu) else None
            self._fail(name, gpu, arguments)
            return _ANSWERS[name](self, *arguments)

        return ask

    def _fail(self, name: str, gpu: FakeGpu | None, arguments: Sequence[Any]) -> None:
        versioned = f"{name}({len(arguments)})"
        errors = self.errors if gpu is None else {**self.errors, **gpu.errors}
        for key in (name, versioned):
            if key not in errors:
                continue
            if gpu is not None and key in gpu.fail_times:
                if gpu.fail_times[key] == 0:
                    continue
                gpu.fail_times[key] -= 1
            raise FakeNvmlError(errors[key])

    def c_nvmlGpmMetricsGet_t(self) -> Any:  # noqa: N802
        metrics = [SimpleNamespace(metricId=0, nvmlReturn=0, value=0.0) for _ in range(4)]
        return SimpleNamespace(version=0, numMetrics=0, sample1=None, sample2=None, metrics=metrics)


def _init(nvml: FakeNvml) -> None:
    nvml.open += 1


def _shutdown(nvml: FakeNvml) -> None:
    nvml.open -= 1


def _memory(_: FakeNvml, gpu: FakeGpu, version: int | None = None) -> Any:
    reserved_in_used = gpu.reserved if version is None else 0
    used = gpu.used + reserved_in_used
    return SimpleNamespace(total=gpu.total, used=used, free=gpu.total - gpu.used - gpu.reserved, reserved=gpu.reserved)


def _mig_handle(_: FakeNvml, gpu: FakeGpu, slot: int) -> FakeGpu:
    instance = gpu.mig[slot]
    if instance is None:
        raise FakeNvmlError(6)
    return instance


def _process_samples(_: FakeNvml, gpu: FakeGpu, __: int) -> Sequence[Any]:
    """All it has, older ones included: what was asked is the driver's to obey."""
    if not gpu.process_samples:
        raise FakeNvmlError(0)  # the bindings turn SUCCESS without samples into an error of code 0
    return gpu.process_samples


def _sample_alloc(nvml: FakeNvml) -> SimpleNamespace:
    nvml.samples_held += 1
    return SimpleNamespace(of=None)


def _sample_free(nvml: FakeNvml, _: Any) -> None:
    nvml.samples_held -= 1


def _sample_get(_: FakeNvml, gpu: FakeGpu, sample: Any) -> None:
    sample.of = gpu


def _mig_sample_get(_: FakeNvml, gpu: FakeGpu, instance: int, sample: Any) -> None:
    sample.of = next(one for one in gpu.mig if one is not None and one.gpu_instance == instance)


def _metrics(_: FakeNvml, request: Any) -> Any:
    gpu = request.sample2.of
    by_id = {1: (gpu.graphics_percent, gpu.metric_errors[0]), 2: (gpu.sm_percent, gpu.metric_errors[1])}
    for metric in request.metrics[: request.numMetrics]:
        metric.value, metric.nvmlReturn = by_id[metric.metricId]
    return request


_ANSWERS: Final[dict[str, Callable[..., Any]]] = {
    "nvmlInit": _init,
    "nvmlShutdown": _shutdown,
    "nvmlSystemGetDriverVersion": lambda _: "580.95.05",
    "nvmlSystemGetNVMLVersion": lambda _: "13.580.95.05",
    "nvmlSystemGetCudaDriverVersion_v2": lambda _: 12080,
    "nvmlDeviceGetCount": lambda nvml: len(nvml.gpus),
    "nvmlDeviceGetHandleByIndex": lambda nvml, index: nvml.gpus[index],
    "nvmlDeviceGetUUID": lambda _, gpu: gpu.uuid,
    "nvmlDeviceGetName": lambda _, gpu: "NVIDIA H100",
    "nvmlDeviceGetMinorNumber": lambda _, gpu: gpu.minor,
    "nvmlDeviceGetPciInfo_v3": lambda _, gpu: SimpleNamespace(busId=b"00000000:01:00.0"),
    "nvmlDeviceGetMemoryInfo": _memory,
    "nvmlDeviceGetUtilizationRates": lambda _, gpu: SimpleNamespace(gpu=gpu.utilisation, memory=0),
    "nvmlDeviceGetProcessUtilization": _process_samples,
    "nvmlDeviceGetPowerUsage": lambda _, gpu: 70_500,
    "nvmlDeviceGetTotalEnergyConsumption": lambda _, gpu: 1_500,
    "nvmlDeviceGetTemperature": lambda _, gpu, sensor: 33,
    "nvmlDeviceGetClockInfo": lambda _, gpu, clock: {1: 1980, 2: 2619}[clock],
    "nvmlDeviceGetPerformanceState": lambda _, gpu: 0,
    "nvmlDeviceGetPersistenceMode": lambda _, gpu: 1,
    "nvmlDeviceGetAccountingMode": lambda _, gpu: 0,
    "nvmlDeviceGetComputeRunningProcesses_v3": lambda _, gpu: gpu.compute,
    "nvmlDeviceGetComputeRunningProcesses_v2": lambda _, gpu: gpu.compute if gpu.compute_v2 is None else gpu.compute_v2,
    "nvmlDeviceGetGraphicsRunningProcesses_v3": lambda _, gpu: gpu.graphics,
    "nvmlDeviceGetGraphicsRunningProcesses_v2": lambda _, gpu: gpu.graphics,
    "nvmlDeviceGetMPSComputeRunningProcesses_v3": lambda _, gpu: gpu.mps,
    "nvmlDeviceGetMPSComputeRunningProcesses_v2": lambda _, gpu: gpu.mps,
    "nvmlDeviceGetMigMode": lambda _, gpu: [1 if gpu.mig else 0, 0],
    "nvmlDeviceGetMaxMigDeviceCount": lambda _, gpu: len(gpu.mig),
    "nvmlDeviceGetMigDeviceHandleByIndex": _mig_handle,
    "nvmlDeviceGetGpuInstanceId": lambda _, gpu: gpu.gpu_instance,
    "nvmlGpmQueryDeviceSupport": lambda _, gpu: SimpleNamespace(isSupportedDevice=int(gpu.gpm)),
    "nvmlGpmSampleAlloc": _sample_alloc,
    "nvmlGpmSampleFree": _sample_free,
    "nvmlGpmSampleGet": _sample_get,
    "nvmlGpmMigSampleGet": _mig_sample_get,
    "nvmlGpmMetricsGet": _metrics,
}


@dataclass
class FakeClock:
    """Fits the Clock protocol; sleeping costs nothing."""

    now_utc: datetime = NOON
    slept_s: float = 0.0

    def now(self) -> datetime:
        return self.now_utc

    def sleep(self, seconds: float) -> None:
        self.slept_s += seconds
        self.now_utc += timedelta(seconds=seconds)


def read(nvml: FakeNvml, clock: FakeClock | None = None) -> GpuReading:
    on_bus = Sample.measured(len(nvml.gpus))
    return read_nvml(nvml, FakeClock() if clock is None else clock, pid_max=PID_MAX, pci_gpu_count=on_bus)


def gpus_of(nvml: FakeNvml) -> tuple[GpuFacts, ...]:
    gpus = read(nvml).gpus.known()
    assert gpus is not None
    return gpus


def only(gpu: FakeGpu) -> GpuFacts:
    """What is said of a node's single GPU."""
    (facts,) = gpus_of(FakeNvml(gpu))
    return facts
