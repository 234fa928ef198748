"""One look through NVML: every field a reading, nothing unknown ever a zero."""

import pytest

from steps.contracts.document import State
from steps.contracts.node_facts import Health, MemoryAccounting
from tests.unit.fake_nvml import FakeClock, FakeGpu, FakeNvml, gpus_of, only, read, worked

NOT_SUPPORTED, UNKNOWN_ERROR, FUNCTION_NOT_FOUND, LOST, RESET = 3, 999, 13, 15, 16


def test_an_ordinary_gpu_has_every_reading() -> None:
    gpu = only(FakeGpu(utilisation=37, sm_percent=12.5, graphics_percent=40.0))
    (activity,) = gpu.activity
    assert (gpu.uuid, gpu.name.known(), gpu.minor_number.known(), gpu.pci_bus_id.known()) == (
        "GPU-a",
        "NVIDIA H100",
        0,
        "00000000:01:00.0",
    )
    assert (gpu.health, gpu.power_w.known(), gpu.energy_j.known(), gpu.sm_clock_mhz.known()) == (Health.OK, 70.5, 1.5, 1980)
    assert gpu.memory_clock_mhz.known() == 2619
    assert (gpu.persistence_mode.known(), gpu.accounting_mode.known(), gpu.mig_mode.known()) == (True, False, False)
    assert (activity.utilisation_ratio.known(), activity.sm_active_ratio.known(), activity.graphics_active_ratio.known()) == (
        0.37,
        0.125,
        0.4,
    )


def test_the_library_says_its_versions() -> None:
    driver = read(FakeNvml()).driver
    assert (driver.driver_version.known(), driver.nvml_version.known(), driver.cuda_version.known()) == (
        "580.95.05",
        "13.580.95.05",
        "12.8",
    )


def test_a_node_without_gpus_is_measured_to_have_none() -> None:
    assert read(FakeNvml()).gpus.known() == ()


@pytest.mark.parametrize(
    ("function", "field"),
    [
        ("nvmlDeviceGetPowerUsage", "power_w"),
        ("nvmlDeviceGetTotalEnergyConsumption", "energy_j"),
        ("nvmlDeviceGetTemperature", "temperature_c"),
        ("nvmlDeviceGetClockInfo", "sm_clock_mhz"),
        ("nvmlDeviceGetClockInfo", "memory_clock_mhz"),
        ("nvmlDeviceGetPerformanceState", "performance_state"),
        ("nvmlDeviceGetPersistenceMode", "persistence_mode"),
        ("nvmlDeviceGetAccountingMode", "accounting_mode"),
        ("nvmlDeviceGetMinorNumber", "minor_number"),
        ("nvmlDeviceGetMigMode", "mig_mode"),
        ("nvmlDeviceGetName", "name"),
        ("nvmlDeviceGetPciInfo_v3", "pci_bus_id"),
    ],
)
@pytest.mark.parametrize(
    ("code", "state"), [(NOT_SUPPORTED, State.ABSENT), (FUNCTION_NOT_FOUND, State.ABSENT), (UNKNOWN_ERROR, State.ERROR)]
)
def test_a_reading_that_fails_is_unknown_with_its_reason(function: str, field: str, code: int, state: State) -> None:
    sample = getattr(only(FakeGpu(errors={function: code})), field)
    assert (sample.value, sample.state) == (None, state)
    assert f"NVML {code}" in sample.reason


def test_utilisation_that_could_not_be_read_is_a_gap() -> None:
    (activity,) = only(FakeGpu(errors={"nvmlDeviceGetUtilizationRates": UNKNOWN_ERROR})).activity
    assert (activity.utilisation_ratio.value, activity.utilisation_ratio.state) == (None, State.ERROR)


def test_utilisation_that_the_model_lacks_is_not_applicable_and_not_zero() -> None:
    (activity,) = only(FakeGpu(errors={"nvmlDeviceGetUtilizationRates": NOT_SUPPORTED})).activity
    assert (activity.utilisation_ratio.value, activity.utilisation_ratio.state) == (None, State.NOT_APPLICABLE)


@pytest.mark.parametrize("percent", [101, 255, -1])
def test_a_utilisation_outside_its_range_is_clamped_and_not_believed(percent: int) -> None:
    (activity,) = only(FakeGpu(utilisation=percent)).activity
    ratio = activity.utilisation_ratio
    assert (ratio.known(), ratio.state, ratio.value) == (None, State.FILLED, 1.0 if percent > 0 else 0.0)
    assert str(percent) in (ratio.reason or "")


