"""A stop that dies anywhere is healed by the next try of the same decision, and never acts twice."""

from datetime import timedelta

import pytest

from steps.contracts.errors import OutcomeUnknown, SourceUnavailable
from steps.contracts.stop_receipt import Refusal
from tests.unit.api_double import NOON, Crash, Fault, Moment, lost, unreachable
from tests.unit.cluster_world import DEPLOYMENT, SCALE
from tests.unit.stopping import INTENTS, Scene

POINTS = [
    pytest.param("get", DEPLOYMENT, Moment.BEFORE, id="before reading the owner"),
    pytest.param("get", DEPLOYMENT, Moment.AFTER, id="after reading the owner"),
    pytest.param("list", "/api/v1/namespaces/team/pods", Moment.AFTER, id="while judging the guards"),
    pytest.param("get", f"{INTENTS}/.*", Moment.AFTER, id="after looking for an Intent"),
    pytest.param("create", INTENTS, Moment.BEFORE, id="before the Intent"),
    pytest.param("create", INTENTS, Moment.AFTER, id="between Intent and act"),
    pytest.param("patch", SCALE, Moment.BEFORE, id="right before the act"),
    pytest.param("patch", SCALE, Moment.AFTER, id="after the act, before the receipt"),
]


@pytest.mark.parametrize(("verb", "path", "moment"), POINTS)
def test_the_next_try_of_the_same_decision_ends_what_a_crash_cut_short(verb: str, path: str, moment: Moment) -> None:
    scene = Scene()
    scene.api.faults.append(Fault(verb, path, error=Crash, moment=moment))
    with pytest.raises(Crash):
        scene.stop()
    receipt = scene.stop()
    intent = scene.intent()
    assert intent is not None
    assert (receipt.acted, scene.count, intent.decision_id, intent.replicas_before) == (True, 0, "d-1", 1)


@pytest.mark.parametrize(("verb", "path", "moment"), POINTS)
def test_a_crash_never_leaves_a_stopped_session_without_its_record(verb: str, path: str, moment: Moment) -> None:
    scene = Scene()
    scene.api.faults.append(Fault(verb, path, error=Crash, moment=moment))
    with pytest.raises(Crash):
        scene.stop()
    assert scene.count == 1 or scene.intent() is not None


def test_a_try_after_the_act_says_so_and_writes_nothing() -> None:
    scene = Scene()
    scene.stop()
    scene.api.calls.clear()
    scene.clock.sleep(30)
    receipt = scene.stop()
    assert (receipt.acted, receipt.replicas_before, receipt.replicas_after, receipt.acted_at) == (True, 1, 0, NOON)
    assert (scene.api.writes, receipt.sentence.endswith("by decision d-1, in an earlier try.")) == ([], True)


def test_what_changed_between_crash_and_next_try_is_decided_again() -> None:
    scene = Scene()
    scene.api.faults.append(Fault("create", INTENTS, error=Crash, moment=Moment.AFTER))
    with pytest.raises(Crash):
        scene.stop()
    scene.api.patch(DEPLOYMENT, {"metadata": {}, "spec": {"replicas": 2}})
    assert (scene.refusal(), scene.count) == (Refusal.CHANGED_SINCE_DECIDED, 2)


def test_the_leftover_intent_of_a_crash_keeps_other_decisions_out_and_then_is_healed() -> None:
    scene = Scene()
    scene.api.faults.append(Fault("create", INTENTS, error=Crash, moment=Moment.AFTER))
    with pytest.raises(Crash):
        scene.stop()
    scene.decide("d-2", decided_at=NOON + timedelta(minutes=10))
    scene.clock.sleep(600)
    scene.nodes = {}
    scene.decide("d-2", decided_at=scene.clock.now(), pods=())
    assert scene.refusal() is Refusal.CLAIMED_BY_ANOTHER
    scene.clock.sleep(601)
    scene.decide("d-3", decided_at=scene.clock.now(), pods=())
    assert scene.stop().acted


def test_a_claim_whose_answer_is_lost_is_looked_up_and_the_stop_goes_on_if_it_is_ours() -> None:
    scene = Scene()
    scene.api.faults.append(lost("create", INTENTS, Moment.AFTER))
    assert scene.stop().acted
    assert scene.api.writes.count(("create", INTENTS)) == 1


def test_a_claim_that_did_not_arrive_ends_the_try_before_anything_was_changed() -> None:
    scene = Scene()
    scene.api.faults.append(lost("create", INTENTS, Moment.BEFORE))
    with pytest.raises(OutcomeUnknown):
        scene.stop()
    assert (scene.count, scene.intent()) == (1, None)


def test_a_server_that_cannot_be_reached_for_the_write_leaves_a_claim_that_the_next_try_uses() -> None:
    scene = Scene()
    scene.api.faults.append(unreachable("patch", SCALE))
    with pytest.raises(SourceUnavailable):
        scene.stop()
    assert (scene.count, scene.intent() is None) == (1, False)
    assert scene.stop().acted
