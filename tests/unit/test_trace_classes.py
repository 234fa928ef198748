"""The class of a GPU: what makes it unreadable, memory without a holder, stuck counters, MIG, and the limits."""

from datetime import timedelta
from typing import Any

import pytest

from steps.contracts.document import Sample
from steps.contracts.node_facts import (
    Health,
    Layout,
    NodeFacts,
    Scan,
    Visibility,
    VisibilityLevel,
)
from steps.contracts.traced import GpuClass
from steps.trace.node import trace_node
from tests.unit.trace_classing import A_POD, BOTH, first, found, headline, held
from tests.unit.trace_world import (
    CONTAINER_B,
    GPU_A,
    GPU_B,
    NOON,
    POD_A,
    POD_B,
    allocation,
    blind,
    cgroup_of,
    facts,
    gpu,
    hold,
    listed,
    memory,
    moment,
    partial,
    pod,
    process,
)

# the first three steps


@pytest.mark.parametrize("pid", [0, -1, 4294967295, 4 * 1024 * 1024 + 1])
def test_a_number_that_is_no_pid_makes_the_list_unusable(pid: int) -> None:
    assert headline(facts((gpu(processes=(listed(pid),)),))) is GpuClass.ABI_MISMATCH


def test_the_largest_possible_pid_is_a_pid() -> None:
    assert headline(facts((gpu(processes=(listed(4 * 1024 * 1024),)),))) is not GpuClass.ABI_MISMATCH


def test_more_memory_than_the_device_has_is_a_layout_mismatch() -> None:
    assert headline(facts((gpu(processes=(listed(4001, 81921),)),))) is GpuClass.ABI_MISMATCH


def test_a_mismatch_the_reader_saw_outranks_a_lost_gpu_and_blindness() -> None:
    device = gpu(process_layout=Layout.MISMATCH, health=Health.LOST)
    assert headline(facts((device,), visibility=blind())) is GpuClass.ABI_MISMATCH


def test_no_process_is_called_hidden_when_the_list_is_unusable() -> None:
    device = gpu(used_mib=8100, process_layout=Layout.MISMATCH)
    assert GpuClass.HIDDEN_HOLDER not in {holder.gpu_class for holder in first(facts((device,), (process(),))).holders}


@pytest.mark.parametrize("health", [Health.LOST, Health.RESET_REQUIRED])
def test_a_lost_gpu_is_lost_and_its_stuck_holders_are_attached(health: Health) -> None:
    device = gpu(used_mib=None, health=health, processes=None)
    traced = first(facts((device,), (process(state="D"),), visibility=blind()))
    assert (traced.headline, traced.remedy is not None) == (GpuClass.GPU_LOST, True)
    seeing = first(facts((device,), (process(state="D"),)))
    assert GpuClass.STUCK_D in found(seeing)


def test_one_lost_gpu_does_not_touch_the_verdict_on_the_others() -> None:
    devices = (gpu(GPU_A, health=Health.LOST), gpu(GPU_B, index=1))
    traced = trace_node(facts(devices), A_POD, now=NOON).gpus
    assert [one.headline for one in traced] == [GpuClass.GPU_LOST, GpuClass.BASELINE]


def test_a_gpu_that_left_the_bus_is_named_by_its_allocation_and_its_holders_are_told() -> None:
    orphaned = process(holds=(hold("nvidia1", None),), state="D")
    node = facts((gpu(),), (orphaned,), pci_gpu_count=Sample.measured(2), allocations=(allocation(GPU_B),))
    lost = trace_node(node, A_POD, now=NOON).gpus[1]
    assert (lost.uuid, lost.headline, lost.used_bytes.known()) == (GPU_B, GpuClass.GPU_LOST, None)
    assert {finding.gpu_class for finding in lost.findings} == {GpuClass.HIDDEN_HOLDER, GpuClass.STUCK_D}
    assert all("4001" in finding.detail for finding in lost.findings)


@pytest.mark.parametrize("count", [Sample.measured(1), Sample[int].absent("no PCI here")])
def test_an_unknown_or_equal_pci_count_loses_no_gpu(count: Sample[int]) -> None:
    assert len(trace_node(facts(pci_gpu_count=count), A_POD, now=NOON).gpus) == 1


def test_a_blind_reader_gives_no_verdict_about_holders() -> None:
    traced = first(held(look={"visibility": blind()}))
    assert (traced.headline, {holder.gpu_class for holder in traced.holders}) == (GpuClass.BLIND, {GpuClass.UNKNOWN})


