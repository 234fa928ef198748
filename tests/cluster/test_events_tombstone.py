"""A pod that goes while the source's watch is broken. Mostly nobody hears of it again: the source watches anew without the version
that it had seen. Where it must list anew it makes up a stand-in (tombstone), which the shipped source drops.

Repeated by `make cluster-test-full` only: it restarts the API server, twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from sensors import pods
from sensors.common import From, Json, sensor
from steps.contracts.release_check import Answer
from tests.cluster import events_scene as events
from tests.cluster import scene
from tests.cluster.lab.lab import Lab
from tests.cluster.lab.places import CHECKOUT

pytestmark = [pytest.mark.cluster, pytest.mark.repeat]

UNFILTERED = "unfiltered"
STAND_IN = "body.Obj."
"""Where the informer's stand-in has the object, as it was when last seen: {"Key": ..., "Obj": ...}."""
DROPPED = "event object is not of type '*unstructured.Unstructured' but of type 'DeletedFinalStateUnknown'"
RIGHT_TO_WATCH = "gpu-reclaim-eventsource"


@dataclass(frozen=True, slots=True)
class Gaps:
    """uids: of the pods by name. checks: by uid, what the shipped source started. stand_ins: by uid, what the unfiltered one did,
    after the first gap and in the end. dropped: how many stand-ins the shipped source speaks of, likewise."""

    uids: Mapping[str, str]
    checks: Mapping[str, list[Json]]
    stand_ins: tuple[Mapping[str, Json], Mapping[str, Json]]
    dropped: tuple[int, int]


@pytest.fixture(scope="module")
def gaps(installed: Lab) -> Gaps:
    """Twice the API server is restarted and a pod deleted before the sources watch again: first they only were slow, then they
    had lost their right to watch and must list when they have it back."""
    lab = installed
    scene.make_room(lab)
    events.install(lab)
    lab.kubectl.apply(_unfiltered(), _for_stand_ins())
    events.wait_ready(lab, UNFILTERED, f"{UNFILTERED}-deleted")
    with events.gpus(lab, 3):
        started = events.start_pods(lab, [events.session_pod(name) for name in ("unheard", "listened", "listed")])
        uids = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in started}
        with events.standing_still(lab, f"eventsource-name in (pods, {UNFILTERED})"):
            with lab.without("apiserver"):
                pass
            lab.kubectl.delete("pod", "unheard", scene.TEAM)
        events.delete_pods(lab, "listened")
        events.wait_checks(lab, [uids["listened"]])
        first = (_stand_ins(lab, uids), _dropped(lab))

        lab.kubectl.delete("clusterrolebinding", RIGHT_TO_WATCH)
        with lab.without("apiserver"):
            pass
        lab.kubectl.delete("pod", "listed", scene.TEAM)
        lab.kubectl.apply(CHECKOUT / "deploy" / "watch" / "cluster")
        lab.kubectl.wait("the stand-ins' checks have ended", lambda: uids["listed"] in _stand_ins(lab, uids), within_s=90)
        events.settle(3)
        checks = {uid: events.checks_of(lab, uid) for uid in uids.values()}
        second = (_stand_ins(lab, uids), _dropped(lab))
    return Gaps(uids, checks, (first[0], second[0]), (first[1], second[1]))


def _unfiltered() -> Json:
    """The shipped source of one namespace without its filter: every pod's whole body reaches the bus."""
    made = pods.source(UNFILTERED, namespace=scene.TEAM)
    del made["spec"]["resource"][pods.DELETED]["filter"]
    return made


def _for_stand_ins() -> Json:
    """The shipped trigger, with its keys where a stand-in has them; what is none does not pass."""
    arguments = {name: _moved(value) for name, value in pods.START.arguments.items()}
    start = replace(pods.START, prefix=UNFILTERED, name=[_moved(part) for part in pods.START.name], arguments=arguments)
    only = {"filters": {"data": [{"path": f"{STAND_IN}metadata.uid", "type": "string", "value": ["."]}]}}
    return sensor(f"{UNFILTERED}-deleted", UNFILTERED, pods.DELETED, start, only=only)


def _moved(value: From | str) -> From:
    assert isinstance(value, From)
    return replace(value, data=value.data.replace("body.", STAND_IN))


def _stand_ins(lab: Lab, uids: Mapping[str, str]) -> dict[str, Json]:
    """By the pod's uid, the ended Workflows that a stand-in started."""
    ended = [one for one in lab.kubectl.list("workflow", lab.namespace) if one.get("status", {}).get("finishedAt")]
    return {uid: one for uid in uids.values() for one in ended if one["metadata"]["name"].startswith(f"{UNFILTERED}-{uid}-")}


def _dropped(lab: Lab) -> int:
    return events.log_of(lab, "eventsource-name=pods").count(DROPPED)


def test_a_source_that_only_watches_again_never_hears_of_what_went_meanwhile(gaps: Gaps) -> None:
    assert gaps.checks[gaps.uids["unheard"]] == []
    assert (gaps.stand_ins[0], gaps.dropped[0]) == ({}, 0)


def test_it_hears_of_the_next_deletion(gaps: Gaps) -> None:
    (workflow,) = gaps.checks[gaps.uids["listened"]]
    assert events.answer(workflow).answer is Answer.RETURNED


def test_a_source_that_lists_again_gets_stand_ins_and_as_shipped_drops_them(gaps: Gaps) -> None:
    assert gaps.dropped[1] >= 1
    assert gaps.checks[gaps.uids["listed"]] == []


def test_a_stand_in_is_the_pod_as_last_seen_without_a_word_of_its_deletion(gaps: Gaps, lab: Lab) -> None:
    workflow = gaps.stand_ins[1][gaps.uids["listed"]]
    given = {one["name"]: one["value"] for one in workflow["spec"]["arguments"]["parameters"]}
    assert (given["uid"], given["name"], given["node"]) == (gaps.uids["listed"], "listed", lab.node)
    assert given["containers"].count("containerd://") == 1
    assert given["deleted-at"] == ""


def test_it_comes_for_everything_that_went_unheard_before_too(gaps: Gaps) -> None:
    assert set(gaps.stand_ins[1]) == {gaps.uids["listed"], gaps.uids["unheard"]}


def test_for_a_stand_in_the_node_is_looked_at_all_the_same(gaps: Gaps) -> None:
    check = events.answer(gaps.stand_ins[1][gaps.uids["listed"]])
    assert check.answer is Answer.RETURNED, check.sentence
    assert check.release is not None
    assert len(check.release.devices) == 1, check.sentence
