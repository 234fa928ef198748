"""restore shows before it acts, puts back what was, and leaves an owner alone that somebody else already started."""

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import pytest

from steps.adapters.kubernetes.events import KubernetesEvents
from steps.adapters.kubernetes.intents import ConfigMapIntents
from steps.adapters.kubernetes.owners import KubernetesOwners
from steps.commands import restore
from steps.contracts.errors import BadInput, Exit, SourceUnavailable
from steps.contracts.ports import Outside
from tests.unit.api_double import NOON, ApiDouble, FakeClock, Fault, Moment, forbidden, lost
from tests.unit.cluster_world import DEPLOYMENT, SCALE
from tests.unit.stopping import GPU_RECLAIM, INTENTS, Scene

EVENTS = "/apis/events.k8s.io/v1/namespaces/team/events"


@dataclass
class Person:
    """The outside as restore needs it: a person's rights over an API."""

    api: ApiDouble

    def owners(self) -> KubernetesOwners:
        return KubernetesOwners(self.api)

    def intents(self) -> ConfigMapIntents:
        return ConfigMapIntents(self.api, GPU_RECLAIM)

    def events(self) -> KubernetesEvents:
        return KubernetesEvents(self.api, GPU_RECLAIM, FakeClock())


def run(api: ApiDouble, *argv: str) -> Exit:
    parser = ArgumentParser()
    restore.add(parser.add_subparsers(), lambda: cast("Outside", Person(api)))
    arguments = parser.parse_args(["restore", *argv])
    return cast("Exit", arguments.handler(arguments))


def stopped(replicas_before: int = 2) -> Scene:
    """Session `a`, stopped by gpu-reclaim an hour ago."""
    scene = Scene()
    scene.claim_by("d-1", NOON - timedelta(hours=1), replicas_before=replicas_before)
    scene.api.objects[DEPLOYMENT]["spec"]["replicas"] = 0
    return scene


def shown(capsys: pytest.CaptureFixture[str]) -> list[Mapping[str, Any]]:
    return cast("list[Mapping[str, Any]]", json.loads(capsys.readouterr().out))


def test_without_yes_it_shows_and_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    scene = stopped()
    assert run(scene.api) is Exit.DONE
    assert (scene.api.writes, scene.count) == ([], 0)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["SESSION", "NAMESPACE", "STOPPED", "BEFORE", "NOW", "OUTCOME"]
    assert lines[1].split() == ["deployment/a", "team", "2026-11-30T11:00:00Z", "2", "0", "would", "restore"]
    assert lines[2:] == ["Deployment team/a would go from 0 to 2.", "Nothing was changed; run this again with --yes."]


def test_with_yes_the_recorded_count_comes_back_the_intent_goes_and_the_owner_gets_an_event(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scene = stopped(replicas_before=3)
    assert run(scene.api, "deployment/a", "--yes", "-o", "json") is Exit.DONE
    (one,) = shown(capsys)
    assert (one["outcome"], one["replicas_before"], one["replicas_now"]) == ("restored", 3, 0)
    assert (scene.count, scene.intent()) == (3, None)
    assert [path for verb, path in scene.api.writes if verb == "create"] == [EVENTS]


def test_an_owner_that_runs_again_is_left_alone_and_only_the_record_goes(capsys: pytest.CaptureFixture[str]) -> None:
    scene = stopped()
    scene.api.objects[DEPLOYMENT]["spec"]["replicas"] = 1
    assert run(scene.api) is Exit.DONE
    assert "already runs with 1" in capsys.readouterr().out
    assert scene.intent() is not None
    run(scene.api, "--yes")
    assert (scene.count, scene.intent()) == (1, None)
    assert ("patch", SCALE) not in scene.api.writes


@pytest.mark.parametrize("gone", [True, False])
def test_an_owner_that_is_gone_or_was_made_anew_is_never_scaled(gone: bool, capsys: pytest.CaptureFixture[str]) -> None:
    scene = stopped()
    if gone:
        del scene.api.objects[DEPLOYMENT]
    else:
        scene.api.objects[DEPLOYMENT]["metadata"]["uid"] = "another"
    assert run(scene.api, "--yes") is Exit.DONE
    assert scene.intent() is None
    assert ("patch", SCALE) not in scene.api.writes
    assert "is gone" in capsys.readouterr().out


def test_somebody_who_touched_the_owner_just_now_wins(capsys: pytest.CaptureFixture[str]) -> None:
    scene = stopped()
    scene.api.faults.append(Fault("patch", SCALE, status=409))
    assert run(scene.api, "--yes") is Exit.COULD_NOT
    assert (scene.count, scene.intent() is None) == (0, False)
    assert "run this again" in capsys.readouterr().out


def test_who_lacks_the_right_to_scale_is_told_so_and_nothing_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    scene = stopped()
    scene.api.faults.append(forbidden("patch", SCALE))
    assert run(scene.api, "--yes") is Exit.COULD_NOT
    assert scene.intent() is not None
    assert "is forbidden" in capsys.readouterr().out


@pytest.mark.parametrize(("moment", "code", "count"), [(Moment.AFTER, Exit.DONE, 2), (Moment.BEFORE, Exit.COULD_NOT, 0)])
def test_a_write_without_an_answer_is_looked_at_and_not_repeated(moment: Moment, code: Exit, count: int) -> None:
    scene = stopped()
    scene.api.faults.append(lost("patch", SCALE, moment))
    assert (run(scene.api, "--yes"), scene.count) == (code, count)
    assert (scene.intent() is None) == (moment is Moment.AFTER)
    assert scene.api.writes.count(("patch", SCALE)) == 1


def test_one_owner_that_cannot_be_read_does_not_keep_the_others_from_coming_back() -> None:
    scene = stopped()
    scene.api.faults.append(Fault("get", DEPLOYMENT, error=SourceUnavailable))
    assert run(scene.api, "--yes") is Exit.COULD_NOT
    assert run(scene.api, "--yes") is Exit.DONE
    assert scene.count == 2


def test_a_record_that_cannot_be_removed_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    scene = stopped()
    scene.api.faults.append(forbidden("delete", f"{INTENTS}/.*"))
    assert run(scene.api, "--yes") is Exit.DONE
    assert scene.count == 2
    assert "the record of the stop is still there" in capsys.readouterr().out


def test_an_event_that_cannot_be_written_is_said_and_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    scene = stopped()
    scene.api.faults.append(forbidden("create", EVENTS))
    assert run(scene.api, "--yes") is Exit.DONE
    assert "no Event was written for deployment/a" in capsys.readouterr().err


def test_a_session_that_was_not_stopped_is_bad_input_that_says_how_to_list_those_that_were() -> None:
    with pytest.raises(BadInput, match=r"no record of a stop of 'deployment/b' in namespace team; `gpu-reclaim restore` lists"):
        run(stopped().api, "deployment/b", "-n", "team")


def test_a_namespace_without_stops_shows_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(stopped().api, "-n", "other") is Exit.DONE
    assert capsys.readouterr().out == "No session that gpu-reclaim stopped waits to be put back.\n"


def test_a_record_with_an_escape_sequence_in_it_shows_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    scene = stopped()
    (path,) = (path for path in scene.api.objects if path.startswith(INTENTS))
    data = scene.api.objects[path]["data"]
    data["document.json"] = data["document.json"].replace('"name":"a"', '"name":"\\u001b[31m"')
    run(scene.api)
    assert "\x1b" not in capsys.readouterr().out
