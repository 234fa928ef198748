"""What the facts say about a session: work, presence, or a gap that is named."""

from datetime import timedelta

import msgspec
import pytest

from steps.contracts.decision import JudgedPod
from steps.contracts.document import Sample, State
from steps.contracts.traced import GpuClass, TracedGpu, TracedHolder, TracedNode
from steps.decide.signals import Signals, read_signals
from tests.unit.judging import NOON, ago, connections, given, gpu, holder, node


def judged(name: str = "a-1", node_name: str | None = "node-a", devices: tuple[str, ...] = ("GPU-node-a-0",)) -> JudgedPod:
    return JudgedPod(uid=f"pod-{name}", name=name, node=node_name, grace_s=30, devices=Sample.measured(devices))


def read(*nodes: TracedNode, pods: tuple[JudgedPod, ...] = (judged(),)) -> Signals:
    return read_signals(pods, {one.node: one for one in nodes}, NOON)


def working(one: TracedGpu) -> bool | None:
    return read(node(one)).working.known()


def test_measured_zeros_are_no_work() -> None:
    assert working(gpu()) is False


def test_sm_activity_is_work_even_while_utilisation_reads_zero() -> None:
    """A lying counter beside a busy one: the sign of work keeps (field case D2)."""
    assert working(gpu(utilisation=0.0, sm=0.02)) is True


def test_utilisation_with_a_live_process_is_work_although_few_sms_are_busy() -> None:
    assert working(gpu(headline=GpuClass.LOW_EFFICIENCY, utilisation=1.0, sm=0.0)) is True


@pytest.mark.parametrize(
    "nobody",
    [
        (),
        (holder(gpu_class=GpuClass.ZOMBIE_BENIGN),),
        (holder(None, gpu_class=GpuClass.SYSTEM_HOLDER),),
        (holder(gpu_class=GpuClass.STALE_NVML_PID),),
    ],
    ids=["nobody", "a zombie", "a system process", "a dead pid"],
)
def test_utilisation_without_a_process_that_could_compute_is_not_known(nobody: tuple[TracedHolder, ...]) -> None:
    signals = read(node(gpu(headline=GpuClass.BASELINE, utilisation=1.0, holders=nobody)))
    assert signals.working.known() is None
    assert "without a process that holds it" in str(signals.working.reason)


def test_a_phantom_is_no_work_and_leaves_a_remark() -> None:
    signals = read(node(gpu(headline=GpuClass.PHANTOM_UTIL, utilisation=1.0, holders=())))
    assert signals.working.known() is False
    assert signals.remarks == (
        "GPU 0 of node-a reads 100 % utilisation, but its memory is empty and no process holds it: a stuck counter, not work",
    )


@pytest.mark.parametrize("state", [State.ABSENT, State.ERROR, State.STALE, State.FILLED], ids=lambda state: str(state.value))
@pytest.mark.parametrize("counter", ["utilisation", "sm"])
def test_a_counter_that_was_not_measured_is_unknown_and_its_reason_is_said(counter: str, state: State) -> None:
    """Also a zero that somebody filled in (field case D3)."""
    value = 0.0 if state in (State.STALE, State.FILLED) else None
    sample = Sample(value=value, state=state, reason="the exporter fills gaps")
    signals = read(node(gpu(utilisation=sample) if counter == "utilisation" else gpu(sm=sample)))
    assert signals.working.known() is None
    assert "the exporter fills gaps" in str(signals.working.reason)


def test_a_counter_that_the_hardware_lacks_may_be_missing() -> None:
    no_sm = Sample[float].not_applicable("no GPM before Hopper")
    assert working(gpu(sm=no_sm)) is False
    assert working(gpu(utilisation=0.4, sm=no_sm)) is True


def test_a_mig_slice_without_utilisation_is_judged_by_engine_activity_and_never_by_a_zero() -> None:
    no_utilisation = Sample[float].not_applicable("not supported on MIG")
    assert working(gpu(utilisation=no_utilisation, sm=0.0)) is False
    assert working(gpu(utilisation=no_utilisation, sm=0.3)) is True
    assert working(gpu(utilisation=no_utilisation, sm=Sample[float].not_applicable("none"))) is None


