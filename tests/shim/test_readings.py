"""What the state file says is what the bindings read."""

from types import ModuleType
from typing import Any

import pytest

from sim.node.state import (
    GIB,
    GPU_IS_LOST,
    MIB,
    NO_ACTIVITY,
    RESET_REQUIRED,
    Accounted,
    Fault,
    State,
    highest_version,
    not_supported,
    ordinary_node,
)
from tests.shim.conftest import Node, ask_elsewhere


def test_the_bindings_find_the_library_by_name_in_a_process_of_its_own(node: Node) -> None:
    assert ask_elsewhere(node, "print(json.dumps([nvmlSystemGetDriverVersion(), nvmlDeviceGetCount()]))") == ["580.95.05", 1]


def test_v2_tells_reserved_memory_apart_and_v1_counts_it_as_used(node: Node) -> None:
    node.change(total_bytes=80 * GIB, reserved_bytes=600 * MIB, baseline_bytes=4 * MIB)
    v2 = node.nvml.nvmlDeviceGetMemoryInfo(node.handle(), node.nvml.nvmlMemory_v2)
    v1 = node.nvml.nvmlDeviceGetMemoryInfo(node.handle())
    assert (v2.total, v2.reserved, v2.used, v2.free) == (80 * GIB, 600 * MIB, 4 * MIB, 80 * GIB - 604 * MIB)
    assert (v1.total, v1.used, v1.free) == (80 * GIB, 604 * MIB, 80 * GIB - 604 * MIB)


def test_a_wrong_memory_version_is_refused(node: Node) -> None:
    with pytest.raises(node.nvml.NVMLError_ArgumentVersionMismatch):
        node.nvml.nvmlDeviceGetMemoryInfo(node.handle(), 0x03000028)


def test_ghost_memory_is_used_and_belongs_to_no_process(node: Node) -> None:
    node.change(ghost_bytes=9 * GIB)
    assert (node.used(), node.listed()) == (9 * GIB, {})


def test_a_latched_counter_reports_work_although_nobody_works(node: Node) -> None:
    node.change(latched_utilisation=100)
    assert node.nvml.nvmlDeviceGetUtilizationRates(node.handle()).gpu == 100
    assert sm_activity(node, node.handle()) == 0.0


def test_a_gpu_without_metrics_says_not_supported_and_never_zero(node: Node) -> None:
    node.change(faults=NO_ACTIVITY)
    sample = node.nvml.nvmlGpmSampleAlloc()
    with pytest.raises(node.nvml.NVMLError_NotSupported):
        node.nvml.nvmlDeviceGetUtilizationRates(node.handle())
    with pytest.raises(node.nvml.NVMLError_NotSupported):
        node.nvml.nvmlDeviceGetProcessUtilization(node.handle(), 0)
    with pytest.raises(node.nvml.NVMLError_NotSupported):
        node.nvml.nvmlGpmSampleGet(node.handle(), sample)
    node.nvml.nvmlGpmSampleFree(sample)


@pytest.mark.parametrize(("lost", "error"), [(GPU_IS_LOST, "NVMLError_GpuIsLost"), (RESET_REQUIRED, "NVMLError_ResetRequired")])
def test_a_lost_gpu_still_has_its_name_in_the_library_and_no_readings(node: Node, lost: int, error: str) -> None:
    node.write(ordinary_node(2))
    node.change(lost=lost)
    with pytest.raises(getattr(node.nvml, error)):
        node.used()
    assert node.nvml.nvmlDeviceGetUUID(node.handle()) == node.uuid
    assert node.nvml.nvmlDeviceGetMemoryInfo(node.handle(1)).total > 0  # one lost GPU is not the end of the others


def test_a_gpu_that_left_the_bus_is_lost_for_whoever_had_it_open(node: Node) -> None:
    node.write(ordinary_node(2))
    first, second = node.handle(0), node.handle(1)
    node.write(State(gpus=node.state.gpus[1:]))
    with pytest.raises(node.nvml.NVMLError_GpuIsLost):
        node.nvml.nvmlDeviceGetMemoryInfo(first)
    assert node.nvml.nvmlDeviceGetIndex(second) == 0
    assert node.nvml.nvmlDeviceGetCount() == 1


