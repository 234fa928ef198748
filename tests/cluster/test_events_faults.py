"""Deletions while a part of the way from event to verdict is down: what comes late, what is lost, and what the sweep then finds.

Repeated by `make cluster-test-full` only. What an event source misses while it is down is lost by design (docs/events.md).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from steps.contracts.traced import GpuClass, Traced
from tests.cluster import events_scene as events
from tests.cluster import scene
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab

pytestmark = [pytest.mark.cluster, pytest.mark.repeat]

EACH = 4
CROWD = 100
CONTROLLER_DOWN_S = 60.0


@dataclass(frozen=True, slots=True)
class Aftermath:
    """checks: by uid. sweep: the one after all of it."""

    uids: dict[str, tuple[str, ...]]
    checks: dict[str, list[Json]]
    sweep: scene.Run

    def counts(self, fault: str) -> list[int]:
        return [len(self.checks[uid]) for uid in self.uids[fault]]


@pytest.fixture(scope="module")
def aftermath(installed: Lab) -> Aftermath:
    lab = installed
    events.install(lab)
    faults: dict[str, Callable[[list[str]], None]] = {
        "sensor": lambda names: _sensor_restarted(lab, names),
        "bus": lambda names: _bus_down(lab, names),
        "controller": lambda names: _controller_down(lab, names),
        "source": lambda names: _source_restarted(lab, names),
    }
    uids: dict[str, tuple[str, ...]] = {}
    with events.gpus(lab, EACH):
        for fault, strike in faults.items():
            pods = events.start_pods(lab, [events.session_pod(f"{fault}-{number}") for number in range(EACH)])
            uids[fault] = tuple(pod["metadata"]["uid"] for pod in pods)
            strike([pod["metadata"]["name"] for pod in pods])
            if fault != "source":
                events.wait_checks(lab, uids[fault], within_s=180)
            _wait_gone(lab, pods)
        events.settle(20)
        sweep = scene.sweep(lab, dry_run=True)
        checks = {uid: events.checks_of(lab, uid) for group in uids.values() for uid in group}
    return Aftermath(uids, checks, sweep)


def _wait_gone(lab: Lab, pods: list[Json]) -> None:
    names = {pod["metadata"]["name"] for pod in pods}

    def gone() -> bool:
        return not any(pod["metadata"]["name"] in names for pod in lab.kubectl.list("pod", scene.TEAM))

    lab.kubectl.wait("the deleted pods are gone", gone, within_s=120)


def _sensor_restarted(lab: Lab, names: list[str]) -> None:
    """The event comes while the sensor's pod is being replaced."""
    lab.kubectl("delete", "pod", "--selector=sensor-name=pod-deleted", f"--namespace={lab.namespace}", "--wait=false")
    events.delete_pods(lab, *names)
    events.wait_ready(lab, "pod-deleted")


def _bus_down(lab: Lab, names: list[str]) -> None:
    """The bus restarts before the event: source and sensor connect again by themselves."""
    with lab.without("nats"):
        time.sleep(3)
    time.sleep(8)
    events.delete_pods(lab, *names)


def _controller_down(lab: Lab, names: list[str]) -> None:
    with lab.without("workflow-controller"):
        events.delete_pods(lab, *names)
        time.sleep(CONTROLLER_DOWN_S)


def _source_restarted(lab: Lab, names: list[str]) -> None:
    """Half of the pods go while the source watches, half while it is being replaced."""
    events.delete_pods(lab, *names[: EACH // 2])
    time.sleep(4)
    lab.kubectl("delete", "pod", "--selector=eventsource-name=pods", f"--namespace={lab.namespace}", "--grace-period=0", "--force")
    events.delete_pods(lab, *names[EACH // 2 :], force=True)
    events.wait_ready(lab, "pods")


@pytest.mark.parametrize("fault", ["sensor", "bus", "controller"])
def test_a_deletion_is_verified_once_all_the_same(aftermath: Aftermath, fault: str) -> None:
    assert aftermath.counts(fault) == [1] * EACH


def test_a_restarted_source_doubles_nothing_and_misses_at_most_what_went_while_it_was_down(aftermath: Aftermath) -> None:
    counts = aftermath.counts("source")
    assert max(counts) == 1
    assert sum(counts) >= EACH // 2


def test_the_next_sweep_accounts_for_every_byte_that_is_held(aftermath: Aftermath) -> None:
    traced = aftermath.sweep.document("shard-0/traced.json", Traced)
    headlines = {gpu.uuid: gpu.headline for node in traced.nodes for gpu in node.gpus}
    assert len(headlines) == EACH
    assert set(headlines.values()) == {GpuClass.BASELINE}, headlines
    assert aftermath.sweep.phase == "Succeeded", scene.phases(aftermath.sweep.workflow)


@pytest.mark.timeout(1800)
def test_a_hundred_deletions_at_once_get_as_many_answers_and_none_twice(installed: Lab) -> None:
    """Pods that had a GPU and have ended: as many as a node can have at once would be five."""
    lab, names = installed, [f"hundred-{number}" for number in range(CROWD)]
    events.install(lab)
    with events.gpus(lab, events.MOST_GPUS):
        uids = [pod["metadata"]["uid"] for pod in events.finished_pods(lab, *names, within_s=600)]
        events.delete_pods(lab, *names)
        checks = events.wait_checks(lab, uids, within_s=900)
    assert {uid: len(found) for uid, found in checks.items()} == dict.fromkeys(uids, 1)