def test_a_blind_reader_does_not_call_a_listed_pid_stale() -> None:
    assert found(first(facts((gpu(processes=(listed(),)),), visibility=blind()))) == set()


# no holder


@pytest.mark.parametrize(
    ("used_mib", "expected"),
    [(0, "BASELINE"), (64, "BASELINE"), (65, "BASELINE"), (256, "BASELINE"), (257, "GHOST_CONTEXT"), (None, "UNKNOWN")],
)
def test_memory_without_a_holder_by_amount(used_mib: int | None, expected: str) -> None:
    assert headline(facts((gpu(used_mib=used_mib),))).value == expected


@pytest.mark.parametrize(("used_mib", "drift"), [(64, False), (65, True), (256, True)])
def test_drift_is_told_with_its_bytes(used_mib: int, drift: bool) -> None:
    details = [finding.detail for finding in first(facts((gpu(used_mib=used_mib),))).findings]
    assert details == (
        [f"drift: {used_mib} MiB beyond baseline and processes, below the ghost threshold of 256 MiB"] if drift else []
    )


@pytest.mark.parametrize(("used_mib", "drift"), [(904 + 64, False), (904 + 65, True)])
def test_the_allowance_with_v1_lies_on_top_of_the_drivers_reserve(used_mib: int, drift: bool) -> None:
    device = gpu(used_mib=used_mib, memory=memory(used_mib, 40960, 904, "v1"))
    assert bool(first(facts((device,))).findings) is drift


@pytest.mark.parametrize(
    ("used_mib", "reserved_mib", "total_mib", "expected"),
    [
        (904 + 64, 904, 40960, "BASELINE"),
        (904 + 819, 904, 40960, "BASELINE"),  # the threshold with v1: 2 % of the total
        (904 + 820, 904, 40960, "GHOST_CONTEXT"),
        (300 + 307, 300, 15360, "BASELINE"),
        (300 + 308, 300, 15360, "GHOST_CONTEXT"),
        (912, None, 40960, "BASELINE"),  # published idle figures, reserve untold
        (517, None, 23028, "BASELINE"),
        (308, None, 24576, "BASELINE"),
        (1089, None, 40960, "UNKNOWN"),
        (10151, None, 81920, "UNKNOWN"),
        (5000, 904, None, "UNKNOWN"),
    ],
)
def test_v1_accounting_counts_the_drivers_reserve(
    used_mib: int, reserved_mib: int | None, total_mib: int | None, expected: str
) -> None:
    device = gpu(used_mib=used_mib, memory=memory(used_mib, total_mib, reserved_mib, "v1"))
    assert headline(facts((device,))).value == expected


@pytest.mark.parametrize(
    ("samples", "span_s", "expected"),
    [(3, 60.0, "GHOST_CONTEXT"), (3, 59.0, "UNKNOWN"), (2, 60.0, "UNKNOWN"), (1, 0.0, "UNKNOWN")],
)
def test_a_ghost_needs_three_samples_over_sixty_seconds(samples: int, span_s: float, expected: str) -> None:
    traced = first(facts((gpu(used_mib=9000, samples=samples),), samples=samples, span_s=span_s))
    assert traced.headline.value == expected
    assert ("pending" in traced.reason) is (expected == "UNKNOWN")


def test_memory_that_rose_within_the_window_is_seen_too_briefly() -> None:
    device = gpu(used_mib=9000, activity=(moment(4), moment(4), moment(9000), moment(9000)))
    assert headline(facts((device,))) is GpuClass.UNKNOWN


@pytest.mark.parametrize(
    "node",
    [
        facts((gpu(used_mib=9000, processes=None),)),
        facts((gpu(used_mib=9000, processes=(listed(777777, None),)),)),
        facts((gpu(used_mib=9000, activity=(moment(9000), moment(None), moment(9000), moment(9000))),)),
        facts((gpu(used_mib=9000),), visibility=partial()),
        facts((gpu(used_mib=9000),), scan=Scan.QUICK),
        facts((gpu(used_mib=200),), visibility=partial()),
    ],
    ids=["no list", "no figure of a dead PID", "a gap in memory", "EACCES", "quick scan", "drift under EACCES"],
)
def test_a_would_be_ghost_with_a_gap_among_its_inputs_is_unknown(node: NodeFacts) -> None:
    assert headline(node) is GpuClass.UNKNOWN


def test_partial_visibility_does_not_stand_against_an_idle_device() -> None:
    assert headline(facts((gpu(used_mib=10),), visibility=partial())) is GpuClass.BASELINE


