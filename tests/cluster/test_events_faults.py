"""Deletions while a part of the way from event to verdict is down: what comes late, what is lost, and what the sweep then finds.

Repeated by `make cluster-test-full` only. What a source cannot hand to the bus is lost by design (docs/events.md): some of the pods
must be verified all the same, and some may be missed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import pytest

from steps.contracts.continuity import Since
from steps.contracts.release import ReleaseVerdict
from steps.contracts.traced import GpuClass, Traced
from tests.cluster import events_scene as events
from tests.cluster import scene
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab
from tests.cluster.lab.processes import Started

pytestmark = [pytest.mark.cluster, pytest.mark.repeat]

EACH: Final = 4
HALF: Final = EACH // 2
BUS_DOWN_S: Final = 10.0
CONTROLLER_DOWN_S: Final = 60.0
SENSOR: Final = "sensor-name=pod-deleted"
SOURCE: Final = "eventsource-name=pods"
RECONNECTED: Final = "reconnected to eventbus successfully"


@dataclass(frozen=True, slots=True)
class Fault:
    """strike: deletes the pods of these names around the fault. missed: how many of them, the last ones, may go unnoticed."""

    strike: Callable[[Lab, Sequence[str]], None]
    missed: int = 0


def _sensor_ends_between_event_and_trigger(lab: Lab, names: Sequence[str]) -> None:
    """It stands still while the events come, and is killed before it can go on: another one takes its place."""
    with events.standing_still(lab, SENSOR) as stopped:
        _delete(lab, names)
        events.settle(2)
        _kill(lab, SENSOR, stopped)
    events.wait_ready(lab, "pod-deleted")


def _bus_restarts(lab: Lab, names: Sequence[str]) -> None:
    """The last go while it is down, the first when it is back and the source has noticed."""
    with lab.without("nats"):
        _delete(lab, names[HALF:])
        events.settle(BUS_DOWN_S)
    lab.kubectl.wait("the source has its bus again", lambda: RECONNECTED in events.log_of(lab, SOURCE), within_s=60)
    _delete(lab, names[:HALF])


def _controller_is_down(lab: Lab, names: Sequence[str]) -> None:
    with lab.without("workflow-controller"):
        _delete(lab, names)
        events.settle(CONTROLLER_DOWN_S)


def _source_restarts_half_way(lab: Lab, names: Sequence[str]) -> None:
    """The first go while it watches; then it stands still, the last go, and it is killed before it hears of them."""
    _delete(lab, names[:HALF])
    events.settle(2)
    with events.standing_still(lab, SOURCE) as stopped:
        _delete(lab, names[HALF:])
        _kill(lab, SOURCE, stopped)
    events.wait_ready(lab, "pods")


FAULTS: Final = {
    "sensor": Fault(_sensor_ends_between_event_and_trigger),
    "bus": Fault(_bus_restarts, missed=HALF),
    "controller": Fault(_controller_is_down),
    "source": Fault(_source_restarts_half_way, missed=EACH - HALF),
}


def _delete(lab: Lab, names: Sequence[str]) -> None:
    events.delete_pods(lab, *names)
    events.wait_gone(lab, names)


def _kill(lab: Lab, selector: str, processes: Sequence[Started]) -> None:
    lab.kubectl("delete", "pod", f"--selector={selector}", f"--namespace={lab.namespace}", "--grace-period=0", "--force")
    lab.kubectl.wait("its processes have ended", lambda: not any(one.alive() for one in processes), within_s=30)


@dataclass(frozen=True, slots=True)
class Struck:
    """One fault's pods by name, the sweep that saw them, when the fault began and was over, and the next sweep. checks: of each
    uid, in the end."""

    uids: dict[str, str]
    checks: dict[str, list[Json]]
    before: scene.Run
    began: datetime
    over: datetime
    after: scene.Run

    @property
    def since(self) -> Since:
        """What the next sweep says of the time in between."""
        return self.after.document("since.json", Since)

    def counts(self, fault: str) -> tuple[list[int], list[int]]:
        """How many checks each pod got: of those that must be verified, and of those that may be missed."""
        counts = [len(self.checks[uid]) for uid in self.uids.values()]
        certain = EACH - FAULTS[fault].missed
        return counts[:certain], counts[certain:]


@pytest.fixture(scope="module")
def aftermath(installed: Lab) -> dict[str, Struck]:
    """One fault after the other. Before each a sweep sees the pods that are about to go, and is the one after the last fault's."""
    lab = installed
    scene.make_room(lab)
    events.install(lab)
    uids: dict[str, dict[str, str]] = {}
    times: dict[str, tuple[datetime, datetime]] = {}
    sweeps = []
    with events.gpus(lab, EACH):
        for kind, fault in FAULTS.items():
            names = [f"{kind}-{number}" for number in range(EACH)]
            started = events.start_pods(lab, [events.session_pod(name) for name in names])
            uids[kind] = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in started}
            sweeps.append(scene.sweep(lab, dry_run=True))
            began = datetime.now(UTC)
            fault.strike(lab, names)
            times[kind] = (began, datetime.now(UTC))
            events.wait_checks(lab, [uids[kind][name] for name in names[: EACH - fault.missed]], within_s=180)
        events.settle(15)
        sweeps.append(scene.sweep(lab, dry_run=True))
    found = {}
    for kind, before, after in zip(FAULTS, sweeps, sweeps[1:], strict=False):
        checks = {uid: events.checks_of(lab, uid) for uid in uids[kind].values()}
        found[kind] = Struck(uids[kind], checks, before, *times[kind], after)
        print(kind, found[kind].counts(kind), events.delays_told(one for made in checks.values() for one in made))
    return found


