"""A deleted pod's devices: returned, taken over, leaked, still in use, or not known; looked at without an API."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from steps.contracts.declaration import Inputs
from steps.contracts.document import Sample
from steps.contracts.errors import BadInput, Exit
from steps.contracts.node_facts import NodeFacts
from steps.contracts.parcel import unpack
from steps.contracts.release_check import Answer, ReleaseCheck
from steps.contracts.traced import GpuClass
from steps.release_check.declaration import STEP
from steps.release_check.plan import container_ids
from steps.release_check.step import run
from tests.unit.release_world import Node, free, ghost, held, one_look, taken, until
from tests.unit.test_verify_step import Outside
from tests.unit.trace_world import (
    CONTAINER_A,
    CONTAINER_B,
    GPU_A,
    GPU_B,
    NODE,
    NOON,
    POD_A,
    POD_B,
    allocation,
    blind,
    cgroup_of,
    gpu,
    listed,
    process,
)

FOREVER = float("inf")
DELETED_AT = "2026-11-30T12:00:00Z"
GRACE_S = 3


def checked(folder: Path, seen: Node, /, **given: str) -> tuple[ReleaseCheck, Exit, float]:
    """The check of pod A's deletion, its exit code, and how many seconds it took."""
    values = {"uid": POD_A, "namespace": "team", "name": "notebook-0", "node": NODE, "grace-s": str(GRACE_S), **given}
    outside, target = Outside(seen), folder / "check"
    done = run(Inputs(STEP, {"deleted-at": DELETED_AT, **values}, {"check": str(target)}), outside)
    return unpack(target.read_bytes(), ReleaseCheck, str(target)), done, (outside.clock.now() - NOON).total_seconds()


def forgotten(at_s: float, **other: Any) -> NodeFacts:
    """Free, and the kubelet no longer knows that pod A had the device."""
    return free(at_s, allocations=(), **other)


def static_pod(at_s: float) -> NodeFacts:
    """Pod A's container under another uid, as a static pod's cgroup has its manifest's hash."""
    device = gpu(used_mib=8100, processes=(listed(4001, 8000),), samples=1)
    return one_look((device,), at_s, process(4001, cgroup_of("3" * 8 + POD_A[8:], CONTAINER_A), samples_in_state=1))


def two_gpus(at_s: float, *, second_used_mib: int) -> NodeFacts:
    """Two GPUs, neither given to pod A; pod B holds the first one."""
    first = gpu(used_mib=6100, processes=(listed(5001, 6000),), samples=1)
    second = gpu(GPU_B, used_mib=second_used_mib, index=1, samples=1)
    tenant = process(5001, cgroup_of(POD_B, CONTAINER_B), samples_in_state=1)
    return one_look((first, second), at_s, tenant, allocations=(allocation(pod=POD_B),))


@pytest.mark.parametrize(
    ("node", "answer", "done", "took_s"),
    [
        (free, Answer.RETURNED, Exit.DONE, 1),
        (until((3, held), (FOREVER, free)), Answer.RETURNED, Exit.DONE, 4),
        (taken, Answer.TAKEN_OVER, Exit.DONE, 1),
        (held, Answer.LEAKED, Exit.MEMORY_NOT_BACK, GRACE_S + 17),
        (ghost, Answer.LEAKED, Exit.MEMORY_NOT_BACK, 60),
        (lambda at_s: free(at_s, visibility=blind()), Answer.UNKNOWN, Exit.COULD_NOT, 0),
    ],
    ids=["clean", "outlived for a while", "taken over", "held", "memory without a process", "blind"],
)
def test_a_deletion_gets_the_answer_that_the_node_proves(
    tmp_path: Path, node: Node, answer: Answer, done: Exit, took_s: float
) -> None:
    check, exited, seconds = checked(tmp_path, node)
    assert (check.answer, exited, seconds) == (answer, done, took_s), check.sentence
    assert (check.pod.uid, check.pod.node, check.stamp.made_by) == (POD_A, NODE, "release-check")


