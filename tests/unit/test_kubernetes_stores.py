"""Our own records in the API: decisions immutable, memory guarded, Events within their limits. What the contract suite, which
runs over a real server as well, cannot provoke."""

import json
from typing import Any

import msgspec
import pytest

from steps.adapters.kubernetes.decisions import ConfigMapDecisions
from steps.adapters.kubernetes.events import KubernetesEvents, cut
from steps.adapters.kubernetes.memory import ConfigMapMemory
from steps.contracts.cluster_facts import OwnerRef
from steps.contracts.decision import Decisions
from steps.contracts.document import encode
from steps.contracts.errors import BadInput, SourceUnavailable
from steps.contracts.ports import Rejection
from tests.unit.api_double import ApiDouble, FakeClock, Fault
from tests.unit.continuing import EARLIER, seen_node, seen_pod
from tests.unit.continuing import memory as remembered
from tests.unit.stopping import GPU_RECLAIM, INTENTS, Scene, kept

DECISIONS = f"{INTENTS}/gpu-reclaim-decisions-sweep-1-0"
MEMORY = f"{INTENTS}/gpu-reclaim-memory-0"
OWNER = OwnerRef(api_version="apps/v1", kind="Deployment", namespace="team", name="a", uid="u")


def keep(api: ApiDouble, decisions: Decisions) -> None:
    ConfigMapDecisions(api, GPU_RECLAIM).keep(decisions, "workflow-uid")


def test_kept_decisions_are_immutable_labelled_and_go_with_their_workflow() -> None:
    api = ApiDouble()
    keep(api, kept(Scene().decision))
    raw = api.objects[DECISIONS]
    assert raw["immutable"] is True
    assert raw["metadata"]["labels"] == {"app.kubernetes.io/part-of": "gpu-reclaim", "gpu-reclaim.dev/holds": "decisions"}
    (owner,) = raw["metadata"]["ownerReferences"]
    assert owner == {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": "sweep-1", "uid": "workflow-uid"}


def test_a_step_that_is_run_again_finds_its_decisions_kept_though_their_times_differ() -> None:
    api, decision = ApiDouble(), Scene().decision
    keep(api, kept(decision))
    keep(api, kept(msgspec.structs.replace(decision, sentence="said anew")))
    assert ConfigMapDecisions(api, GPU_RECLAIM).load("sweep-1", 0) == kept(decision)


def test_other_decisions_of_the_same_run_are_never_overwritten() -> None:
    api, decision = ApiDouble(), Scene().decision
    keep(api, kept(decision))
    with pytest.raises(SourceUnavailable, match="already holds other decisions of this run"):
        keep(api, kept(msgspec.structs.replace(decision, decision_id="d-2")))
    assert ConfigMapDecisions(api, GPU_RECLAIM).load("sweep-1", 0) == kept(decision)


def test_decisions_too_large_for_a_config_map_are_refused_before_anything_is_sent() -> None:
    api, decision = ApiDouble(), Scene().decision
    with pytest.raises(SourceUnavailable, match=r"gpu-reclaim-decisions-sweep-1-0 cannot be kept: \d+ bytes.* shard-size"):
        keep(api, kept(msgspec.structs.replace(decision, sentence="x" * 1024 * 1024)))
    assert api.calls == []


def test_decisions_that_somebody_edited_are_bad_input_that_names_the_config_map() -> None:
    api = ApiDouble()
    keep(api, kept())
    for data, words in (({"document.json": "{"}, "not a valid Decisions"), ({}, "has no document.json")):
        api.objects[DECISIONS]["data"] = data
        with pytest.raises(BadInput, match=f"ConfigMap gpu-reclaim/gpu-reclaim-decisions-sweep-1-0 .*{words}"):
            ConfigMapDecisions(api, GPU_RECLAIM).load("sweep-1", 0)


def edited(old: str, new: str) -> dict[str, str]:
    """A memory in which somebody has changed these words."""
    text = encode(remembered(seen_node(seen_pod(missed_at=EARLIER)))).decode()
    assert old in text
    return {"document.json": text.replace(old, new)}


def test_a_memory_is_loaded_as_it_was_saved() -> None:
    api = ApiDouble()
    api.put(MEMORY, {"data": edited("", "")})
    assert ConfigMapMemory(api, GPU_RECLAIM).load(0)[0] == remembered(seen_node(seen_pod(missed_at=EARLIER)))


@pytest.mark.parametrize(
    "data",
    [
        {"document.json": '{"document":"Memory/0"}'},
        {},
        edited("11:50:00Z", "11:50:00"),
        edited('"grace_s":30', f'"grace_s":{2**63 - 1}'),
        edited('"grace_s":30', '"grace_s":-1'),
    ],
    ids=["another version", "empty", "a time without a zone", "a grace without end", "a negative grace"],
)
def test_a_memory_that_cannot_be_read_is_lost_and_the_next_save_may_replace_it(data: dict[str, str]) -> None:
    api = ApiDouble()
    raw = api.put(MEMORY, {"data": data})
    assert ConfigMapMemory(api, GPU_RECLAIM).load(0) == (None, raw["metadata"]["resourceVersion"])


def test_an_event_names_owner_reason_and_reporter_within_the_limits() -> None:
    api = ApiDouble()
    assert KubernetesEvents(api, GPU_RECLAIM, FakeClock()).record(OWNER, "R" * 200, "A" * 200, "ü" * 1000) is None
    (raw,) = api.objects.values()
    assert (len(raw["reason"]), len(raw["action"]), len(raw["note"].encode()) <= 1024) == (128, 128, True)
    assert (raw["regarding"]["uid"], raw["metadata"]["namespace"], raw["type"]) == ("u", "team", "Normal")
    assert (raw["reportingController"], raw["eventTime"]) == ("gpu-reclaim.dev/gpu-reclaim", "2026-11-30T12:00:00.000000Z")
    assert json.dumps(raw)


def test_the_same_event_in_the_same_second_is_one_and_a_later_one_another() -> None:
    api, clock = ApiDouble(), FakeClock()
    events = KubernetesEvents(api, GPU_RECLAIM, clock)
    for seconds in (0, 0, 1):
        clock.sleep(seconds)
        assert events.record(OWNER, "Stopped", "Stop", "note", warning=True) is None
    assert len(api.objects) == 2


def test_an_event_that_may_not_be_written_is_a_value() -> None:
    api = ApiDouble(faults=[Fault("create", ".*", status=403)])
    rejected = KubernetesEvents(api, GPU_RECLAIM, FakeClock()).record(OWNER, "Stopped", "Stop", "note")
    assert rejected is not None
    assert rejected.rejection is Rejection.FORBIDDEN


@pytest.mark.parametrize(
    ("text", "limit", "expected"), [("abc", 3, "abc"), ("abcd", 4, "abcd"), ("abcde", 4, "a…"), ("üüü", 5, "ü…"), ("üüü", 6, "üüü")]
)
def test_a_text_is_cut_to_bytes_and_never_inside_a_character(text: str, limit: int, expected: str) -> None:
    assert cut(text, limit) == expected


def test_intents_of_an_unreadable_record_end_the_claim_with_its_name() -> None:
    scene: Any = Scene()
    scene.api.put(f"{INTENTS}/gpu-reclaim-intent-{scene.owner.uid}", {"data": {}})
    with pytest.raises(BadInput, match="gpu-reclaim-intent-"):
        scene.stop()
    assert scene.count == 1
