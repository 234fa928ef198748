"""Whether the memory of a stopped session came back: returned, taken over or leaked, and when that is certain."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from steps.contracts.node_facts import NodeFacts
from steps.contracts.release import ReleaseVerdict
from steps.contracts.traced import GpuClass
from tests.unit.release_world import FOREVER, free, ghost, held, judged_pod, one_look, only, receipt, taken, until, watched
from tests.unit.trace_world import (
    CONTAINER_B,
    GPU_A,
    MIB,
    NOON,
    POD_A,
    POD_B,
    allocation,
    cgroup_of,
    gpu,
    listed,
    process,
)

# --- the memory is returned


def test_memory_that_is_back_in_two_looks_is_returned_with_the_interval_in_which_it_came_back() -> None:
    release, after_s = watched(until((4, held), (FOREVER, free)))
    device = only(release)
    assert (release.verdict, after_s) == (ReleaseVerdict.RETURNED, 5)
    assert (device.last_seen_held, device.first_seen_free) == (NOON + timedelta(seconds=3), NOON + timedelta(seconds=4))
    assert (device.used_before_bytes.known(), device.used_after_bytes.known()) == (8100 * MIB, 4 * MIB)
    assert device.gpu_class is GpuClass.BASELINE
    assert release.pod_uids == (POD_A,)


def test_one_free_look_is_not_enough() -> None:
    flicker = until((1, free), (2, held), (3, free), (FOREVER, free))
    release, after_s = watched(flicker)
    assert (release.verdict, after_s) == (ReleaseVerdict.RETURNED, 3)
    assert only(release).last_seen_held == NOON + timedelta(seconds=1)


def test_a_device_that_is_free_in_the_first_look_was_last_held_in_the_capture() -> None:
    release, _ = watched(free)
    assert only(release).last_seen_held == NOON - timedelta(seconds=5)


def test_a_session_with_an_allocation_and_no_process_is_returned_and_was_never_seen_held() -> None:
    release, _ = watched(free, capture=free(-5))
    assert release.verdict is ReleaseVerdict.RETURNED
    assert only(release).last_seen_held is None
    assert "not seen held" in only(release).sentence


@pytest.mark.parametrize(("used_mib", "remark"), [(64, False), (65, True), (256, True)])
def test_drift_below_the_ghost_threshold_is_returned_with_a_remark(used_mib: int, remark: bool) -> None:
    release, _ = watched(lambda at_s: free(at_s, used_mib))
    assert release.verdict is ReleaseVerdict.RETURNED
    assert ("drift" in release.sentence) is remark


def test_a_plain_zombie_of_the_session_holds_nothing_even_if_nvml_still_lists_it() -> None:
    def zombie(at_s: float) -> NodeFacts:
        device = gpu(used_mib=4, processes=(listed(4001, 8000),), samples=1)
        return one_look((device,), at_s, process(4001, state="Z", holds=(), samples_in_state=1))

    assert watched(zombie)[0].verdict is ReleaseVerdict.RETURNED


def test_a_reused_pid_is_not_the_captured_process() -> None:
    def reused(at_s: float) -> NodeFacts:
        device = gpu(used_mib=6100, processes=(listed(4001, 6000),), samples=1)
        newcomer = process(4001, cgroup_of(POD_B, CONTAINER_B), start_time_ticks=999_999, samples_in_state=1)
        return one_look((device,), at_s, newcomer, allocations=(allocation(pod=POD_B),))

    release, _ = watched(reused)
    assert (release.verdict, only(release).taken_over_by) == (ReleaseVerdict.TAKEN_OVER, POD_B)


# --- taken over


def test_a_new_tenant_that_explains_the_memory_has_taken_the_device_over() -> None:
    release, after_s = watched(until((3, held), (FOREVER, taken)))
    assert (release.verdict, only(release).taken_over_by, after_s) == (ReleaseVerdict.TAKEN_OVER, POD_B, 4)


def test_an_allocation_to_another_pod_is_a_take_over_before_its_process_has_started() -> None:
    release, _ = watched(lambda at_s: free(at_s, allocations=(allocation(pod=POD_B),)))
    assert (release.verdict, only(release).taken_over_by) == (ReleaseVerdict.TAKEN_OVER, POD_B)


def test_a_tenant_that_shared_the_device_before_has_not_taken_it_over() -> None:
    both = (allocation(f"{GPU_A}::0"), allocation(f"{GPU_A}::1", POD_B))
    neighbour = process(5001, cgroup_of(POD_B, CONTAINER_B), samples_in_state=1)

    def shared(at_s: float) -> NodeFacts:
        alone = gpu(used_mib=6004, processes=(listed(5001, 6000),), samples=1)
        return one_look((alone,), at_s, neighbour, allocations=both)

    crowded = gpu(used_mib=14004, processes=(listed(4001, 8000), listed(5001, 6000)), samples=1)
    before = one_look((crowded,), -5, process(4001), neighbour, allocations=both)
    release, _ = watched(shared, capture=before)
    assert (release.verdict, only(release).taken_over_by) == (ReleaseVerdict.RETURNED, None)


def test_an_exporter_that_only_opens_the_device_is_no_new_tenant() -> None:
    def exporter(at_s: float) -> NodeFacts:
        watcher = process(6001, cgroup_of(POD_B, CONTAINER_B), samples_in_state=1)
        return one_look((gpu(samples=1),), at_s, watcher)

    assert watched(exporter)[0].verdict is ReleaseVerdict.RETURNED


def test_a_new_tenant_whose_memory_is_not_known_explains_nothing() -> None:
    release, _ = watched(lambda at_s: taken(at_s, mib=None))
    assert release.verdict is ReleaseVerdict.UNKNOWN


def test_memory_that_the_new_tenant_does_not_explain_is_a_leak_under_it() -> None:
    release, after_s = watched(lambda at_s: taken(at_s, mib=1000))
    assert (release.verdict, only(release).gpu_class, after_s) == (ReleaseVerdict.LEAKED, GpuClass.GHOST_CONTEXT, 60)


# --- leaked


def stuck(at_s: float) -> NodeFacts:
    return held(at_s, state="D")


def stuck_by_a_thread(at_s: float) -> NodeFacts:
    """Its leader sleeps; a kill waits for the thread."""
    return held(at_s, threads=2, threads_in_d=(4002,), samples_in_d=1)


@pytest.mark.parametrize(
    ("node", "leaked_after_s", "gpu_class"),
    [
        (held, 47, GpuClass.IDLE_HOLDER),
        (ghost, 60, GpuClass.GHOST_CONTEXT),
        (stuck, 60, GpuClass.STUCK_D),
        (stuck_by_a_thread, 60, GpuClass.STUCK_D),
    ],
)
def test_memory_that_stays_is_a_leak_once_deadline_and_class_rule_are_both_met(
    node: Any, leaked_after_s: int, gpu_class: GpuClass
) -> None:
    """Grace 30: deadline 30 + 17 s; a ghost and a stuck D need 3 samples over 60 s as well."""
    release, after_s = watched(node)
    assert (release.verdict, only(release).gpu_class, after_s) == (ReleaseVerdict.LEAKED, gpu_class, leaked_after_s)
    assert only(release).remedy is not None


@pytest.mark.parametrize(("freed_after_s", "verdict"), [(46, "returned"), (47, "returned"), (48, "leaked")])
def test_memory_that_comes_back_up_to_the_deadline_is_no_leak(freed_after_s: int, verdict: str) -> None:
    release, _ = watched(until((freed_after_s, held), (FOREVER, free)))
    assert release.verdict.value == verdict


def test_a_long_grace_moves_the_deadline() -> None:
    release, after_s = watched(ghost, stop=receipt(judged_pod(grace_s=300)))
    assert (release.verdict, after_s) == (ReleaseVerdict.LEAKED, 317)


def test_the_longest_grace_of_the_sessions_pods_on_this_node_counts() -> None:
    stop = receipt(judged_pod(grace_s=30), judged_pod(uid=POD_B, grace_s=200))
    assert watched(held, stop=stop)[1] == 217


def test_a_ghost_that_starts_late_is_watched_for_its_sixty_seconds() -> None:
    release, after_s = watched(until((40, held), (FOREVER, ghost)))
    assert (release.verdict, after_s) == (ReleaseVerdict.LEAKED, 100)


def test_a_verify_that_starts_late_still_needs_three_samples_over_sixty_seconds() -> None:
    long_ago = msgspec.structs.replace(receipt(), acted_at=NOON - timedelta(seconds=500))
    release, after_s = watched(ghost, stop=long_ago, interval_s=30)
    assert (release.verdict, after_s) == (ReleaseVerdict.LEAKED, 60)


def test_two_samples_sixty_seconds_apart_are_not_three() -> None:
    release, after_s = watched(ghost, interval_s=60)
    assert (release.verdict, after_s) == (ReleaseVerdict.LEAKED, 120)


def test_a_state_that_flips_is_pending_until_a_named_moment_and_the_watch_ends() -> None:
    def flipping(at_s: float) -> NodeFacts:
        return stuck(at_s) if int(at_s) % 50 < 25 else ghost(at_s)

    release, after_s = watched(flipping)
    assert release.verdict is ReleaseVerdict.PENDING
    assert only(release).pending_until is not None
    assert after_s <= 47 + 60 + 3


def test_a_process_of_the_session_that_started_after_the_capture_counts_as_its_own() -> None:
    def forked(at_s: float) -> NodeFacts:
        device = gpu(used_mib=8100, processes=(listed(4999, 8000),), samples=1)
        return one_look((device,), at_s, process(4999, samples_in_state=1))

    release, after_s = watched(forked)
    assert (release.verdict, after_s) == (ReleaseVerdict.LEAKED, 47)
    assert [holder.pid for holder in only(release).holders] == [4999]


def test_a_captured_process_is_recognised_after_its_cgroup_is_lost() -> None:
    def lost(at_s: float) -> NodeFacts:
        device = gpu(used_mib=8100, processes=(listed(4001, 8000),), samples=1)
        return one_look((device,), at_s, process(4001, ("8:pids:/",), samples_in_state=1))

    assert watched(lost)[0].verdict is ReleaseVerdict.LEAKED


def test_a_captured_holder_that_nobody_can_attribute_must_go_as_well() -> None:
    def stranger(at_s: float) -> NodeFacts:
        device = gpu(used_mib=8100, processes=(listed(4001, 8000),), samples=1)
        return one_look((device,), at_s, process(4001, ("0::/../..",), samples_in_state=1))

    assert watched(stranger, capture=stranger(-5))[0].verdict is ReleaseVerdict.LEAKED


def test_a_live_holder_that_nvml_does_not_list_is_a_leak_by_that_class() -> None:
    def hidden(at_s: float) -> NodeFacts:
        return one_look((gpu(used_mib=8000, samples=1),), at_s, process(4001, samples_in_state=1))

    device = only(watched(hidden)[0])
    assert (device.verdict, device.gpu_class) == (ReleaseVerdict.LEAKED, GpuClass.HIDDEN_HOLDER)


def test_a_live_holder_counts_even_where_memory_cannot_be_read() -> None:
    def unreadable(at_s: float) -> NodeFacts:
        device = gpu(used_mib=None, processes=None, samples=1)
        return one_look((device,), at_s, process(4001, samples_in_state=1))

    assert watched(unreadable)[0].verdict is ReleaseVerdict.LEAKED