def test_an_injected_error_strikes_as_often_as_it_says_and_only_its_gpu(node: Node) -> None:
    node.write(ordinary_node(2))
    node.change(faults=(Fault(function="nvmlDeviceGetPowerUsage", error=999, times=2),))
    for _ in range(2):
        with pytest.raises(node.nvml.NVMLError_Unknown):
            node.nvml.nvmlDeviceGetPowerUsage(node.handle())
    assert node.nvml.nvmlDeviceGetPowerUsage(node.handle()) > 0
    node.change(faults=(Fault(function="nvmlDeviceGetPowerUsage", error=999),))
    assert node.nvml.nvmlDeviceGetPowerUsage(node.handle(1)) > 0


def test_a_handle_can_be_refused_for_one_gpu(node: Node) -> None:
    node.write(ordinary_node(2))
    node.change(faults=(Fault(function="nvmlDeviceGetHandleByIndex_v2", error=GPU_IS_LOST, times=1),))
    assert node.handle(1)
    with pytest.raises(node.nvml.NVMLError_GpuIsLost):
        node.handle(0)
    assert node.handle(0)


def test_a_fault_with_a_star_strikes_every_function_that_begins_so(node: Node) -> None:
    node.write(State(gpus=node.state.gpus, faults=(Fault(function="nvmlSystemGet*", error=9),)))
    for ask in (node.nvml.nvmlSystemGetDriverVersion, node.nvml.nvmlSystemGetNVMLVersion):
        with pytest.raises(node.nvml.NVMLError_DriverNotLoaded):
            ask()
    assert node.nvml.nvmlDeviceGetCount() == 1


def test_a_driver_that_is_too_old_lacks_the_newer_calls(node: Node) -> None:
    node.change(faults=highest_version("nvmlDeviceGetComputeRunningProcesses", 2))
    assert node.nvml.nvmlDeviceGetComputeRunningProcesses_v2(node.handle()) == []
    with pytest.raises(node.nvml.NVMLError_FunctionNotFound):
        node.nvml.nvmlDeviceGetComputeRunningProcesses_v3(node.handle())
    with pytest.raises(node.nvml.NVMLLibraryMismatchError) as raised:
        node.nvml.nvmlDeviceGetComputeRunningProcesses(node.handle())
    assert not isinstance(raised.value, node.nvml.NVMLError)  # whoever catches only NVMLError falls over it


def test_a_call_the_library_does_not_export_is_function_not_found(node: Node) -> None:
    with pytest.raises(node.nvml.NVMLError_FunctionNotFound):
        node.nvml.nvmlDeviceGetFanSpeed(node.handle())


def test_without_a_state_there_is_no_driver_and_a_broken_one_says_where(node: Node, capfd: pytest.CaptureFixture[str]) -> None:
    path = node.folder / "state"
    path.write_text("driver 1\ngpu GPU-1\nminor zero\n", encoding="utf-8")
    with pytest.raises(node.nvml.NVMLError_Unknown):
        node.nvml.nvmlDeviceGetCount()
    assert f"{path} line 3 cannot be understood" in capfd.readouterr().err
    path.unlink()
    with pytest.raises(node.nvml.NVMLError_DriverNotLoaded):
        node.nvml.nvmlDeviceGetCount()
    node.write(node.state)
    assert node.nvml.nvmlDeviceGetCount() == 1


def test_before_init_and_after_shutdown_nothing_answers(node: Node, bindings: ModuleType) -> None:
    bindings.nvmlShutdown()
    try:
        with pytest.raises(bindings.NVMLError_Uninitialized):
            bindings.nvmlDeviceGetCount()
    finally:
        bindings.nvmlInit()


def test_init_can_fail_as_with_a_driver_that_was_updated_under_it(node: Node) -> None:
    node.write(State(gpus=node.state.gpus, faults=(Fault(function="nvmlInitWithFlags", error=18),)))
    with pytest.raises(node.nvml.NVMLError_LibRmVersionMismatch):
        node.nvml.nvmlInit()


def test_a_gpu_is_found_by_its_uuid_and_its_bus_address(node: Node) -> None:
    node.write(ordinary_node(3))
    by_uuid = node.nvml.nvmlDeviceGetHandleByUUID(node.state.gpus[2].uuid)
    by_bus = node.nvml.nvmlDeviceGetHandleByPciBusId(node.state.gpus[1].pci)
    assert (node.nvml.nvmlDeviceGetMinorNumber(by_uuid), node.nvml.nvmlDeviceGetIndex(by_bus)) == (2, 1)
    assert node.nvml.nvmlDeviceGetPciInfo(by_bus).busId == "00000000:02:00.0"
    with pytest.raises(node.nvml.NVMLError_NotFound):
        node.nvml.nvmlDeviceGetHandleByUUID("GPU-nobody")


