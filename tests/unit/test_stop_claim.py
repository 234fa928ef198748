"""A stop claims its session before it writes, writes once, and what becomes of a lost answer or a second stop."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from steps.contracts.errors import SourceUnavailable
from steps.contracts.stop_receipt import Refusal
from tests.unit.api_double import NOON, Fault, Moment, forbidden, lost
from tests.unit.cluster_world import DEPLOYMENT, SCALE
from tests.unit.stopping import INTENTS, Scene, kept

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
