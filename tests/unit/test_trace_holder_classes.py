"""The class of a holder: the node's own services, and every rule in its order."""

from typing import Any

import pytest

from steps.contracts.cluster_facts import Phase, PodFacts
from steps.contracts.document import Sample
from steps.contracts.node_facts import (
    HoldVia,
    ProcessKind,
)
from steps.contracts.traced import GpuClass
from steps.trace.node import trace_node
from tests.unit.trace_classing import A_POD, first, found, headline, held
from tests.unit.trace_world import (
    CONTAINER_B,
    MIB,
    NOON,
    POD_A,
    POD_B,
    allocation,
    cgroup_of,
    facts,
    gpu,
    hold,
    listed,
    moment,
    pod,
    process,
)

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