def test_memory_is_v2_where_the_driver_has_it() -> None:
    memory = only(FakeGpu(used=5, reserved=7)).memory
    assert (memory.accounting, memory.used_bytes.known(), memory.reserved_bytes.known()) == (MemoryAccounting.V2, 5, 7)


@pytest.mark.parametrize("code", [FUNCTION_NOT_FOUND, NOT_SUPPORTED, 25])
def test_memory_falls_back_to_v1_and_says_so(code: int) -> None:
    memory = only(FakeGpu(used=5, reserved=7, errors={"nvmlDeviceGetMemoryInfo(2)": code})).memory
    assert (memory.accounting, memory.used_bytes.known()) == (MemoryAccounting.V1, 12)
    assert (memory.reserved_bytes.value, memory.reserved_bytes.state) == (None, State.ABSENT)


def test_a_memory_call_that_fails_is_not_asked_in_v1_for_a_better_answer() -> None:
    memory = only(FakeGpu(errors={"nvmlDeviceGetMemoryInfo(2)": UNKNOWN_ERROR})).memory
    assert (memory.used_bytes.value, memory.used_bytes.state, memory.total_bytes.value) == (None, State.ERROR, None)


@pytest.mark.parametrize(("code", "health"), [(LOST, Health.LOST), (RESET, Health.RESET_REQUIRED)])
def test_a_lost_gpu_says_so_and_the_others_are_read(code: int, health: Health) -> None:
    lost = FakeGpu(uuid="GPU-lost", errors=dict.fromkeys(("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUtilizationRates"), code))
    first, second = gpus_of(FakeNvml(lost, FakeGpu(uuid="GPU-fine")))
    assert (first.uuid, first.health, first.memory.used_bytes.value) == ("GPU-lost", health, None)
    assert (second.uuid, second.health, second.memory.used_bytes.known()) == ("GPU-fine", Health.OK, 4 << 20)


@pytest.mark.parametrize(("code", "health"), [(LOST, Health.LOST), (RESET, Health.RESET_REQUIRED), (UNKNOWN_ERROR, Health.UNKNOWN)])
def test_a_gpu_without_a_handle_is_still_one_of_the_gpus(code: int, health: Health) -> None:
    gone, fine = gpus_of(FakeNvml(FakeGpu(errors={"nvmlDeviceGetUUID": code}), FakeGpu(uuid="GPU-fine")))
    assert (gone.index, gone.health, fine.uuid) == (0, health, "GPU-fine")
    assert (gone.memory.used_bytes.state, gone.processes.state, gone.activity[0].utilisation_ratio.state) == (State.ERROR,) * 3


def test_a_call_that_only_failed_says_nothing_about_the_gpus_health() -> None:
    assert only(FakeGpu(errors={"nvmlDeviceGetPowerUsage": UNKNOWN_ERROR})).health is Health.OK


def test_a_function_that_the_library_lacks_is_absent_although_its_error_is_no_nvml_error() -> None:
    (gpu,) = gpus_of(FakeNvml(FakeGpu(), mismatched=["nvmlDeviceGetPowerUsage"]))
    assert (gpu.power_w.value, gpu.power_w.state) == (None, State.ABSENT)


@pytest.mark.parametrize(
    ("code", "words"),
    [(12, "libnvidia-ml.so.1 is not here"), (9, "driver is not loaded"), (18, "different versions"), (999, "999")],
)
def test_a_library_that_does_not_open_is_an_error_with_a_sentence(code: int, words: str) -> None:
    reading = read(FakeNvml(errors={"nvmlInit": code}))
    assert (reading.gpus.value, reading.gpus.state, reading.driver.driver_version.value) == (None, State.ERROR, None)
    assert words in (reading.gpus.reason or "")


def test_a_failed_count_is_an_error_and_not_a_node_without_gpus() -> None:
    assert read(FakeNvml(FakeGpu(), errors={"nvmlDeviceGetCount": UNKNOWN_ERROR})).gpus.state is State.ERROR


