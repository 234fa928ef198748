"""A hundred deletions at once: as many answers, none twice. Repeated by `make cluster-test-full` only; about ten minutes."""

from dataclasses import dataclass

import pytest

from tests.cluster import events_scene as events
from tests.cluster import scene
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab

pytestmark = [pytest.mark.cluster, pytest.mark.repeat]

CROWD = 100


@dataclass(frozen=True, slots=True)
class Crowd:
    """checks: the Workflows by the pod's uid, as they ended."""

    uids: tuple[str, ...]
    checks: dict[str, list[Json]]


@pytest.fixture(scope="module")
def crowd(installed: Lab) -> Crowd:
    """Pods that had a GPU each and have ended: of running ones a node would have as many as GPUs."""
    lab, names = installed, [f"hundred-{number}" for number in range(CROWD)]
    scene.make_room(lab)
    events.install(lab)
    with events.gpus(lab, events.MOST_GPUS):
        uids = tuple(pod["metadata"]["uid"] for pod in events.finished_pods(lab, *names, within_s=400))
        events.delete_pods(lab, *names)
        events.wait_checks(lab, uids, within_s=700)
        events.settle(5)
        checks = {uid: events.checks_of(lab, uid) for uid in uids}
    print(events.delays_told(one for found in checks.values() for one in found))
    return Crowd(uids, checks)


def test_a_hundred_deletions_at_once_get_as_many_answers_and_none_twice(crowd: Crowd) -> None:
    assert len(set(crowd.uids)) == CROWD
    assert {uid: len(found) for uid, found in crowd.checks.items()} == dict.fromkeys(crowd.uids, 1)


def test_and_none_of_them_is_given_up(crowd: Crowd) -> None:
    answers = [events.answer(found[0]).answer for found in crowd.checks.values()]
    assert set(answers) <= events.FREE, answers
