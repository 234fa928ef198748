"""A stop acts once, through the owner's own switch, on the decision that was kept; everything else is a refusal with a reason."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from steps.contracts.document import Sample
from steps.contracts.errors import SourceUnavailable
from steps.contracts.policy import Mode
from steps.contracts.stop_receipt import Refusal
from steps.contracts.traced import TracedNode
from tests.unit import judging
from tests.unit.api_double import NOON, Fault, Moment, forbidden, lost
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


# --- the claim


def test_another_stop_that_claimed_the_session_first_is_not_overridden() -> None:
    scene = Scene()
    first = scene.claim_by("d-0", NOON - timedelta(minutes=2))
    receipt = scene.stop()
    assert (receipt.refusal, scene.count, scene.intent()) == (Refusal.CLAIMED_BY_ANOTHER, 1, first)
    assert "decision d-0 claimed Deployment team/a at 2026-11-30 11:58:00 UTC" in receipt.sentence


@pytest.mark.parametrize(("age", "acts"), [(timedelta(minutes=20), False), (timedelta(minutes=20, seconds=1), True)])
def test_a_stale_claim_is_healed_only_once_no_retry_of_it_can_still_act(age: timedelta, acts: bool) -> None:
    scene = Scene()
    scene.claim_by("d-0", NOON - age, replicas_before=7)
    receipt = scene.stop()
    intent = scene.intent()
    assert intent is not None
    assert (receipt.acted, intent.decision_id, intent.replicas_before) == ((True, "d-1", 1) if acts else (False, "d-0", 7))
    assert ("a stale claim of decision d-0 was removed" in receipt.sentence) == acts


def test_of_two_stops_that_heal_one_stale_claim_only_one_acts() -> None:
    scene = Scene()
    scene.claim_by("d-0", NOON - timedelta(hours=1))
    first, second = scene.decision, msgspec.structs.replace(scene.decision, decision_id="d-2")
    scene.kept = kept(first, second)
    assert scene.stop().acted
    receipt = scene.stop(decision_id="d-2")
    intent = scene.intent()
    assert intent is not None
    assert (receipt.acted, receipt.refusal, intent.decision_id) == (False, Refusal.CHANGED_SINCE_DECIDED, "d-1")


@pytest.mark.parametrize("call", ["create", "delete"])
def test_a_stop_that_is_overtaken_while_it_heals_a_stale_claim_removes_no_record_but_that_one(call: str) -> None:
    """Overtaken after it saw the stale claim, or between the look at the record and its removal."""
    scene = Scene()
    scene.claim_by("d-0", NOON - timedelta(hours=1))
    scene.kept = kept(scene.decision, msgspec.structs.replace(scene.decision, decision_id="d-2"))
    real, others = getattr(scene.api, call), []

    def overtaken(*args: Any, **more: Any) -> Any:
        setattr(scene.api, call, real)
        answer = real(*args, **more) if call == "create" else None
        others.append(scene.stop(decision_id="d-2"))
        return answer or real(*args, **more)

    setattr(scene.api, call, overtaken)
    receipt, intent = scene.stop(), scene.intent()
    assert intent is not None
    assert (receipt.refusal, others[0].acted, intent.decision_id) == (Refusal.CLAIMED_BY_ANOTHER, True, "d-2")


def test_of_two_stops_at_once_the_one_with_the_claim_acts() -> None:
    scene = Scene()
    scene.kept = kept(scene.decision, msgspec.structs.replace(scene.decision, decision_id="d-2"))
    create, others = scene.api.create, []

    def overtaken(path: str, body: Any) -> Any:
        scene.api.create = create  # type: ignore[method-assign]
        others.append(scene.stop(decision_id="d-2"))
        return create(path, body)

    scene.api.create = overtaken  # type: ignore[method-assign]
    receipt = scene.stop()
    assert (receipt.refusal, others[0].acted, scene.count) == (Refusal.CLAIMED_BY_ANOTHER, True, 0)


# --- the write


@pytest.mark.parametrize(
    ("status", "refusal"),
    [
        (409, Refusal.CONFLICT),
        (403, Refusal.FORBIDDEN),
        (422, Refusal.INVALID),
        (400, Refusal.INVALID),
        (404, Refusal.SESSION_GONE),
    ],
)
def test_a_write_that_is_refused_changes_nothing_is_not_repeated_and_gives_the_claim_up(status: int, refusal: Refusal) -> None:
    scene = Scene()
    scene.api.faults.append(Fault("patch", SCALE, status=status))
    assert (scene.refusal(), scene.count, scene.intent()) == (refusal, 1, None)
    assert scene.api.writes.count(("patch", SCALE)) == 1


def test_somebody_who_changes_the_owner_between_read_and_write_wins() -> None:
    scene = Scene()
    create = scene.api.create

    def interfere(path: str, body: Any) -> Any:
        scene.api.patch(DEPLOYMENT, {"metadata": {"annotations": {"somebody.example/note": "x"}}})
        return create(path, body)

    scene.api.create = interfere  # type: ignore[method-assign]
    assert (scene.refusal(), scene.count, scene.intent()) == (Refusal.CONFLICT, 1, None)


def test_a_write_whose_answer_is_lost_is_read_again_and_counts_if_it_was_done() -> None:
    scene = Scene()
    scene.api.faults.append(lost("patch", SCALE, Moment.AFTER))
    receipt = scene.stop()
    assert (receipt.acted, receipt.replicas_after, scene.count) == (True, 0, 0)
    assert scene.api.writes.count(("patch", SCALE)) == 1


def test_a_write_that_may_still_be_under_way_leaves_the_intent_and_is_not_repeated() -> None:
    scene = Scene()
    scene.api.faults.append(lost("patch", SCALE, Moment.BEFORE))
    receipt = scene.stop()
    assert (receipt.acted, receipt.refusal) == (False, Refusal.OUTCOME_UNKNOWN)
    assert (receipt.replicas_before, receipt.replicas_after) == (None, None)
    assert scene.api.writes.count(("patch", SCALE)) == 1
    assert scene.intent() is not None


def test_if_the_second_look_fails_as_well_the_outcome_is_unknown_with_both_reasons() -> None:
    scene = Scene()
    scene.api.faults += [lost("patch", SCALE, Moment.AFTER), Fault("get", DEPLOYMENT, error=SourceUnavailable, skip=1)]
    receipt = scene.stop()
    assert (receipt.refusal, receipt.acted) == (Refusal.OUTCOME_UNKNOWN, False)
    assert "and then:" in receipt.sentence


def test_a_claim_that_cannot_be_given_up_is_said_and_the_refusal_stands() -> None:
    scene = Scene()
    scene.api.faults += [Fault("patch", SCALE, status=409), forbidden("delete", f"{INTENTS}/.*")]
    receipt = scene.stop()
    assert receipt.refusal is Refusal.CONFLICT
    assert "the claim could not be removed" in receipt.sentence
