"""Drive and watch on the simulator: the world moves when drive waits, so what is seen does not depend on the speed of a machine."""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from experiments.wiring import zombie_outside
from experiments.zombie.manifest import manifest
from experiments.zombie.ports import Watching, ZombieOutside
from experiments.zombie.recording import Ending
from experiments.zombie.scenarios import SCENARIOS, ScenarioId
from sim.clock import SimulatedClock
from sim.outside import SimulatedOutside
from sim.scenarios.builder import WorldBuilder
from sim.world.store import StateFile
from sim.zombie.log import FollowedLogApi
from sim.zombie.outside import STALLED_S
from sim.zombie.partner import DRIVE, ONLOOKER, WATCH, SimulatedPartner
from steps.contracts.errors import SourceUnavailable
from tests.unit.experiment_world import NOON
from tests.unit.test_experiment_conduct import settings

RUN, SCENARIO, NAMESPACE = "run-1", "s2", "gpu-zombie-test"
KEY = f"{RUN}.{SCENARIO}"
SLOW_S = 0.05
"""Real seconds of a slow act: long enough for a watch that does not wait to make many looks."""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    built = WorldBuilder(NOON)
    built.namespace(NAMESPACE)
    built.node("node-a", "Simulated GPU", gpus=1, memory_gib=80)
    path = tmp_path / "world.json"
    StateFile(path).create(built.world)
    return path


def outside(state: Path, role: str) -> ZombieOutside:
    variables = {"GPU_RECLAIM_SIMULATOR": str(state), "GPU_RECLAIM_NODE": "node-a"}
    if role == WATCH:
        variables["GPU_RECLAIM_NODE_POD"] = "true"
    return zombie_outside(SimulatedOutside(str(state), variables))


@pytest.fixture
def at_end() -> Iterator[ExitStack]:
    """What is undone when a test is over, pass or fail; none of its threads goes on."""
    before = set(threading.enumerate())
    with ExitStack() as stack:
        yield stack
    for thread in set(threading.enumerate()) - before:
        thread.join(20)


def driving(state: Path, at_end: ExitStack) -> tuple[ZombieOutside, SimulatedPartner]:
    """A drive that lives until the end of the test, and acts."""
    drive = outside(state, DRIVE)
    partner = drive.partner(RUN, SCENARIO)
    assert isinstance(partner, SimulatedPartner)
    at_end.callback(partner.close)
    return drive, partner


def watching(state: Path, at_end: ExitStack) -> list[float]:
    """Watch in a thread of its own. The moments of its looks, in seconds after the beginning; it is added to."""
    watch, clock, ended, looks = outside(state, WATCH), SimulatedClock(state), threading.Event(), list[float]()
    watch.partner(RUN, SCENARIO).say_ready()

    def look() -> None:
        while not ended.is_set():
            looks.append((clock.now() - NOON).total_seconds())
            watch.pace(0.12)

    threading.Thread(target=look, daemon=True).start()
    at_end.callback(ended.set)
    return looks


def test_no_time_passes_while_drive_acts_and_it_wakes_at_the_moment_it_waited_for(state: Path, at_end: ExitStack) -> None:
    clock = SimulatedClock(state)
    drive, partner = driving(state, at_end)
    began, looks = clock.now(), watching(state, at_end)
    for act in range(1, 6):
        time.sleep(SLOW_S)
        assert (clock.now() - began).total_seconds() == pytest.approx(0.2 * (act - 1))
        drive.pace(0.2)
        assert (clock.now() - began).total_seconds() == pytest.approx(0.2 * act)
    assert partner.watching() is Watching.READY
    gaps = [later - earlier for earlier, later in pairwise(looks)]
    assert gaps
    assert gaps == pytest.approx([0.12] * len(gaps)), "watch keeps its own rate"


def test_an_onlooker_holds_the_world_as_drive_does(state: Path, at_end: ExitStack) -> None:
    clock = SimulatedClock(state)
    with closing(SimulatedPartner(state, KEY, ONLOOKER)) as onlooker:
        onlooker.wait_until(NOON + timedelta(seconds=1))
        watching(state, at_end)
        drive, _ = driving(state, at_end)
        waits = threading.Thread(target=drive.pace, args=(5.0,), daemon=True)
        waits.start()
        while clock.now() < NOON + timedelta(seconds=1):
            time.sleep(0.002)
        time.sleep(SLOW_S)
        assert clock.now() == NOON + timedelta(seconds=1)
    waits.join(20)
    assert clock.now() >= NOON + timedelta(seconds=5)


