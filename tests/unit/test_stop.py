"""A stop acts once, through the owner's own switch, on the decision that was kept; everything else is a refusal with a reason."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from steps.contracts.document import Sample
from steps.contracts.policy import Mode
from steps.contracts.stop_receipt import Refusal
from steps.contracts.traced import TracedNode
from tests.unit import judging
from tests.unit.api_double import NOON, forbidden
from tests.unit.cluster_world import DEPLOYMENT, SCALE, TEAM, pod
from tests.unit.stopping import INTENTS, Scene, busy_node, idle_node, judged_pod, kept


def test_an_idle_session_goes_to_zero_and_the_receipt_says_from_what() -> None:
    scene = Scene()
    receipt = scene.stop()
    assert (receipt.acted, receipt.refusal, receipt.replicas_before, receipt.replicas_after) == (True, None, 1, 0)
    assert (scene.count, receipt.acted_at, receipt.pods) == (0, NOON, scene.decision.pods)
    assert receipt.sentence == "Deployment team/a was scaled from 1 to 0 by decision d-1."


def test_the_only_writes_of_a_stop_are_the_intent_and_then_one_scale() -> None:
    scene = Scene()
    scene.stop()
    assert scene.api.writes == [("create", INTENTS), ("patch", SCALE)]


def test_the_intent_records_what_restore_needs() -> None:
    scene = Scene()
    version = scene.api.objects[DEPLOYMENT]["metadata"]["resourceVersion"]
    scene.stop()
    intent = scene.intent()
    assert intent is not None
    assert (intent.owner, intent.decision_id, intent.replicas_before, intent.replicas_after) == (scene.owner, "d-1", 1, 0)
    assert intent.resource_version_seen == version


# --- the decision


def test_a_made_up_id_is_refused_and_nothing_is_read_or_written() -> None:
    scene = Scene()
    receipt = scene.stop(decision_id="made-up")
    assert (receipt.acted, receipt.refusal, receipt.owner) == (False, Refusal.UNKNOWN_DECISION, None)
    assert scene.api.calls == []


@pytest.mark.parametrize("foreign", [{"run": "sweep-0"}, {"shard": 1}])
def test_a_decision_of_another_run_or_shard_is_unknown(foreign: dict[str, Any]) -> None:
    scene = Scene()
    assert scene.refusal(**foreign) is Refusal.UNKNOWN_DECISION


def test_a_decision_that_names_another_run_than_the_one_it_was_kept_for_is_unknown() -> None:
    scene = Scene()
    scene.kept = kept(msgspec.structs.replace(scene.decision, run="sweep-0"))
    assert scene.refusal() is Refusal.UNKNOWN_DECISION


def test_without_kept_decisions_every_id_is_unknown() -> None:
    scene = Scene()
    scene.kept = None
    assert scene.refusal() is Refusal.UNKNOWN_DECISION


@pytest.mark.parametrize(
    ("age_s", "refusal"), [(899, None), (900, None), (901, Refusal.DECISION_TOO_OLD), (-60, None), (-61, Refusal.DECISION_TOO_OLD)]
)
def test_a_decision_may_be_15_minutes_old_and_no_more_and_not_from_the_future(age_s: int, refusal: Refusal | None) -> None:
    scene = Scene()
    scene.decide(decided_at=NOON - timedelta(seconds=age_s))
    receipt = scene.stop()
    assert (receipt.refusal, receipt.acted, scene.count) == (refusal, refusal is None, 0 if refusal is None else 1)


def test_each_switch_that_is_off_refuses_by_its_own_reason_and_creates_nothing() -> None:
    scene = Scene()
    observing = msgspec.structs.replace(scene.policy, mode=Mode.OBSERVE)
    other = msgspec.structs.replace(scene.policy, idle_after_s=1)
    assert scene.refusal(dry_run=True) is Refusal.DRY_RUN
    assert scene.refusal(policy=observing) is Refusal.OBSERVE_ONLY
    assert scene.refusal(policy=other) is Refusal.POLICY_CHANGED
    scene.decide(acts=False)
    assert scene.refusal() is Refusal.DECISION_DOES_NOT_ACT
    assert (scene.api.writes, scene.count) == ([], 1)


# --- the owner, read afresh


def test_an_owner_that_is_gone_replaced_or_being_deleted_is_a_session_gone() -> None:
    for change in ("gone", "replaced", "deleting"):
        scene = Scene()
        raw = scene.api.objects.pop(DEPLOYMENT)
        if change == "replaced":
            scene.api.put(DEPLOYMENT, {"metadata": {"uid": "another"}, "spec": raw["spec"]})
        if change == "deleting":
            scene.api.put(DEPLOYMENT, {**raw, "metadata": {**raw["metadata"], "deletionTimestamp": "2026-11-30T12:00:00Z"}})
        assert (change, scene.refusal(), scene.api.writes) == (change, Refusal.SESSION_GONE, [])


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"replicas": 3}, "metadata": {}},
        {"spec": {"template": {"spec": {"nodeSelector": {"pool": "b"}}}}, "metadata": {}},
        {"metadata": {"annotations": {"gpu-reclaim.dev/grace-period": "1h"}}},
        {"metadata": {"labels": {"gpu-reclaim.dev/managed": "false"}}},
    ],
)
def test_what_was_judged_and_changed_since_is_decided_again(patch: dict[str, Any]) -> None:
    scene = Scene()
    scene.api.patch(DEPLOYMENT, patch)
    scene.api.calls.clear()
    assert (scene.refusal(), scene.api.writes) == (Refusal.CHANGED_SINCE_DECIDED, [])


def replica(scene: Scene, name: str, *, node: str | None, kind: str = "ReplicaSet", phase: str = "Running") -> None:
    """One more pod with the labels of the session's."""
    maker = {"apiVersion": "apps/v1", "kind": kind, "name": "a-7d9", "uid": "uid-7d9", "controller": True}
    pod(scene.api, name, node=node, phase=phase, labels={"app": "a"}, ownerReferences=[maker])
    scene.api.calls.clear()


