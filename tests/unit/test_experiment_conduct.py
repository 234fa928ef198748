"""One session from creation to end: the order of the acts, and that nothing is left behind however it fails."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from experiments.zombie.drive.conduct import Conduct
from experiments.zombie.drive.declaration import STEP
from experiments.zombie.ports import Executed, SessionSeen
from experiments.zombie.recording import Ending, Kind, Settings, Shape, What
from experiments.zombie.scenarios import SCENARIOS, ScenarioId
from steps.contracts.cluster_facts import Phase, PodFacts
from steps.contracts.declaration import Inputs
from steps.contracts.document import Sample
from steps.contracts.errors import BadInput, SourceUnavailable
from steps.contracts.ports import Rejected, Rejection
from tests.unit.experiment_world import NOON

OBSERVED: dict[str, Any] = {
    "at": NOON.isoformat(),
    "pid1": None,
    "tree": [],
    "zombies": [],
    "orphans": [],
    "gpus": {"problem": None, "gpus": []},
    "holders": [],
    "verdicts": [],
}
ACTS = [
    What.CREATE,
    What.RUNNING,
    What.SPAWN,
    What.HOLDS,
    What.OBSERVED,
    What.KILL,
    What.OBSERVED,
    What.RESPAWN,
    What.HOLDS_AGAIN,
    What.OBSERVED,
    What.DELETE,
    What.TERMINATING,
    What.GONE,
    What.CLEANED,
]


def settings(**changes: Any) -> Settings:
    return Settings(
        **{
            "namespace": "gpu-zombie-test",
            "node": "node-a",
            "repetitions": 1,
            "memory_mib": 2048,
            "grace_s": 30,
            "prestop_wait_s": 20,
            "observe_s": 3.0,
            "ending": Ending.DELETE,
            "shape": Shape.PLAIN,
            "kind": Kind.POD,
            "backend": "simulated",
            "image": "docker.io/gpureclaim/zombie",
            "pull": "Always",
            **changes,
        }
    )


def pod(name: str, uid: str, labels: Mapping[str, str], *, made_by: str | None = None) -> SessionSeen:
    facts = PodFacts(
        uid=uid,
        name=name,
        namespace="gpu-zombie-test",
        node="node-a",
        phase=Phase.RUNNING,
        created_at=NOON,
        started_at=NOON,
        deletion_requested_at=None,
        grace_s=30,
        gpus_requested=1,
        containers=(),
    )
    return SessionSeen(facts=facts, started=True, image_id="sha256:1", made_by=made_by, labels=dict(labels), problem=None)


@dataclass
class FakeCluster:
    """Sessions over a clock that costs nothing.

    fails: this act raises, once. interrupts: the run is stopped during this act. successor: what a controller makes again once
    the pod is gone. stays: the object never goes. last_words: what no poll of the log hears any more; None: it is not heard to its
    end.
    """

    now_utc: datetime = NOON
    alive: dict[str, SessionSeen] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    fails: str = ""
    interrupts: str = ""
    stopped: bool = False
    refuses: Rejected | None = None
    successor: SessionSeen | None = None
    stays: bool = False
    starts: bool = True
    ends_at: dict[str, datetime] = field(default_factory=dict)
    text: str = ""
    last_words: str | None = ""
    pids: int = 6

    def now(self) -> datetime:
        return self.now_utc

    def pace(self, seconds: float) -> None:
        self.now_utc += timedelta(seconds=seconds)
        for name, ends in list(self.ends_at.items()):
            if self.now_utc >= ends and not self.stays:
                self.alive.pop(name)
                del self.ends_at[name]
                if self.successor is not None:
                    self.alive[self.successor.facts.name] = self.successor

    def create(self, manifest: Mapping[str, Any]) -> Rejected | None:
        self._act("create")
        name = manifest["metadata"]["name"]
        self.alive[name] = replace_started(pod(name, f"uid-{name}", manifest["metadata"]["labels"]), self.starts)
        return None

    def pods(self) -> tuple[SessionSeen, ...]:
        return tuple(self.alive.values())

    def pod(self, name: str) -> SessionSeen | None:
        return self.alive.get(name)

    def execute(self, pod: str, argv: Sequence[str], *, timeout_s: float) -> Executed:
        word = next(word for word in ("parent", "observe", "kill") if word in " ".join(argv))
        self._act(word)
        if word == "parent":
            self.pids += 1
            self.text += json.dumps({"at": NOON.isoformat(), "event": "gpu_worker.holding", "pid": self.pids}) + "\n"
            return Executed(code=0, stdout=json.dumps({"event": "parent.spawned", "worker": self.pids}), stderr="")
        return Executed(code=0, stdout=json.dumps(OBSERVED) if word == "observe" else "", stderr="")

    def log(self, pod: str) -> Sample[str]:
        return Sample.measured(self.text) if pod in self.alive else Sample.error("HTTP 404")

    def follow_log(self, pod: str) -> "FakeCluster":
        return self

    def whole(self, within_s: float) -> Sample[str] | None:
        return None if self.last_words is None else Sample.measured(self.text + self.last_words)

    def end(self, pod: SessionSeen, how: Ending) -> Rejected | None:
        self._act("end")
        if self.refuses is not None:
            refused, self.refuses = self.refuses, None
            return refused
        name = pod.facts.name
        self.deleted.append(pod.facts.uid)
        leaving = replace_deleting(self.alive[name], self.now_utc)
        self.alive[name] = leaving
        self.ends_at[name] = self.now_utc + timedelta(seconds=2)
        return None

    def remove_deployment(self, name: str) -> Rejected | None:
        self._act("remove")
        return None

    def _act(self, word: str) -> None:
        if self.interrupts == word:
            self.stopped = True
        if self.fails == word:
            self.fails = ""
            raise SourceUnavailable(f"{word} failed")


def replace_started(seen: SessionSeen, started: bool) -> SessionSeen:
    return SessionSeen(
        facts=seen.facts,
        started=started,
        image_id=seen.image_id,
        made_by=seen.made_by,
        labels=seen.labels,
        problem=None if started else "ErrImagePull: no such image",
    )


def replace_deleting(seen: SessionSeen, at: datetime) -> SessionSeen:
    return msgspec.structs.replace(seen, facts=msgspec.structs.replace(seen.facts, deletion_requested_at=at))


def conduct(cluster: FakeCluster, **changes: Any) -> Conduct:
    return Conduct(
        SCENARIOS[ScenarioId.S2], settings(**changes), "run-1", 1, cluster, cluster.now, cluster.pace, lambda: cluster.stopped
    )


def test_the_acts_follow_the_seeds_cycle_and_end_with_a_clean_namespace() -> None:
    cluster = FakeCluster()
    done = conduct(cluster).whole()
    assert [mark.what for mark in done.marks] == ACTS
    assert (done.failure, cluster.alive, done.killed_pid, done.orphan_pid) == (None, {}, 7, 8)


@pytest.mark.parametrize("act", ["parent", "observe", "kill", "end"])
def test_whatever_act_fails_is_said_and_the_session_is_removed(act: str) -> None:
    cluster = FakeCluster(fails=act)
    done = conduct(cluster).whole()
    assert (done.failure, cluster.alive) == (f"{act} failed", {})


@pytest.mark.parametrize("act", ["parent", "observe", "kill", "end"])
def test_a_run_that_is_stopped_half_way_removes_the_session_and_begins_no_other(act: str) -> None:
    cluster = FakeCluster(interrupts=act)
    done = conduct(cluster).whole()
    assert (cluster.stopped, cluster.alive) == (True, {})
    assert done.failure is not None
    assert "stopped half-way" in done.failure


def test_a_session_that_does_not_start_says_why() -> None:
    done = conduct(FakeCluster(starts=False)).whole()
    assert done.failure is not None
    assert "ErrImagePull: no such image" in done.failure


def test_a_refused_deletion_is_a_sentence_and_no_traceback() -> None:
    cluster = FakeCluster(refuses=Rejected(rejection=Rejection.FORBIDDEN, detail="a policy says no"))
    done = conduct(cluster).whole()
    assert done.failure is not None
    assert "a policy says no" in done.failure
    assert cluster.alive == {}


def test_an_object_that_outlives_its_grace_by_far_is_given_up_on() -> None:
    done = conduct(FakeCluster(stays=True)).whole()
    assert done.failure is not None
    assert "still there" in done.failure


def test_a_pod_that_somebody_makes_again_is_recognised_and_not_fought() -> None:
    labels = {"app": "gpu-zombie-tini", "gpu-reclaim.dev/experiment": "zombie"}
    successor = pod("gpu-zombie-tini", "uid-from-git", labels)
    cluster = FakeCluster(successor=successor)
    done = conduct(cluster).whole()
    assert [("uid-from-git" in words) for words in done.recreated] == [True]
    assert "uid-from-git" not in cluster.deleted
    assert done.failure is None


def test_a_pod_without_the_experiments_label_is_never_touched() -> None:
    cluster = FakeCluster(alive={"somebody-elses": pod("somebody-elses", "uid-x", {"app": "other"})})
    conduct(cluster).whole()
    assert "uid-x" not in cluster.deleted
    assert "somebody-elses" in cluster.alive


def test_what_an_earlier_run_left_is_removed_before_anything_begins() -> None:
    left = pod("gpu-zombie-nofix", "uid-left", {"gpu-reclaim.dev/experiment": "zombie", "gpu-reclaim.dev/run": "run-0"})
    cluster = FakeCluster(alive={"gpu-zombie-nofix": left})
    assert conduct(cluster).clean_up() is None
    assert cluster.deleted == ["uid-left"]


def test_the_log_is_kept_although_it_goes_with_the_pod() -> None:
    done = conduct(FakeCluster()).whole()
    assert "gpu_worker.holding" in (done.log.known() or "")


def test_the_last_words_are_heard_although_they_go_with_the_pod() -> None:
    done = conduct(FakeCluster(last_words="the very last\n")).whole()
    assert ((done.log.known() or "").endswith("the very last\n"), done.log_whole) == (True, True)


def test_a_log_that_was_not_heard_to_its_end_is_kept_and_not_called_whole() -> None:
    done = conduct(FakeCluster(last_words=None)).whole()
    assert ("gpu_worker.holding" in (done.log.known() or ""), done.log_whole) == (True, False)


@pytest.mark.parametrize("act", ["parent", "observe", "kill", "end"])
def test_where_it_was_broken_off_is_marked_before_the_clean_up(act: str) -> None:
    marks = conduct(FakeCluster(interrupts=act)).whole().marks
    assert [mark.what for mark in marks][-2:] == [What.BROKEN_OFF, What.CLEANED]


def test_a_stop_during_the_last_clean_up_neither_leaves_a_pod_nor_spoils_what_was_measured() -> None:
    cluster = FakeCluster(interrupts="remove")
    done = conduct(cluster, kind=Kind.DEPLOYMENT).whole()
    assert (cluster.stopped, done.failure, done.marks[-1].what, cluster.alive) == (True, None, What.CLEANED, {})


def test_every_state_is_watched_for_as_long_as_was_asked() -> None:
    cluster = FakeCluster()
    marks = {mark.what: mark.at for mark in conduct(cluster, observe_s=5.0).whole().marks}
    waits: Callable[[What, What], float] = lambda one, other: (marks[other] - marks[one]).total_seconds()  # noqa: E731
    assert waits(What.HOLDS, What.KILL) >= 5
    assert waits(What.KILL, What.RESPAWN) >= 5
    assert waits(What.HOLDS_AGAIN, What.DELETE) >= 5


GIVEN = {"run": "zombie", "scenario": "s2", "node": "gpu-1"}


@pytest.mark.parametrize(
    ("name", "value", "limits"),
    [
        ("memory-mib", "0", "from 1 to 524288"),
        ("memory-mib", "524289", "from 1 to 524288"),
        ("grace-s", "0", "from 1 to 900"),
        ("grace-s", "901", "from 1 to 900"),
    ],
)
def test_a_size_or_grace_that_cannot_be_measured_is_refused_with_its_limits(name: str, value: str, limits: str) -> None:
    with pytest.raises(BadInput, match=f"--{name} got .*{limits}"):
        Inputs(STEP, {**GIVEN, name: value}, {})


@pytest.mark.parametrize(("name", "value"), [("memory-mib", "1"), ("memory-mib", "524288"), ("grace-s", "1"), ("grace-s", "900")])
def test_the_limits_themselves_are_taken(name: str, value: str) -> None:
    assert Inputs(STEP, {**GIVEN, name: value}, {}).text(name) == value
