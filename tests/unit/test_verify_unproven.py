"""What verify may not conclude: gaps, blindness, reboots, and devices that nobody knows."""

from typing import Any

import pytest

from steps.contracts.document import Sample
from steps.contracts.errors import BadInput
from steps.contracts.node_facts import Health, Layout, NodeFacts, Scan
from steps.contracts.release import ReleaseVerdict
from tests.unit.release_world import FOREVER, free, ghost, held, judged_pod, one_look, only, receipt, until, watched
from tests.unit.trace_world import (
    GPU_A,
    GPU_B,
    NODE,
    POD_A,
    POD_B,
    allocation,
    blind,
    gpu,
    hold,
    listed,
    memory,
    partial,
    process,
)

# --- unknown


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (lambda at_s: free(at_s, visibility=blind()), "does not see"),
        (lambda at_s: free(at_s, boot_id=Sample.measured("boot-2")), "rebooted"),
    ],
)
def test_a_blind_reader_or_a_reboot_can_prove_nothing_and_waiting_does_not_help(node: Any, why: str) -> None:
    release, after_s = watched(node)
    assert (release.verdict, after_s) == (ReleaseVerdict.UNKNOWN, 0)
    assert why in release.sentence


def lost_gpu(at_s: float) -> NodeFacts:
    return one_look((gpu(used_mib=None, health=Health.LOST, health_reason="NVML error 15", samples=1),), at_s)


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (lambda at_s: free(at_s, used_mib=None), "used memory is not known"),
        (lambda at_s: free(at_s, boot_id=Sample[str].error("EACCES")), "boot id"),
        (lambda at_s: free(at_s, visibility=partial(3)), "3 processes cannot be read, 0 in the capture"),
        (lambda at_s: free(at_s, scan=Scan.QUICK), "quick scan"),
        (lambda at_s: ghost(at_s, visibility=partial(0)), "a holder may be hidden"),
        (lambda at_s: one_look((), at_s), "NVML does not list it"),
        (lost_gpu, "NVML error 15"),
    ],
)
def test_what_stays_unreadable_is_unknown_at_the_deadline_never_returned(node: Any, why: str) -> None:
    release, after_s = watched(node)
    assert (release.verdict, after_s) == (ReleaseVerdict.UNKNOWN, 47)
    assert why in release.sentence


def test_a_gap_that_ends_does_not_end_the_watch() -> None:
    release, after_s = watched(until((10, lambda at_s: free(at_s, used_mib=None)), (FOREVER, free)))
    assert (release.verdict, after_s) == (ReleaseVerdict.RETURNED, 11)


def test_partial_visibility_that_was_no_better_before_does_not_stand_against_free_memory() -> None:
    before = one_look((gpu(used_mib=8100, processes=(listed(),), samples=1),), -5, process(), visibility=partial(1))
    release, _ = watched(lambda at_s: free(at_s, visibility=partial(1)), capture=before)
    assert release.verdict is ReleaseVerdict.RETURNED


@pytest.mark.parametrize(
    "node",
    [
        lambda at_s: one_look((gpu(used_mib=8000, processes=None, samples=1),), at_s),
        lambda at_s: one_look((gpu(used_mib=8000, process_layout=Layout.MISMATCH, samples=1),), at_s),
        lambda at_s: one_look((gpu(used_mib=8000, processes=(listed(777, None),), samples=1),), at_s),
        lambda at_s: one_look(
            (gpu(used_mib=8100, processes=(listed(7001, 8000),), samples=1),), at_s, process(7001, ("0::/../..",))
        ),
    ],
    ids=["no list", "layout mismatch", "no figure for a dead PID", "a holder nobody can attribute"],
)
def test_unexplained_memory_with_a_gap_among_its_inputs_is_unknown_not_a_leak(node: Any) -> None:
    assert watched(node)[0].verdict is ReleaseVerdict.UNKNOWN


def test_v1_accounting_without_its_reserve_is_unknown_beyond_what_idle_devices_show() -> None:
    def v1(at_s: float) -> NodeFacts:
        return one_look((gpu(used_mib=5000, memory=memory(5000, accounting="v1"), samples=1),), at_s)

    assert watched(v1)[0].verdict is ReleaseVerdict.UNKNOWN


# --- which devices


def test_without_a_capture_the_verdict_rests_on_allocation_and_memory_and_says_so() -> None:
    release, _ = watched(free, no_capture=True)
    assert release.verdict is ReleaseVerdict.RETURNED
    assert "no capture of this node" in release.sentence
    assert only(release).used_before_bytes.known() is None


def test_the_gravest_device_gives_the_verdict_of_the_session() -> None:
    def two(at_s: float) -> NodeFacts:
        devices = (gpu(GPU_A, samples=1), gpu(GPU_B, used_mib=8000, index=1, samples=1))
        return one_look(devices, at_s)

    release, _ = watched(two, stop=receipt(judged_pod(devices=(GPU_A, GPU_B))))
    assert [device.verdict.value for device in release.devices] == ["returned", "leaked"]
    assert release.verdict is ReleaseVerdict.LEAKED
    assert "1 more devices are better off" in release.sentence


def test_devices_the_decision_did_not_know_are_found_by_allocation_and_by_holder() -> None:
    devices = (gpu(GPU_A, used_mib=8100, processes=(listed(),), samples=1), gpu(GPU_B, index=1, samples=1))
    before = one_look(devices, -5, process(holds=(hold(),)), allocations=(allocation(GPU_B),))

    def both_free(at_s: float) -> NodeFacts:
        return one_look((gpu(GPU_A, samples=1), gpu(GPU_B, index=1, samples=1)), at_s)

    release, _ = watched(both_free, capture=before, stop=receipt(judged_pod(devices=None)))
    assert {device.device for device in release.devices} == {GPU_A, GPU_B}


def test_a_replica_id_means_its_gpu() -> None:
    release, _ = watched(free, stop=receipt(judged_pod(devices=(f"{GPU_A}::3",))))
    assert [device.device for device in release.devices] == [GPU_A]


def test_a_session_whose_devices_nobody_knows_is_unknown() -> None:
    release, _ = watched(lambda at_s: free(at_s, allocations=()), no_capture=True, stop=receipt(judged_pod(devices=None)))
    assert (release.verdict, release.devices) == (ReleaseVerdict.UNKNOWN, ())
    assert "which devices" in release.sentence


def test_only_the_pods_of_this_node_are_verified_here() -> None:
    stop = receipt(judged_pod(), judged_pod(uid=POD_B, node="node-b", grace_s=900, devices=(GPU_B,)))
    release, _ = watched(held, stop=stop)
    assert (release.pod_uids, [device.device for device in release.devices]) == ((POD_A,), [GPU_A])


def test_a_receipt_that_did_not_act_or_names_no_pod_here_is_refused_before_the_node_is_looked_at() -> None:
    def never(at_s: float) -> NodeFacts:
        raise AssertionError("looked")

    with pytest.raises(BadInput, match="nothing was stopped"):
        watched(never, stop=receipt(acted=False))
    with pytest.raises(BadInput, match=f"no pod on node {NODE}"):
        watched(never, stop=receipt(judged_pod(node="node-b")))