@pytest.mark.parametrize("fault", FAULTS)
def test_what_the_source_heard_of_is_verified_once_whatever_was_down(aftermath: dict[str, Struck], fault: str) -> None:
    certain, _ = aftermath[fault].counts(fault)
    assert certain == [1] * (EACH - FAULTS[fault].missed)


@pytest.mark.parametrize("fault", FAULTS)
def test_what_it_could_not_hand_on_is_never_verified_twice(aftermath: dict[str, Struck], fault: str) -> None:
    _, chance = aftermath[fault].counts(fault)
    assert [count for count in chance if count > 1] == []


@pytest.mark.parametrize("fault", FAULTS)
def test_the_memory_of_every_pod_that_was_verified_is_back(aftermath: dict[str, Struck], fault: str) -> None:
    checks = [events.answer(one) for made in aftermath[fault].checks.values() for one in made]
    assert {check.answer for check in checks} <= events.FREE, [check.sentence for check in checks]


def test_the_next_sweep_accounts_for_every_byte_that_is_held(aftermath: dict[str, Struck]) -> None:
    sweep = aftermath["source"].after
    traced = sweep.document("shard-0/traced.json", Traced)
    headlines = {gpu.uuid: gpu.headline for node in traced.nodes for gpu in node.gpus}
    assert len(headlines) == EACH
    assert set(headlines.values()) == {GpuClass.BASELINE}, headlines
    assert sweep.phase == "Succeeded", scene.phases(sweep.workflow)


@pytest.mark.parametrize("fault", FAULTS)
def test_and_for_every_pod_that_an_earlier_sweep_saw_by_name(aftermath: dict[str, Struck], fault: str) -> None:
    struck = aftermath[fault]
    departed = struck.since.departed
    assert sorted((one.pod.name, one.pod.uid) for one in departed) == sorted(struck.uids.items())
    assert {one.pod.answer for one in departed} <= {ReleaseVerdict.RETURNED, ReleaseVerdict.TAKEN_OVER}, struck.since.sentence
    assert (struck.since.earlier_runs, struck.since.gaps) == ((struck.before.name,), ())


@pytest.mark.parametrize("fault", FAULTS)
def test_it_names_the_check_that_watched_each_pod_or_says_that_none_did(aftermath: dict[str, Struck], fault: str) -> None:
    struck = aftermath[fault]
    for one in struck.since.departed:
        made = {check["metadata"]["name"] for check in struck.checks[one.pod.uid]}
        assert {watch.run for watch in one.watched} == made
        assert all(watch.answer in events.FREE for watch in one.watched)
        assert ("no evidence of a release check is there" in one.sentence) is not bool(made), one.sentence


@pytest.mark.parametrize("fault", FAULTS)
def test_it_states_the_time_in_which_no_sweep_looked_and_the_fault_lies_in_it(aftermath: dict[str, Struck], fault: str) -> None:
    struck = aftermath[fault]
    (window,) = struck.since.nodes
    assert window.earlier_run == struck.before.name
    assert window.unwatched_from is not None
    assert window.unwatched_until is not None
    assert window.unwatched_from < struck.began < struck.over < window.unwatched_until