@pytest.mark.parametrize(("name", "waited"), [("a-1", False), ("a-1", True)], ids=["a new pod", "a pod that waited"])
def test_a_replica_that_got_its_node_since_it_was_judged_refuses_the_stop(name: str, waited: bool) -> None:
    scene = Scene()
    replica(scene, name, node="n2")
    if waited:
        uid = scene.api.objects[f"/api/v1/namespaces/{TEAM}/pods/{name}"]["metadata"]["uid"]
        waiting = msgspec.structs.replace(judged_pod(name, None, ()), uid=uid, devices=Sample.not_applicable("it is Pending"))
        scene.decide(pods=(judged_pod(), waiting))
    receipt = scene.stop()
    assert (receipt.refusal, scene.api.writes) == (Refusal.CHANGED_SINCE_DECIDED, [])
    assert "got a node since it was judged" in receipt.sentence


@pytest.mark.parametrize(
    "other",
    [{"node": None, "phase": "Pending"}, {"node": "n2", "kind": "Job"}, {"node": "n2", "phase": "Failed"}],
    ids=["still waiting", "of a Job with the same labels", "over"],
)
def test_a_pod_that_holds_nothing_of_the_session_does_not_refuse_the_stop(other: dict[str, Any]) -> None:
    scene = Scene()
    replica(scene, "a-1", **other)
    assert scene.stop().acted


def test_status_and_foreign_annotations_move_the_version_but_do_not_refuse_a_stop() -> None:
    scene = Scene()
    scene.api.patch(DEPLOYMENT, {"metadata": {"annotations": {"somebody.example/note": "x"}}, "status": {"replicas": 1}})
    assert scene.stop().acted


def test_an_opt_out_on_the_namespace_that_came_after_the_decision_is_seen() -> None:
    scene = Scene()
    scene.api.put(f"/api/v1/namespaces/{TEAM}", {"metadata": {"annotations": {"gpu-reclaim.dev/exclude": "true"}}})
    receipt = scene.stop()
    assert (receipt.refusal, scene.count) == (Refusal.GUARDED, 1)
    assert "namespace team carries the annotation" in receipt.sentence


def test_an_owner_that_may_not_be_read_is_a_refusal_not_an_error() -> None:
    scene = Scene()
    scene.api.faults.append(forbidden("get", DEPLOYMENT))
    assert scene.refusal() is Refusal.FORBIDDEN


# --- the capture


@pytest.mark.parametrize(
    ("node", "refusal"),
    [
        (idle_node(), None),
        (busy_node(), Refusal.SIGN_OF_LIFE),
        (judging.node(judging.gpu(), connected={"a-1": 1}), Refusal.SIGN_OF_LIFE),
        (judging.node(judging.gpu(), connected={"a-1": Sample.error("no access")}), Refusal.SIGNAL_UNKNOWN),
        (judging.node(judging.gpu(sm=Sample.absent("not supported"), utilisation=Sample.error("timeout"))), Refusal.SIGNAL_UNKNOWN),
        (judging.node(judging.gpu(utilisation=0.9, sm=0.9), connected={"a-1": Sample.error("no access")}), Refusal.SIGN_OF_LIFE),
        (judging.node(problem="NVML did not answer"), Refusal.SIGNAL_UNKNOWN),
    ],
)
def test_the_capture_must_still_say_idle_and_nobody_connected(node: TracedNode, refusal: Refusal | None) -> None:
    scene = Scene(nodes={"node-a": node})
    receipt = scene.stop()
    assert (receipt.refusal, scene.count) == (refusal, 0 if refusal is None else 1)
    assert (scene.intent() is None) == (refusal is not None)


def test_a_node_without_a_capture_is_unknown_even_if_all_others_are_idle() -> None:
    scene = Scene()
    scene.decide(pods=(judged_pod(), judged_pod("a-2", node="node-b", devices=("GPU-node-b-0",))))
    assert (scene.refusal(), scene.count) == (Refusal.SIGNAL_UNKNOWN, 1)
