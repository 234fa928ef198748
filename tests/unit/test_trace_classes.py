"""The class of a GPU and of its holders: every branch of the decision order, and the limits."""

from datetime import timedelta
from typing import Any

import pytest

from steps.contracts.cluster_facts import Phase, PodFacts
from steps.contracts.document import Sample
from steps.contracts.node_facts import (
    Health,
    HoldVia,
    Layout,
    NodeFacts,
    ProcessActivity,
    ProcessKind,
    Scan,
    Visibility,
    VisibilityLevel,
)
from steps.contracts.traced import GpuClass, TracedGpu
from steps.trace.node import trace_node
from tests.unit.trace_world import (
    CONTAINER_B,
    GPU_A,
    GPU_B,
    MIB,
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

A_POD = (pod(),)
BOTH = (pod(), pod(POD_B, (CONTAINER_B,)))


def first(node: NodeFacts, pods: tuple[PodFacts, ...] | None = A_POD) -> TracedGpu:
    return trace_node(node, pods, now=NOON, lists=2).gpus[0]


def headline(node: NodeFacts, pods: tuple[PodFacts, ...] | None = A_POD) -> GpuClass:
    return first(node, pods).headline


def held(used_mib: int = 8100, *, activity: Any = None, figures: Any = None, look: Any = None, **of_process: Any) -> NodeFacts:
    """One listed process of pod A on the first GPU."""
    device = gpu(used_mib=used_mib, processes=(listed(),), activity=activity, figures=figures)
    return facts((device,), (process(**of_process),), **(look or {}))


def found(traced: TracedGpu) -> set[GpuClass]:
    return {finding.gpu_class for finding in traced.findings}


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


# the node's own services


def daemon(path: str = "/usr/bin/nvidia-persistenced", unit: str = "nvidia-persistenced", **other: Any) -> Any:
    name = path.rsplit("/", 1)[-1]
    return process(500, (f"0::/system.slice/{unit}.service",), executable=Sample.measured(path), name=name, **other)


def test_a_system_holder_is_noted_and_does_not_prevent_baseline() -> None:
    traced = first(facts((gpu(used_mib=4),), (daemon(),)))
    assert (traced.headline, found(traced)) == (GpuClass.BASELINE, {GpuClass.SYSTEM_HOLDER})


def test_a_system_holder_does_not_hide_a_ghost() -> None:
    assert headline(facts((gpu(used_mib=9000),), (daemon(),))) is GpuClass.GHOST_CONTEXT


def test_memory_that_a_system_holder_explains_is_its_own() -> None:
    xorg = process(500, ("0::/system.slice/gdm.service",), executable=Sample.measured("/usr/lib/xorg/Xorg"), name="Xorg")
    traced = first(facts((gpu(used_mib=700, processes=(listed(500, 690, ProcessKind.GRAPHICS),)),), (xorg,)))
    assert (traced.headline, traced.unexplained_bytes.known()) == (GpuClass.SYSTEM_HOLDER, 10 * MIB)


def test_a_system_holder_that_is_stuck_means_a_wedged_driver() -> None:
    assert headline(facts((gpu(used_mib=4),), (daemon(state="D"),))) is GpuClass.STUCK_D


@pytest.mark.parametrize(
    "impostor",
    [
        process(500, cgroup_of(), executable=Sample.measured("/usr/bin/nvidia-persistenced")),
        process(500, ("0::/user.slice/user-1000.slice/session-7.scope",), executable=Sample.measured("/usr/bin/nv-hostengine")),
        daemon("/home/me/nvidia-persistenced"),
        process(500, ("0::/system.slice/gpud.service",), name="gpud", executable=Sample[str].error("EACCES")),
    ],
    ids=["in a pod", "in a login session", "another folder", "by name alone"],
)
def test_neither_a_name_nor_a_path_alone_makes_a_system_holder(impostor: Any) -> None:
    assert GpuClass.SYSTEM_HOLDER not in {holder.gpu_class for holder in first(facts((gpu(),), (impostor,))).holders}


def test_an_exporter_in_the_operators_namespace_is_a_system_holder() -> None:
    exporter = process(500, executable=Sample.measured("/usr/bin/dcgm-exporter"), name="dcgm-exporter")
    traced = first(facts((gpu(),), (exporter,)), (pod(namespace="gpu-operator"),))
    assert {holder.gpu_class for holder in traced.holders} == {GpuClass.SYSTEM_HOLDER}


# holders, in the order of the rules


@pytest.mark.parametrize(("since_s", "expected"), [(46, "IN_GRACE"), (47, "IDLE_HOLDER"), (48, "IDLE_HOLDER")])
def test_a_terminating_pod_is_in_grace_until_its_deadline(since_s: float, expected: str) -> None:
    """Grace 30 s + 2 s + 10 s + 5 s."""
    traced = first(held(), (pod(terminating_s=since_s),))
    assert traced.headline.value == expected
    assert any("termination overdue" in finding.detail for finding in traced.findings) is (expected != "IN_GRACE")


def test_grace_comes_before_stuck_and_stuck_before_all_others() -> None:
    node = held(state="D")
    assert headline(node, (pod(terminating_s=10),)) is GpuClass.IN_GRACE
    assert headline(node, (pod(terminating_s=1000),)) is GpuClass.STUCK_D
    assert headline(node, ()) is GpuClass.STUCK_D


@pytest.mark.parametrize(
    ("in_state", "samples", "span_s", "stuck"),
    [(3, 3, 60.0, True), (2, 3, 60.0, False), (3, 4, 60.0, False), (3, 4, 90.0, True), (3, 3, 59.0, False), (1, 1, 0.0, False)],
)
def test_d_is_stuck_after_three_samples_over_sixty_seconds(in_state: int, samples: int, span_s: float, stuck: bool) -> None:
    traced = first(held(state="D", samples_in_state=in_state, look={"samples": samples, "span_s": span_s}))
    assert traced.headline is (GpuClass.STUCK_D if stuck else GpuClass.IDLE_HOLDER)
    assert any("stuck needs" in finding.detail for finding in traced.findings) is not stuck


def test_a_short_d_during_work_is_work() -> None:
    node = held(state="D", samples_in_state=1, activity=(moment(8100, 0.8),) * 4)
    assert headline(node) is GpuClass.ACTIVE


def test_a_thread_in_d_is_as_stuck_as_its_process() -> None:
    via = hold(via=HoldVia.THREAD, thread_id=4002, thread_state="D")
    assert headline(held(state="Z", threads=2, holds=(via,))) is GpuClass.STUCK_D


@pytest.mark.parametrize(
    "pods",
    [(), (pod(phase=Phase.SUCCEEDED),), (pod(phase=Phase.FAILED),), (pod(containers=(CONTAINER_B, "a" * 64)),)],
    ids=["unknown to the API", "succeeded", "failed", "container replaced"],
)
def test_a_live_holder_of_what_no_longer_exists(pods: tuple[PodFacts, ...]) -> None:
    traced = first(held(), pods)
    assert (traced.headline, traced.holders[0].pod_uid) == (GpuClass.POD_GONE_LIVE, POD_A)


@pytest.mark.parametrize(("lists", "looks"), [(1, 1), (1, 4), (2, 1)])
def test_missing_from_one_list_or_seen_in_one_look_is_not_yet_gone(lists: int, looks: int) -> None:
    once = held(samples_in_state=looks, look={"samples": looks, "span_s": 0.0})
    (traced,) = trace_node(once, (), now=NOON, lists=lists).gpus
    assert (traced.headline, "not yet gone" in traced.reason) == (GpuClass.UNKNOWN, True)


def test_a_pod_that_one_list_lacks_may_still_share_the_device_it_was_given() -> None:
    """Its allocation outlives it; whether it does is what the second list is for."""
    shared = facts(
        (gpu(used_mib=8100, processes=(listed(),), activity=(moment(8100, util=1.0),) * 4),),
        (process(),),
        allocations=(allocation(), allocation(pod=POD_B)),
    )
    classes = [trace_node(shared, A_POD, now=NOON, lists=lists).gpus[0].headline for lists in (1, 2)]
    assert classes == [GpuClass.ACTIVITY_UNKNOWN_SHARED, GpuClass.ACTIVE]


@pytest.mark.parametrize("util", [0.0, 0.9])
def test_without_the_apis_list_nothing_is_gone_and_nothing_is_a_holder_of_an_existing_pod(util: float) -> None:
    traced = first(held(activity=(moment(8100, util=util),) * 4), None)
    assert (traced.headline, "still exists is not known" in traced.reason) == (GpuClass.UNKNOWN, True)


def test_a_host_process_cannot_be_of_a_pod_that_is_gone() -> None:
    node = held(cgroup=("0::/user.slice/user-1000.slice/session-7.scope",), adopted=Sample.measured(True), parent_executable="bash")
    assert headline(node, ()) is GpuClass.ORPHAN_LIVE


def test_a_zombie_leader_with_a_live_thread_is_named_by_that_thread() -> None:
    via = hold(via=HoldVia.THREAD, thread_id=4002, thread_state="S")
    traced = first(held(state="Z", threads=2, holds=(via,)))
    assert (traced.headline, "4002" in traced.reason) == (GpuClass.ZOMBIE_THREADED, True)


def test_a_listed_zombie_leader_with_threads_that_could_not_be_read_still_holds() -> None:
    assert headline(held(state="Z", threads=2, holds=())) is GpuClass.ZOMBIE_THREADED


def test_a_plain_zombie_is_no_holder_even_if_nvml_lists_it() -> None:
    traced = first(held(state="Z", threads=1, holds=()))
    assert traced.holders == ()
    assert traced.headline is GpuClass.GHOST_CONTEXT


@pytest.mark.parametrize("via", [HoldVia.DESCRIPTOR, HoldVia.MAPPING])
def test_a_live_process_that_nvml_does_not_list_is_hidden(via: HoldVia) -> None:
    traced = first(facts((gpu(used_mib=8100),), (process(holds=(hold(via=via),)),)))
    assert (traced.headline, traced.holders[0].known_to_nvml) == (GpuClass.HIDDEN_HOLDER, False)
    assert via.value in traced.reason


def test_control_nodes_alone_hold_no_gpu() -> None:
    only_control = process(holds=(hold("nvidiactl", None), hold("nvidia-uvm", None)))
    assert first(facts((gpu(),), (only_control,))).holders == ()


def test_an_unknown_list_hides_nobody_and_does_not_tell_who_else_is_on_the_device() -> None:
    traced = first(facts((gpu(used_mib=8100, processes=None),), (process(),)))
    assert (traced.headline, "not usable" in traced.reason) == (GpuClass.UNKNOWN, True)


@pytest.mark.parametrize(("adopted", "expected"), [(True, "ORPHAN_LIVE"), (False, "IDLE_HOLDER"), (None, "IDLE_HOLDER")])
def test_an_orphan_needs_evidence_that_its_parent_died(adopted: bool | None, expected: str) -> None:
    sample = Sample[bool].absent("PPid 1 alone says nothing") if adopted is None else Sample.measured(adopted)
    assert headline(held(adopted=sample, parent_pid=1)).value == expected


# activity


@pytest.mark.parametrize(
    ("moments", "expected"),
    [
        ([moment(8100, 0.0)] * 2, "IDLE_HOLDER"),
        ([moment(8100, None, 0.0)] * 2, "IDLE_HOLDER"),
        ([moment(8100, 0.0), moment(8100, None)], "ACTIVITY_UNKNOWN"),
        ([moment(8100, None)] * 2, "ACTIVITY_UNKNOWN"),
        ([moment(8100, None), moment(8100, 0.3)], "ACTIVE"),
        ([moment(8100, 0.0, graphics=0.2)] * 2, "ACTIVE"),
        ([moment(8100, 1.0, 0.012)] * 2, "LOW_EFFICIENCY"),
        ([moment(8100, 1.0, 0.10)] * 2, "LOW_EFFICIENCY"),
        ([moment(8100, 1.0, 0.101)] * 2, "ACTIVE"),
        ([moment(8100, 1.0, None), moment(8100, 1.0, 0.012)], "ACTIVE"),
        ([moment(8100, 0.49, 0.012)] * 2, "ACTIVE"),
    ],
)
def test_activity_over_the_window(moments: list[Any], expected: str) -> None:
    assert headline(held(activity=moments)).value == expected


def shared(util: float | None, figures: Any = None) -> NodeFacts:
    device = gpu(used_mib=16200, processes=(listed(4001), listed(5001)), activity=(moment(16200, util),) * 4, figures=figures)
    return facts((device,), (process(4001), process(5001, cgroup_of(POD_B, CONTAINER_B))))


def test_a_shared_devices_figure_says_nothing_about_one_pod_but_its_zero_is_true_for_all() -> None:
    assert headline(shared(0.7), BOTH) is GpuClass.ACTIVITY_UNKNOWN_SHARED
    assert headline(shared(0.0), BOTH) is GpuClass.IDLE_HOLDER
    assert headline(shared(None), BOTH) is GpuClass.ACTIVITY_UNKNOWN


def test_figures_per_process_tell_the_sharers_apart() -> None:
    figures = (ProcessActivity(pid=4001, sm_ratio=0.6), ProcessActivity(pid=5001, sm_ratio=0.0))
    traced = first(shared(0.7, figures), BOTH)
    assert [holder.gpu_class for holder in traced.holders] == [GpuClass.ACTIVE, GpuClass.IDLE_HOLDER]
    assert traced.headline is GpuClass.ACTIVE


def test_a_process_without_a_figure_of_its_own_stays_unknown_beside_one_that_has() -> None:
    traced = first(shared(0.7, (ProcessActivity(pid=4001, sm_ratio=0.6),)), BOTH)
    assert [holder.gpu_class for holder in traced.holders] == [GpuClass.ACTIVE, GpuClass.ACTIVITY_UNKNOWN_SHARED]


def test_work_of_a_process_outweighs_a_device_that_shows_none() -> None:
    assert headline(held(figures=(ProcessActivity(pid=4001, sm_ratio=0.1),))) is GpuClass.ACTIVE


def test_a_time_sliced_neighbour_without_a_process_shares_the_device_if_its_pod_lives() -> None:
    both = (allocation(f"{GPU_A}::0"), allocation(f"{GPU_A}::1", POD_B))
    device = gpu(used_mib=8100, processes=(listed(),), activity=(moment(8100, 0.7),) * 4)
    node = facts((device,), (process(),), allocations=both)
    assert headline(node, BOTH) is GpuClass.ACTIVITY_UNKNOWN_SHARED
    assert headline(node, A_POD) is GpuClass.ACTIVE


@pytest.mark.parametrize("util", [0.0, 0.9])
@pytest.mark.parametrize("lines", [("0::/../..",), cgroup_of(container=CONTAINER_B)], ids=["relative", "spoofed"])
def test_what_cannot_be_attributed_is_neither_idle_nor_active(util: float, lines: tuple[str, ...]) -> None:
    assert headline(held(cgroup=lines, activity=(moment(8100, util),) * 4)) is GpuClass.UNKNOWN


def test_the_gravest_holder_gives_the_headline_and_the_others_are_attached() -> None:
    hidden = process(5001, holds=(hold(),))
    orphan = process(6001, adopted=Sample.measured(True))
    device = gpu(used_mib=16200, processes=(listed(4001), listed(6001)))
    traced = first(facts((device,), (process(4001), hidden, orphan)))
    assert traced.headline is GpuClass.HIDDEN_HOLDER
    assert found(traced) == {GpuClass.ORPHAN_LIVE, GpuClass.IDLE_HOLDER}


def test_partial_visibility_stays_partial_and_still_allows_a_holders_class() -> None:
    assert headline(held(look={"visibility": partial()})) is GpuClass.IDLE_HOLDER


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