def test_a_drive_that_is_gone_holds_nobody_up(state: Path) -> None:
    """Its last word was that it acts; its lock went with it."""
    SimulatedPartner(state, KEY, DRIVE).close()
    watch = outside(state, WATCH)
    watch.partner(RUN, SCENARIO)
    watch.pace(0.12)
    assert SimulatedClock(state).now() == NOON + timedelta(seconds=0.12)


class CountedTime:
    """Real time that passes by sleeping only."""

    def __init__(self) -> None:
        self.slept_s = 0.0

    def monotonic(self) -> float:
        return self.slept_s

    def sleep(self, seconds: float) -> None:
        self.slept_s += seconds


def test_a_drive_that_hangs_is_waited_for_once_and_not_at_every_look(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = CountedTime()
    monkeypatch.setattr("sim.zombie.outside.time", counted)
    watch = outside(state, WATCH)
    watch.partner(RUN, SCENARIO)
    with closing(SimulatedPartner(state, KEY, DRIVE)) as drive:
        for _ in range(3):
            watch.pace(0.12)
        assert counted.slept_s == pytest.approx(STALLED_S, abs=0.1)
        drive.wait_until(SimulatedClock(state).now())
        watch.pace(0.12)
        assert counted.slept_s == pytest.approx(2 * STALLED_S, abs=0.1), "it lived, so it is waited for again"
    assert SimulatedClock(state).now() == NOON + timedelta(seconds=0.48)


def test_what_an_earlier_drive_waited_for_is_not_the_next_ones_word(state: Path) -> None:
    with closing(SimulatedPartner(state, KEY, DRIVE)) as earlier:
        earlier.wait_until(NOON + timedelta(hours=1))
    with closing(SimulatedPartner(state, KEY, WATCH)) as watch, closing(SimulatedPartner(state, KEY, DRIVE)):
        assert watch.turns() == [None]


def test_two_who_ask_whether_a_step_lives_do_not_take_each_other_for_it(state: Path) -> None:
    SimulatedPartner(state, KEY, WATCH).close()
    asking = os.open(state.with_name(f".{KEY}.{WATCH}"), os.O_RDONLY)
    fcntl.flock(asking, fcntl.LOCK_SH)
    try:
        with closing(SimulatedPartner(state, KEY, DRIVE)) as drive:
            assert not drive.other_lives()
    finally:
        os.close(asking)


def test_a_step_that_is_asked_for_while_it_starts_starts_all_the_same(state: Path) -> None:
    SimulatedPartner(state, KEY, WATCH).close()
    asking = os.open(state.with_name(f".{KEY}.{WATCH}"), os.O_RDONLY)
    fcntl.flock(asking, fcntl.LOCK_SH)
    lets_go = threading.Timer(SLOW_S, os.close, (asking,))
    lets_go.start()
    with closing(SimulatedPartner(state, KEY, WATCH)):
        lets_go.join()


def test_a_second_step_of_the_same_kind_is_refused_with_a_sentence(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.zombie.partner.TRIES", 2)
    with closing(SimulatedPartner(state, KEY, DRIVE)), pytest.raises(SourceUnavailable, match="another drive of run-1"):
        SimulatedPartner(state, KEY, DRIVE)


def test_a_log_is_heard_to_its_end_though_its_reader_starts_late(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The container and its object are gone at once after drive went on."""
    at_once = FollowedLogApi.text

    def late(self: FollowedLogApi, path: str, *, limit_bytes: int) -> tuple[int, str]:
        time.sleep(SLOW_S)
        return at_once(self, path, limit_bytes=limit_bytes)

    monkeypatch.setattr(FollowedLogApi, "text", late)
    sessions, clock = outside(state, DRIVE).sessions(NAMESPACE), SimulatedClock(state)
    sessions.create(manifest(SCENARIOS[ScenarioId.S2], settings(node="node-a"), RUN, 1))
    clock.sleep(10.0)
    (session,) = sessions.pods()
    assert session.started
    followed = sessions.follow_log(session.facts.name)
    sessions.end(session, Ending.DELETE)
    clock.sleep(60.0)
    assert sessions.pods() == ()
    assert followed.whole(10.0) is not None


def test_a_full_look_on_the_simulator_is_through_before_the_world_moves_on(state: Path) -> None:
    done: list[bool] = []

    def slow() -> None:
        time.sleep(SLOW_S)
        done.append(True)

    outside(state, WATCH).beside(slow)
    assert done == [True]
