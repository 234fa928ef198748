"""What the API says of a pod, read from raw JSON."""

from datetime import UTC, datetime
from typing import Any

import pytest

from steps.adapters.kubernetes.pods import gpus_requested, pod_facts, waiter_of
from steps.contracts.cluster_facts import LONGEST_GRACE_S, Phase
from steps.contracts.errors import SourceUnavailable
from tests.unit.api_double import ApiDouble
from tests.unit.cluster_world import pod

GPU = "nvidia.com/gpu"


def asks(gpus: int, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"limits": {GPU: str(gpus)}}, **more}


@pytest.mark.parametrize(
    ("spec", "gpus"),
    [
        ({"containers": [asks(1), asks(2)]}, 3),
        ({"containers": [asks(1)], "initContainers": [asks(4)]}, 4),
        ({"containers": [asks(4)], "initContainers": [asks(1)]}, 4),
        ({"containers": [asks(1)], "initContainers": [asks(2, restartPolicy="Always")]}, 3),
        ({"containers": [asks(1)], "initContainers": [asks(2, restartPolicy="Always"), asks(4)]}, 6),
        ({"containers": [asks(1)], "initContainers": [asks(4), asks(2, restartPolicy="Always")]}, 4),
        ({"containers": [{"resources": {"requests": {GPU: "2"}}}]}, 2),
        ({"containers": [{"resources": {"limits": {"nvidia.com/mig-1g.10gb": "2", "cpu": "1", "example.com/gpu": "9"}}}]}, 2),
        ({"containers": [{"resources": {"limits": {GPU: "1k"}}}]}, 1000),
        ({"containers": [{}]}, 0),
        ({}, 0),
    ],
)
def test_the_gpus_of_a_pod_are_what_the_scheduler_reserves(spec: dict[str, Any], gpus: int) -> None:
    assert gpus_requested(spec) == gpus


def test_a_quantity_that_is_no_whole_number_is_an_error_and_never_a_zero() -> None:
    with pytest.raises(SourceUnavailable, match="whole number"):
        gpus_requested({"containers": [{"resources": {"limits": {GPU: "half"}}}]})


def test_container_ids_come_from_all_three_lists_current_before_last_without_the_runtimes_name() -> None:
    raw = pod(ApiDouble(), "a")
    raw["status"] |= {
        "containerStatuses": [
            {"name": "main", "containerID": "containerd://new", "lastState": {"terminated": {"containerID": "containerd://old"}}}
        ],
        "initContainerStatuses": [{"name": "init", "state": {"terminated": {"containerID": "cri-o://done"}}}],
        "ephemeralContainerStatuses": [{"name": "debug", "containerID": "containerd://eph"}, {"name": "starting"}],
    }
    found = {container.name: container.container_ids for container in pod_facts(raw, None).containers}
    assert found == {"main": ("new", "old"), "init": ("done",), "debug": ("eph",), "starting": ()}


def test_the_grace_is_the_deletions_own_while_one_is_under_way() -> None:
    raw = pod(ApiDouble(), "a")
    assert (pod_facts(raw, None).grace_s, pod_facts(raw, None).deletion_requested_at) == (20, None)
    raw["metadata"] |= {"deletionTimestamp": "2026-11-30T11:00:00Z", "deletionGracePeriodSeconds": 0}
    facts = pod_facts(raw, None)
    assert (facts.grace_s, facts.deletion_requested_at) == (0, datetime(2026, 11, 30, 11, tzinfo=UTC))
    del raw["metadata"]["deletionGracePeriodSeconds"], raw["spec"]["terminationGracePeriodSeconds"]
    assert pod_facts(raw, None).grace_s == 30


def test_the_grace_is_counted_once_the_servers_time_is_its_end() -> None:
    raw = pod(ApiDouble(), "a")
    raw["metadata"] |= {"deletionTimestamp": "2026-11-30T11:00:30Z", "deletionGracePeriodSeconds": 30}
    assert pod_facts(raw, None).deletion_requested_at == datetime(2026, 11, 30, 11, tzinfo=UTC)


@pytest.mark.parametrize(("written_s", "grace_s"), [(-5, 1), (0, 0), (10**6, 10**6), (2**63 - 1, LONGEST_GRACE_S)])
def test_a_grace_counts_as_kubernetes_takes_it_and_a_year_at_most(written_s: int, grace_s: int) -> None:
    """The API takes any 64-bit number: one user's pod must not end every sweep."""
    raw = pod(ApiDouble(), "a")
    raw["spec"]["terminationGracePeriodSeconds"] = written_s
    assert pod_facts(raw, None).grace_s == grace_s


@pytest.mark.parametrize("grace_s", [2**63 - 1, 10**11])
def test_a_deletion_whose_end_the_server_cannot_count_began_when_the_pod_did_at_the_earliest(grace_s: int) -> None:
    raw = pod(ApiDouble(), "a")
    raw["metadata"] |= {"deletionTimestamp": "1754-08-30T22:43:41Z", "deletionGracePeriodSeconds": grace_s}
    facts = pod_facts(raw, None)
    assert (facts.deletion_requested_at, facts.grace_s) == (facts.created_at, LONGEST_GRACE_S)


@pytest.mark.parametrize("annotation", ["config.hash", "config.mirror"])
def test_a_static_pod_carries_the_hash_that_is_its_uid_on_the_node(annotation: str) -> None:
    raw = pod(ApiDouble(), "a", annotations={f"kubernetes.io/{annotation}": "abc"})
    assert pod_facts(raw, None).config_hash == "abc"


def test_a_phase_that_nobody_knows_is_unknown() -> None:
    assert pod_facts(pod(ApiDouble(), "a", phase="Dreaming"), None).phase is Phase.UNKNOWN


def test_a_pod_without_uid_is_an_error_and_not_a_pod() -> None:
    raw = pod(ApiDouble(), "a", uid="")
    with pytest.raises(SourceUnavailable, match="team/a"):
        pod_facts(raw, None)


def waiting(**changes: Any) -> dict[str, Any]:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
        "lastTransitionTime": "2026-11-30T11:30:00Z",
    }
    raw = pod(ApiDouble(), "b", node=None, phase="Pending", gpus=changes.pop("gpus", 1))
    raw["status"]["conditions"] = [{**condition, **changes}]
    return raw


def test_a_waiter_carries_the_schedulers_own_words_and_since_when() -> None:
    waiter = waiter_of(waiting())
    assert waiter is not None
    assert (waiter.message.known(), waiter.pending_since.hour) == ("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", 11)


@pytest.mark.parametrize("changes", [{"gpus": 0}, {"reason": "SchedulingGated"}, {"status": "True"}, {"type": "Ready"}])
def test_who_asks_for_no_gpu_or_was_not_refused_by_the_scheduler_does_not_wait(changes: dict[str, Any]) -> None:
    assert waiter_of(waiting(**changes)) is None


def test_a_pod_that_is_being_deleted_or_runs_does_not_wait() -> None:
    deleting, running = waiting(), waiting()
    deleting["metadata"]["deletionTimestamp"] = "2026-11-30T11:59:00Z"
    running["status"]["phase"] = "Running"
    assert (waiter_of(deleting), waiter_of(running)) == (None, None)


def test_a_scheduler_without_words_is_said_as_absent() -> None:
    waiter = waiter_of(waiting(message=""))
    assert waiter is not None
    assert (waiter.message.known(), waiter.message.reason) == (None, "the scheduler gave no message")
