"""The step around the transaction: what it writes, what it tells the owner, and what bad input gets."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
import structlog

from steps.contracts.document import decode
from steps.contracts.errors import BadInput, Exit
from steps.contracts.parcel import pack
from steps.contracts.stop_receipt import Refusal, StopReceipt
from steps.stop.declaration import STEP
from steps.stop.step import run
from tests.unit.api_double import NOON, Fault, Moment, forbidden, lost
from tests.unit.cluster_world import SCALE
from tests.unit.reclaim_outside import inputs, outside
from tests.unit.stopping import Scene, judged_pod
from tests.unit.test_stop_life import capture
from tests.unit.trace_world import GPU_A, POD_A

EVENTS = "/apis/events.k8s.io/v1/namespaces/team/events"


class Ordered:
    """Scene, policy file, captures and kept decisions, as the workflow hands them over."""

    def __init__(self, folder: Path, utilisation: float = 0.0) -> None:
        self.folder = folder
        self.scene = Scene()
        self.scene.decide(pods=(msgspec.structs.replace(judged_pod(devices=(GPU_A,)), uid=POD_A),))
        assert self.scene.kept is not None
        outside(self.scene.api).decisions().keep(self.scene.kept, "workflow-uid")
        (folder / "policy.yaml").write_text("mode: act\nnamespaces: [team]\n")
        (folder / "captures.json").write_bytes(b"[" + pack(capture(utilisation)) + b"]")
        self.scene.api.calls.clear()

    def run(self, **changes: str) -> Exit:
        values = {
            "run": "sweep-1",
            "shard": "0",
            "decision": "d-1",
            "dry_run": "false",
            "policy": str(self.folder / "policy.yaml"),
            "captures": str(self.folder / "captures.json"),
        }
        return run(inputs(STEP, self.folder, **{**values, **changes}), outside(self.scene.api))

    @property
    def receipt(self) -> StopReceipt:
        return decode((self.folder / "receipt").read_bytes(), StopReceipt, "receipt")

    @property
    def acted(self) -> str:
        return (self.folder / "acted").read_text()

    def events(self) -> list[tuple[str, str]]:
        found = (raw for path, raw in self.scene.api.objects.items() if path.startswith(EVENTS))
        return [(raw["reason"], raw["note"]) for raw in found]


@pytest.fixture
def ordered(tmp_path: Path) -> Ordered:
    return Ordered(tmp_path)


def test_a_stop_writes_receipt_and_acted_and_an_event_on_the_owner(ordered: Ordered) -> None:
    assert ordered.run() is Exit.DONE
    assert (ordered.acted, ordered.receipt.acted, ordered.scene.count) == ("yes", True, 0)
    assert ordered.events() == [("Stopped", ordered.receipt.sentence)]


def test_a_refusal_is_a_result_exit_0_with_its_reason_in_receipt_event_and_log(tmp_path: Path) -> None:
    ordered = Ordered(tmp_path, utilisation=0.9)
    with structlog.testing.capture_logs() as lines:
        assert ordered.run() is Exit.DONE
    assert (ordered.acted, ordered.receipt.refusal, ordered.scene.count) == ("no", Refusal.SIGN_OF_LIFE, 1)
    assert ordered.events() == [("StopRefused", ordered.receipt.sentence)]
    assert [(line["event"], line["reason"]) for line in lines] == [("stop.refused", "SignOfLife")]


def test_a_dry_run_creates_nothing_at_all(ordered: Ordered) -> None:
    assert ordered.run(dry_run="true") is Exit.DONE
    assert (ordered.receipt.refusal, ordered.acted, ordered.scene.api.writes) == (Refusal.DRY_RUN, "no", [])


def test_dry_run_is_what_one_gets_without_asking() -> None:
    assert next(one for one in STEP.inputs if one.name == "dry-run").default == "true"


def test_a_policy_that_observes_creates_nothing_at_all(ordered: Ordered) -> None:
    (ordered.folder / "policy.yaml").write_text("mode: observe\nnamespaces: [team]\n")
    ordered.run()
    assert (ordered.receipt.refusal, ordered.scene.api.writes) == (Refusal.OBSERVE_ONLY, [])


def test_a_made_up_decision_is_refused_without_a_write(ordered: Ordered) -> None:
    assert ordered.run(decision="made-up") is Exit.DONE
    assert (ordered.receipt.refusal, ordered.receipt.owner, ordered.scene.api.writes) == (Refusal.UNKNOWN_DECISION, None, [])


def test_a_run_that_never_decided_knows_no_decision(ordered: Ordered) -> None:
    ordered.run(run="sweep-0")
    assert ordered.receipt.refusal is Refusal.UNKNOWN_DECISION


@pytest.mark.parametrize(
    "fault", [forbidden("create", EVENTS), lost("create", EVENTS, Moment.BEFORE), Fault("create", EVENTS, status=429)]
)
def test_an_event_that_cannot_be_written_never_fails_the_stop_and_is_logged(ordered: Ordered, fault: Fault) -> None:
    ordered.scene.api.faults.append(fault)
    with structlog.testing.capture_logs() as lines:
        assert ordered.run() is Exit.DONE
    assert (ordered.acted, ordered.scene.count) == ("yes", 0)
    assert [line["event"] for line in lines] == ["stop.stopped", "stop.event_missing"]


def test_a_killed_step_can_be_run_again(ordered: Ordered) -> None:
    ordered.run()
    ordered.scene.api.calls.clear()
    assert ordered.run() is Exit.DONE
    assert (ordered.acted, ("patch", SCALE) in ordered.scene.api.writes) == ("yes", False)


@pytest.mark.parametrize("content", ["{", '[{"parcel": "xz+base64", "holds": "NodeFacts", "data": "?"}]'])
def test_broken_captures_are_bad_input_before_anything_is_done(ordered: Ordered, content: str) -> None:
    (ordered.folder / "captures.json").write_text(content)
    with pytest.raises(BadInput, match=r"captures\.json"):
        ordered.run()
    assert ordered.scene.api.calls == []


def test_without_captures_the_signal_is_unknown(ordered: Ordered) -> None:
    (ordered.folder / "captures.json").write_text("[]")
    ordered.run()
    assert ordered.receipt.refusal is Refusal.SIGNAL_UNKNOWN


def test_an_unknown_policy_field_is_bad_input(ordered: Ordered) -> None:
    (ordered.folder / "policy.yaml").write_text("mode: act\nnamespaces: [team]\nidle_after: 5\n")
    with pytest.raises(BadInput, match="idle_after"):
        ordered.run()


def test_an_earlier_claim_shows_in_the_receipt(ordered: Ordered) -> None:
    ordered.scene.claim_by("d-0", NOON - timedelta(minutes=1))
    ordered.run()
    assert ordered.receipt.refusal is Refusal.CLAIMED_BY_ANOTHER