@pytest.mark.parametrize(
    "headline",
    [
        GpuClass.GPU_LOST,
        GpuClass.BLIND,
        GpuClass.ABI_MISMATCH,
        GpuClass.UNKNOWN,
        GpuClass.ACTIVITY_UNKNOWN,
        GpuClass.ACTIVITY_UNKNOWN_SHARED,
    ],
    ids=lambda headline: str(headline.value),
)
def test_silence_under_a_headline_that_proves_nothing_is_unknown(headline: GpuClass) -> None:
    signals = read(node(gpu(headline=headline)))
    assert signals.working.known() is None
    assert f"{headline.value}: made {headline.value} by a test" in str(signals.working.reason)


@pytest.mark.parametrize("headline", [GpuClass.GHOST_CONTEXT, GpuClass.HIDDEN_HOLDER, GpuClass.ORPHAN_LIVE, GpuClass.BASELINE])
def test_memory_that_is_held_is_occupation_and_no_work(headline: GpuClass) -> None:
    assert working(gpu(headline=headline)) is False


def test_a_shared_gpu_at_work_is_unknown_without_a_figure_for_each_pod() -> None:
    shared = gpu(to=("a-1", "b-1"), sm=0.7, holders=[holder("b-1", GpuClass.ACTIVE)])
    signals = read(node(shared))
    assert signals.working.known() is None
    assert "shared by several pods" in str(signals.working.reason)


def test_a_shared_gpu_whose_own_process_is_at_work_is_work() -> None:
    assert working(gpu(to=("a-1", "b-1"), sm=0.7, holders=[holder("a-1", GpuClass.ACTIVE)])) is True


def test_a_shared_gpu_at_zero_is_idle_for_all_of_its_pods() -> None:
    assert working(gpu(to=("a-1", "b-1"))) is False


def test_a_replica_of_a_time_sliced_gpu_is_found_by_its_allocation() -> None:
    sliced = gpu(allocated=Sample.measured((given("GPU-node-a-0::3", "a-1"),)))
    assert read(node(sliced), pods=(judged(devices=("GPU-node-a-0::3",)),)).working.known() is False


def test_a_device_that_the_node_does_not_list_is_unknown() -> None:
    signals = read(node(gpu()), pods=(judged(devices=("GPU-node-a-0", "GPU-gone")),))
    assert signals.working.reason == "GPU-gone is not among the GPUs that node-a lists"


def test_unknown_devices_are_never_no_devices() -> None:
    lost = msgspec.structs.replace(judged(), devices=Sample.absent("the kubelet's checkpoint is missing"))
    signals = read(node(gpu()), pods=(lost,))
    assert signals.working.known() is None
    assert "the kubelet's checkpoint is missing" in str(signals.working.reason)


def test_a_node_that_was_not_looked_at_is_unknown_for_work_and_presence() -> None:
    signals = read()
    assert (signals.working.known(), signals.present.known()) == (None, None)


def test_several_gaps_are_counted_and_the_first_is_named() -> None:
    eight = judged(devices=tuple(f"GPU-node-a-{index}" for index in range(8)))
    signals = read(node(name="node-a", problem="NVML: driver not loaded"), pods=(eight,))
    assert "driver not loaded" in str(signals.working.reason)
    assert str(signals.working.reason).endswith("and 7 more gaps")


def test_a_pod_without_a_listed_network_namespace_may_be_connected() -> None:
    signals = read(node(gpu(), connected=connections({})))
    assert signals.present.known() is None


def test_unreadable_sockets_of_the_node_are_unknown() -> None:
    signals = read(node(gpu(), connected=Sample.error("EACCES on /proc/4001/net/tcp")))
    assert "EACCES" in str(signals.present.reason)


def test_one_known_connection_speaks_before_an_unknown_count_beside_it() -> None:
    two = (judged("a-1"), judged("a-2", devices=()))
    assert read(node(gpu(), connected={"a-1": Sample.error("torn"), "a-2": 1}), pods=two).present.known() is True
    assert read(node(gpu(), connected={"a-1": Sample.error("torn"), "a-2": 0}), pods=two).present.known() is None


@pytest.mark.parametrize(("age_s", "known"), [(599, False), (600, None), (601, None), (-60, False), (-61, None)], ids=str)
def test_a_reading_ten_minutes_old_or_from_the_future_says_nothing_about_now(age_s: int, known: bool | None) -> None:
    zero = Sample.measured(0.0, taken_at=NOON - timedelta(seconds=age_s))
    assert working(gpu(utilisation=zero, sm=zero)) is known


def test_an_old_sign_of_work_is_unknown_too_and_not_idleness() -> None:
    old = Sample.measured(0.9, taken_at=ago(minutes=20))
    assert working(gpu(utilisation=old, sm=old)) is None