def test_a_listed_pid_that_proc_lacks_is_stale_after_two_samples() -> None:
    def node(samples: int) -> NodeFacts:
        return facts((gpu(processes=(listed(777),), samples=samples),), samples=samples, span_s=30.0 * (samples - 1))

    assert found(first(node(2))) == {GpuClass.STALE_NVML_PID}
    assert found(first(node(1))) == {GpuClass.UNKNOWN}


@pytest.mark.parametrize(
    ("util", "samples", "expected"), [(0.95, 3, "PHANTOM_UTIL"), (0.94, 3, "BASELINE"), (1.0, 2, "BASELINE"), (None, 3, "BASELINE")]
)
def test_a_stuck_counter_needs_three_samples_at_ninety_five_percent(util: float | None, samples: int, expected: str) -> None:
    device = gpu(activity=(moment(0, util),) * samples)
    assert headline(facts((device,), samples=samples, span_s=60.0)).value == expected


def test_a_stuck_counter_seen_too_briefly_is_told_as_pending() -> None:
    traced = first(facts((gpu(activity=(moment(0, 1.0),) * 2),), samples=2, span_s=30.0))
    assert any("pending" in finding.detail for finding in traced.findings)


def test_utilisation_that_pauses_is_no_stuck_counter() -> None:
    device = gpu(activity=(moment(0, 1.0), moment(0, 0.0), moment(0, 1.0), moment(0, 1.0)))
    assert headline(facts((device,))) is GpuClass.BASELINE


def zombie(pid: int = 9000, pod_uid: str = POD_A, container: str = "a" * 64) -> Any:
    return process(pid, cgroup_of(pod_uid, container), state="Z", holds=())


def test_zombies_of_the_gpus_pods_are_benign_and_others_do_not_matter() -> None:
    mine = facts((gpu(),), (zombie(),), allocations=(allocation(),))
    foreign = facts((gpu(),), (zombie(pod_uid=POD_B, container=CONTAINER_B),), allocations=(allocation(),))
    assert (headline(mine, BOTH), headline(foreign, BOTH)) == (GpuClass.ZOMBIE_BENIGN, GpuClass.BASELINE)


def test_zombies_beside_a_holder_are_a_finding() -> None:
    node = facts((gpu(used_mib=8100, processes=(listed(),)),), (process(), zombie()), allocations=(allocation(),))
    assert GpuClass.ZOMBIE_BENIGN in found(first(node))


# MIG


def mig(used_mib: int = 7000, **of_instance: Any) -> tuple[Any, Any]:
    parent = gpu(GPU_A, used_mib=used_mib, mig_mode=Sample.measured(True), activity=(moment(used_mib, None),) * 4)
    instance = gpu("MIG-1", used_mib=used_mib, index=1, parent_uuid=GPU_A, activity=(moment(used_mib, None),) * 4, **of_instance)
    return parent, instance


def test_a_mig_parent_knows_what_its_instances_list() -> None:
    traced = trace_node(facts(mig(processes=(listed(4001, 6900),)), (process(),)), A_POD, now=NOON).gpus
    assert [one.headline for one in traced] == [GpuClass.ACTIVITY_UNKNOWN, GpuClass.ACTIVITY_UNKNOWN]


def test_an_unlisted_holder_of_the_parent_may_hold_any_instance() -> None:
    traced = trace_node(facts(mig(), (process(),)), A_POD, now=NOON).gpus
    assert traced[1].headline is GpuClass.HIDDEN_HOLDER


def test_every_class_with_a_remedy_names_one_that_people_carry_out() -> None:
    ghost = first(facts((gpu(used_mib=9000),)))
    assert ghost.remedy is not None
    assert "drain" in ghost.remedy
    assert first(facts()).remedy is None


def test_an_allocation_without_a_process_is_told_as_idle() -> None:
    traced = first(facts(allocations=(allocation(),)))
    assert (traced.headline, found(traced)) == (GpuClass.BASELINE, {GpuClass.IDLE_HOLDER})
    not_seen = first(facts(allocations=(allocation(),), visibility=partial()))
    assert found(not_seen) == set()
    assert found(first(facts(allocations=(allocation(),)), ())) == set()


def test_grace_is_measured_from_the_request_against_the_given_now() -> None:
    terminating = (pod(terminating_s=0),)
    later = trace_node(held(), terminating, now=NOON + timedelta(seconds=47)).gpus[0]
    assert later.headline is GpuClass.IDLE_HOLDER


def test_visibility_levels_are_not_invented_here() -> None:
    node = facts((gpu(used_mib=9000),), visibility=Visibility(level=VisibilityLevel.PARTIAL, reasons=("/proc/1/fd",)))
    assert "/proc/1/fd" in first(node).reason