def test_energy_is_not_supported_until_it_is_given(node: Node) -> None:
    with pytest.raises(node.nvml.NVMLError_NotSupported):
        node.nvml.nvmlDeviceGetTotalEnergyConsumption(node.handle())
    node.change(energy_mj=1234)
    assert node.nvml.nvmlDeviceGetTotalEnergyConsumption(node.handle()) == 1234


def test_gpm_exists_only_from_hopper_on(node: Node) -> None:
    assert node.nvml.nvmlGpmQueryDeviceSupport(node.handle()).isSupportedDevice
    node.change(gpm=False)
    assert not node.nvml.nvmlGpmQueryDeviceSupport(node.handle()).isSupportedDevice
    with pytest.raises(node.nvml.NVMLError_NotSupported):
        sm_activity(node, node.handle())


def test_metrics_beyond_the_count_are_not_touched(node: Node) -> None:
    request = gpm_request(node, node.handle())
    request.numMetrics = 1
    request.metrics[1].value = 42.0
    node.nvml.nvmlGpmMetricsGet(request)
    assert (request.metrics[0].nvmlReturn, request.metrics[1].value) == (0, 42.0)


def test_a_metric_this_gpu_lacks_has_a_return_code_of_its_own(node: Node) -> None:
    request = gpm_request(node, node.handle())
    request.metrics[0].metricId = node.nvml.NVML_GPM_METRIC_DRAM_BW_UTIL
    node.nvml.nvmlGpmMetricsGet(request)
    assert (request.metrics[0].nvmlReturn, request.metrics[1].nvmlReturn) == (3, 0)


def test_accounting_remembers_the_dead(node: Node) -> None:
    with pytest.raises(node.nvml.NVMLError_NotSupported):
        node.nvml.nvmlDeviceGetAccountingPids(node.handle())
    dead = Accounted(pid=4711, running=False, gpu_percent=7, peak_bytes=5 * GIB, time_ms=9000, start_us=1)
    node.change(accounting=True, accounted=(dead,))
    assert node.nvml.nvmlDeviceGetAccountingPids(node.handle()) == [4711]
    stats = node.nvml.nvmlDeviceGetAccountingStats(node.handle(), 4711)
    assert (stats.maxMemoryUsage, stats.time, stats.isRunning) == (5 * GIB, 9000, 0)


def test_a_wait_for_events_runs_out(node: Node) -> None:
    events = node.nvml.nvmlEventSetCreate()
    node.nvml.nvmlDeviceRegisterEvents(node.handle(), node.nvml.nvmlEventTypeXidCriticalError, events)
    with pytest.raises(node.nvml.NVMLError_Timeout):
        node.nvml.nvmlEventSetWait_v2(events, 5)
    node.nvml.nvmlEventSetFree(events)


def test_what_an_h100_lacks_is_not_supported(node: Node) -> None:
    with pytest.raises(node.nvml.NVMLError_NotSupported):
        node.nvml.nvmlDeviceGetRetiredPages(node.handle(), 0)
    node.change(faults=not_supported("nvmlDeviceGetPowerUsage"))
    with pytest.raises(node.nvml.NVMLError_NotSupported):
        node.nvml.nvmlDeviceGetPowerUsage(node.handle())


def gpm_request(node: Node, handle: Any) -> Any:
    """Two samples of a whole GPU, asked for SM and graphics activity."""
    request = node.nvml.c_nvmlGpmMetricsGet_t()
    request.version, request.numMetrics = 1, 2
    request.sample1, request.sample2 = (node.nvml.nvmlGpmSampleGet(handle, node.nvml.nvmlGpmSampleAlloc()) for _ in range(2))
    request.metrics[0].metricId, request.metrics[1].metricId = (
        node.nvml.NVML_GPM_METRIC_SM_UTIL,
        node.nvml.NVML_GPM_METRIC_GRAPHICS_UTIL,
    )
    return request


def sm_activity(node: Node, handle: Any) -> float:
    """SM activity in percent."""
    request = gpm_request(node, handle)
    node.nvml.nvmlGpmMetricsGet(request)
    assert request.metrics[0].nvmlReturn == 0
    return float(request.metrics[0].value)