@pytest.mark.parametrize("gone_after_s", [GRACE_S + 16, GRACE_S + 17])
def test_processes_that_outlive_a_force_delete_are_watched_for_the_whole_grace(tmp_path: Path, gone_after_s: float) -> None:
    """The object is gone at once, its processes have their grace yet: what ends by the deadline is no leak."""
    check, _, _ = checked(tmp_path, until((gone_after_s, held), (FOREVER, free)))
    assert check.answer is Answer.RETURNED, check.sentence


def test_a_label_taken_off_a_living_pod_is_no_leak_and_nothing_is_watched(tmp_path: Path) -> None:
    check, done, seconds = checked(tmp_path, held, **{"deleted-at": ""})
    assert (check.answer, done, seconds, check.release) == (Answer.STILL_LIVES, Exit.DONE, 0, None)
    assert "PID 4001" in check.sentence


def test_a_living_pod_that_only_later_holds_its_device_is_no_leak_either(tmp_path: Path) -> None:
    check, done, _ = checked(tmp_path, until((1, ghost), (FOREVER, held)), **{"deleted-at": ""})
    assert (check.answer, done) == (Answer.STILL_LIVES, Exit.DONE), check.sentence


def test_memory_without_a_holder_is_no_accusation_where_nobody_says_the_pod_is_gone(tmp_path: Path) -> None:
    check, _, _ = checked(tmp_path, ghost, **{"deleted-at": ""})
    assert check.answer is Answer.UNKNOWN


def test_a_pod_born_again_under_the_same_name_is_a_new_tenant(tmp_path: Path) -> None:
    """Its uid is another one, and the kubelet gave the device on: the old pod's own entry is gone."""
    check, _, _ = checked(tmp_path, taken)
    assert check.answer is Answer.TAKEN_OVER
    assert check.release is not None
    assert [device.taken_over_by for device in check.release.devices] == [POD_B]
    assert "no longer says" in check.sentence


def test_a_pod_whose_device_is_not_known_is_cleared_by_every_gpu_of_the_node(tmp_path: Path) -> None:
    check, _, _ = checked(tmp_path, lambda at_s: two_gpus(at_s, second_used_mib=4))
    assert check.answer is Answer.RETURNED, check.sentence
    assert check.release is not None
    assert {device.device for device in check.release.devices} == {GPU_A, GPU_B}


def test_memory_without_a_holder_is_nobodys_for_certain_where_the_device_is_not_known(tmp_path: Path) -> None:
    check, done, _ = checked(tmp_path, lambda at_s: two_gpus(at_s, second_used_mib=8000))
    assert (check.answer, done) == (Answer.UNKNOWN, Exit.COULD_NOT), check.sentence


def test_a_holder_is_found_by_its_container_id_where_the_cgroup_names_another_pod(tmp_path: Path) -> None:
    ids = f'["containerd://{CONTAINER_A}"]'
    known, _, _ = checked(tmp_path, static_pod, containers=ids)
    unknown, _, _ = checked(tmp_path, static_pod)
    assert (known.answer, unknown.answer) == (Answer.LEAKED, Answer.TAKEN_OVER)


def test_for_an_event_of_few_fields_the_node_is_looked_at_all_the_same(tmp_path: Path) -> None:
    """Neither containers, nor a moment, nor a name: a free device is still proven, a held one is not called a leak."""
    bare = {"deleted-at": "", "name": "unknown", "namespace": "unknown", "containers": "[]"}
    clear, _, _ = checked(tmp_path, free, **bare)
    busy, _, _ = checked(tmp_path, held, **bare)
    assert (clear.answer, busy.answer) == (Answer.RETURNED, Answer.STILL_LIVES)