@pytest.mark.parametrize("errors", [{}, {"nvmlDeviceGetCount": 999}, {"nvmlDeviceGetHandleByIndex": 15}, {"nvmlShutdown": 999}])
def test_the_library_is_closed_whatever_happened(errors: dict[str, int]) -> None:
    nvml = FakeNvml(FakeGpu(), errors=errors)
    read(nvml)
    assert nvml.open == (1 if "nvmlShutdown" in errors else 0)
    assert nvml.samples_held == 0


def test_the_wait_for_gpm_is_paid_once_and_not_once_a_gpu() -> None:
    clock = FakeClock()
    read(FakeNvml(*(FakeGpu(uuid=f"GPU-{n}") for n in range(8))), clock)
    assert clock.slept_s == pytest.approx(0.1)


def test_without_gpm_nobody_waits_and_sm_activity_is_not_applicable() -> None:
    clock = FakeClock()
    gpus = read(FakeNvml(FakeGpu(gpm=False)), clock).gpus.known()
    assert gpus is not None
    sm = gpus[0].activity[0].sm_active_ratio
    assert (clock.slept_s, sm.value, sm.state) == (0.0, None, State.NOT_APPLICABLE)


@pytest.mark.parametrize("function", ["nvmlGpmSampleGet", "nvmlGpmMetricsGet", "nvmlGpmSampleAlloc", "nvmlGpmQueryDeviceSupport"])
def test_gpm_that_fails_is_unknown_and_its_samples_are_freed(function: str) -> None:
    nvml = FakeNvml(FakeGpu(errors={function: 999}), errors={function: 999})
    (gpu,) = gpus_of(nvml)
    assert (gpu.activity[0].sm_active_ratio.state, nvml.samples_held) == (State.ERROR, 0)


def test_each_gpm_metric_has_a_return_code_of_its_own() -> None:
    (activity,) = only(FakeGpu(sm_percent=30.0, graphics_percent=50.0, metric_errors=(3, 0))).activity
    assert (activity.graphics_active_ratio.state, activity.sm_active_ratio.known()) == (State.ABSENT, 0.3)


def test_a_gpm_value_that_is_no_number_is_an_error() -> None:
    (activity,) = only(FakeGpu(sm_percent=float("nan"))).activity
    assert activity.sm_active_ratio.state is State.ERROR


def test_process_utilisation_keeps_each_processs_highest_sample_of_the_window() -> None:
    samples = (worked(7, 20), worked(7, 55, 1.5), worked(9, 0), worked(8, 99, seconds_ago=30))
    by_process = only(FakeGpu(process_samples=samples)).process_activity.known()
    assert by_process is not None
    assert [(one.pid, one.sm_ratio) for one in by_process] == [(7, 0.55), (9, 0.0)]


def test_no_process_samples_held_is_absent_and_none_found_is_empty() -> None:
    assert only(FakeGpu()).process_activity.known() == ()
    absent = only(FakeGpu(errors={"nvmlDeviceGetProcessUtilization": 6})).process_activity
    assert (absent.value, absent.state) == (None, State.ABSENT)


def test_a_process_utilisation_beyond_100_voids_the_list() -> None:
    assert only(FakeGpu(process_samples=(worked(7, 20), worked(8, 4711)))).process_activity.state is State.ERROR


def test_mig_instances_are_gpus_of_their_own_below_their_parent() -> None:
    instance = FakeGpu(uuid="MIG-1", gpu_instance=3, total=10 << 30, used=1 << 30, sm_percent=60.0)
    parent, mig = gpus_of(FakeNvml(FakeGpu(mig=(None, instance), errors={"nvmlGpmSampleGet": 3})))
    assert (parent.mig_mode.known(), parent.parent_uuid, parent.activity[0].sm_active_ratio.state) == (True, None, State.ABSENT)
    assert (mig.uuid, mig.index, mig.parent_uuid, mig.memory.used_bytes.known()) == ("MIG-1", 1, "GPU-a", 1 << 30)
    assert (mig.activity[0].sm_active_ratio.known(), mig.power_w.state) == (0.6, State.NOT_APPLICABLE)


def test_a_mig_instance_that_cannot_be_opened_is_not_left_out() -> None:
    broken = FakeGpu(uuid="MIG-1", gpu_instance=3, errors={"nvmlDeviceGetUUID": 999})
    _, mig = gpus_of(FakeNvml(FakeGpu(mig=(broken,))))
    assert (mig.health, mig.parent_uuid, mig.memory.used_bytes.state) == (Health.UNKNOWN, "GPU-a", State.ERROR)