def no_ones(at_s: float) -> NodeFacts:
    """Next to no memory is used, and a process of which nobody can say whose it is has the device open."""
    device = gpu(used_mib=4, processes=(listed(6001, 0),), samples=1)
    return one_look((device,), at_s, process(6001, ("0::/",), samples_in_state=1), allocations=(allocation(),))


def test_a_device_that_somebody_unknown_holds_is_not_returned_until_that_one_is_gone(tmp_path: Path) -> None:
    lasting, done, _ = checked(tmp_path, no_ones)
    assert (lasting.answer, done) == (Answer.UNKNOWN, Exit.COULD_NOT)
    assert "PID 6001 holds it and cannot be attributed" in lasting.sentence
    passing, _, _ = checked(tmp_path, until((5, no_ones), (FOREVER, free)))
    assert passing.answer is Answer.RETURNED


def test_a_node_whose_nvml_is_silent_leaves_it_unknown(tmp_path: Path) -> None:
    def silent(at_s: float) -> NodeFacts:
        return msgspec.structs.replace(forgotten(at_s), gpus=Sample.error("NVML answers nothing"))

    check, done, _ = checked(tmp_path, silent)
    assert (check.answer, done) == (Answer.UNKNOWN, Exit.COULD_NOT)


def test_a_very_long_grace_ends_as_pending_within_the_pods_time_limit(tmp_path: Path) -> None:
    check, done, seconds = checked(tmp_path, held, **{"grace-s": "999999", "interval-s": "10"})
    assert (check.answer, done) == (Answer.PENDING, Exit.COULD_NOT)
    assert seconds <= 790


@pytest.mark.parametrize(("grace_s", "answer", "took_s"), [("-1", Answer.LEAKED, 18), (str(2**63 - 1), Answer.PENDING, 780)])
def test_any_grace_that_the_api_takes_is_taken(tmp_path: Path, grace_s: str, answer: Answer, took_s: float) -> None:
    check, _, seconds = checked(tmp_path, held, **{"grace-s": grace_s})
    assert (check.answer, seconds) == (answer, took_s), check.sentence


def test_the_check_keeps_whether_its_event_was_a_deletion(tmp_path: Path) -> None:
    told, _, _ = checked(tmp_path, free)
    not_told, _, _ = checked(tmp_path, free, **{"deleted-at": ""})
    assert (told.pod.deletion_told, not_told.pod.deletion_told) == (True, False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("uid", "{{workflow.name}}"),
        ("uid", "a b"),
        ("node", '" == "'),
        ("name", "{{=1+41}}"),
        ("namespace", "a\nb"),
        ("containers", '["containerd://{{workflow.name}}"]'),
        ("containers", "[" + ",".join(['"containerd://0123456789ab"'] * 257) + "]"),
        ("deleted-at", "yesterday"),
        ("grace-s", "1e9"),
        ("grace-s", "9" * 10_000),
        ("uid", "x" * 10_000),
    ],
)
def test_a_hostile_value_is_refused_with_a_sentence(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(BadInput, match=f"--{name} got"):
        checked(tmp_path, free, **{name: value})


def test_a_pod_of_many_containers_is_checked_like_any_other(tmp_path: Path) -> None:
    """Nobody gets round the check by containers: the API bounds their number by the size of the pod alone."""
    ids = ",".join(f'"containerd://{number:064x}"' for number in range(256))
    check, _, _ = checked(tmp_path, free, containers=f"[{ids}]")
    assert check.answer is Answer.RETURNED


def test_container_ids_lose_their_runtime_and_one_that_never_ran_is_left_out() -> None:
    assert container_ids(f'["containerd://{CONTAINER_A}","","cri-o://{CONTAINER_B}"]') == {CONTAINER_A, CONTAINER_B}


def test_a_leak_names_its_holder_and_the_class(tmp_path: Path) -> None:
    check, _, _ = checked(tmp_path, held)
    assert check.release is not None
    (device,) = check.release.devices
    assert [holder.pid for holder in device.holders] == [4001]
    assert device.gpu_class is not GpuClass.BASELINE
