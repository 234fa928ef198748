"""One session from its creation to its end, act by act. What happens is recorded, never judged; whatever fails, it cleans up."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from experiments.zombie.drive.following import Following
from experiments.zombie.drive.words import happened, spoken
from experiments.zombie.manifest import EXPERIMENT, OURS, RUN, SESSION, manifest, session_name
from experiments.zombie.observation import Observation
from experiments.zombie.ports import Sessions, SessionSeen
from experiments.zombie.recording import Ending, Kind, Mark, Repetition, Settings, What
from experiments.zombie.scenarios import Scenario
from experiments.zombie.stopping import STOPPED, Interrupted
from steps.contracts.cluster_facts import PodFacts
from steps.contracts.document import Sample, decode
from steps.contracts.errors import ReclaimError, SourceUnavailable

POLL_S: Final = 0.2
START_S: Final = 180.0
HOLD_S: Final = 60.0
EXEC_S: Final = 30.0
BEYOND_GRACE_S: Final = 60.0
"""A pod whose object is still there so long after its grace is given up on; the report says so."""
RECREATION_S: Final = 2.0
"""How long after the end of the object somebody has to make it again before we say nobody did."""
LEFT_OVER_S: Final = 90.0
GIVEN_UP_S: Final = 2.0
LAST_WORDS_S: Final = 10.0
"""How long the rest of the log may take once the object is gone: after a deletion by force the container ends later."""


@dataclass
class Conduct:
    """One repetition under way. pace: lets time pass. stopped: whether the run was stopped, which ends all but a clean-up."""

    scenario: Scenario
    settings: Settings
    run: str
    number: int
    sessions: Sessions
    now: Callable[[], datetime]
    pace: Callable[[float], None]
    stopped: Callable[[], bool]
    marks: list[Mark] = field(default_factory=list)
    pods: dict[str, PodFacts] = field(default_factory=dict)
    observations: dict[What, Observation] = field(default_factory=dict)
    log: Sample[str] = field(default_factory=lambda: Sample.absent("the session never ran"))
    log_whole: bool = False
    image_id: str | None = None
    pod_uid: str | None = None
    killed_pid: int | None = None
    orphan_pid: int | None = None
    recreated: tuple[str, ...] = ()
    cleaning: bool = False
    given_up: bool = False
    """The object outlived its grace by far: waiting for it once more proves nothing."""

    def whole(self) -> Repetition:
        """Everything, and the clean-up, whatever fails in between."""
        failure: str | None = None
        try:
            self._acts()
        except ReclaimError as error:
            failure = str(error)
        if failure is not None:
            self.mark(What.BROKEN_OFF, failure)
        problem = self.clean_up()
        return self._recorded("; ".join(one for one in (failure, problem) if one) or None)

    def from_a_clean_start(self) -> Repetition:
        """whole(), after what an earlier session left was removed. What could not be removed is why it was not begun."""
        problem = self.clean_up()
        self.marks.clear()
        return self.whole() if problem is None else self._recorded(problem)

    def clean_up(self) -> str | None:
        """Remove what this experiment made, this run's or an earlier one's. Returns what could not be removed, as a sentence.

        A pod that somebody else made again is left alone: fighting a controller proves nothing (GitOps with self-heal).
        """
        self.cleaning = True
        try:
            return self._cleaned_up()
        finally:
            self.cleaning = False

    def mark(self, what: What, detail: str = "") -> None:
        self.marks.append(Mark(at=self.now(), what=what, detail=detail))

    def _cleaned_up(self) -> str | None:
        try:
            if self.settings.kind is Kind.DEPLOYMENT:
                self.sessions.remove_deployment(self.scenario.pod)
            limit_s = GIVEN_UP_S if self.given_up else LEFT_OVER_S + self.settings.grace_s
            gone = self._until(limit_s, self._remove_ours)
        except ReclaimError as error:
            return f"cleaning up failed: {error}"
        if not gone:
            return (
                f"pods of the session are still there {limit_s:g} s after they were to go; see namespace {self.settings.namespace}"
            )
        self.mark(What.CLEANED)
        return None

    def _acts(self) -> None:
        session = self._create()
        self.killed_pid = self._spawn(session, What.SPAWN, What.HOLDS)
        self.observations[What.HOLDS] = self._observe(session)
        self._kill(session, self.killed_pid)
        self._watch_on()
        self.observations[What.KILL] = self._observe(session)
        self.orphan_pid = self._spawn(session, What.RESPAWN, What.HOLDS_AGAIN)
        self.observations[What.DELETE] = self._observe(session)
        self._end(session)

    def _create(self) -> SessionSeen:
        self.mark(What.CREATE)
        rejected = self.sessions.create(manifest(self.scenario, self.settings, self.run, self.number))
        if rejected is not None:
            raise SourceUnavailable(
                f"the session could not be created ({rejected.rejection.value}): {rejected.detail}; "
                f"look at namespace {self.settings.namespace}"
            )
        seen: list[SessionSeen] = []

        def running() -> bool:
            seen[:] = [one for one in self._mine() if one.started]
            return bool(seen)

        if not self._until(START_S, running):
            why = next((one.problem for one in self._mine() if one.problem), "it says nothing")
            raise SourceUnavailable(f"the session did not start within {START_S:g} s: {why}")
        session = seen[0]
        self._know(session)
        self.pod_uid, self.image_id = session.facts.uid, session.image_id
        self.mark(What.RUNNING, f"uid {session.facts.uid}")
        return session

    def _spawn(self, session: SessionSeen, started: What, holds: What) -> int:
        """Run the parent by exec, and wait until its worker says that it holds the memory. The PID inside the container."""
        argv = ["python3", "/opt/scenario/parent.py", f"/opt/scenario/{self.scenario.worker}", f"--mib={self.settings.memory_mib}"]
        began = self.now()
        told = self._execute(session, [*argv, f"--shape={self.settings.shape.value}"])
        worker = spoken(told, "parent.spawned", "worker")
        if not isinstance(worker, int):
            raise SourceUnavailable(f"the parent did not say which worker it started: {told[:200]!r}; look at the scenario's image")
        self.marks.append(Mark(at=began, what=started, detail=f"PID {worker} in the container"))

        def holding() -> bool:
            self.log = self.sessions.log(session.facts.name)
            text = self.log.known()
            return text is not None and happened(text, ".holding", worker)

        if not self._until(HOLD_S, holding):
            raise SourceUnavailable(f"worker {worker} held no memory within {HOLD_S:g} s; its last words: {self._last_words()}")
        self.mark(holds)
        self._watch_on()
        return worker

    def _watch_on(self) -> None:
        """Leave things as they are for the time that each state is watched."""
        self._until(self.settings.observe_s, lambda: False)

    def _observe(self, session: SessionSeen) -> Observation:
        told = self._execute(session, ["python3", "/opt/scenario/observe.py"])
        self.mark(What.OBSERVED)
        return decode(told, Observation, "what observe.py said in the container")

    def _kill(self, session: SessionSeen, worker: int) -> None:
        self.mark(What.KILL, f"PID {worker} in the container")
        self._execute(session, ["sh", "-c", f"kill -9 {worker}"])

    def _end(self, session: SessionSeen) -> None:
        """Delete in the way that was chosen, and follow the object until it is gone."""
        spoken_log = self.sessions.follow_log(session.facts.name)
        self.mark(What.DELETE, self.settings.ending.value)
        rejected = self.sessions.end(session, _ending(self.settings.ending))
        if rejected is not None:
            raise SourceUnavailable(f"the deletion was refused ({rejected.rejection.value}): {rejected.detail}")
        following = Following(self.sessions, session, self.now)
        gone = self._until(self.settings.grace_s + BEYOND_GRACE_S, following.look)
        self._keep_log(following.log, spoken_log.whole(LAST_WORDS_S if gone else 0.0))
        for facts in following.seen:
            self.pods[facts.uid] = facts
        self.marks.extend(following.marks)
        if not gone:
            self.given_up = True
            raise SourceUnavailable(
                f"the object is still there {BEYOND_GRACE_S:g} s after its grace of {self.settings.grace_s} s; "
                "look at the kubelet of its node, and at the processes that the report lists"
            )
        self._look_for_successors(session)

    def _keep_log(self, polled: Sample[str], whole: Sample[str] | None) -> None:
        """The log that was heard to its end; else what was last read of it, which may lack the last words."""
        if whole is not None and whole.known() is not None:
            self.log, self.log_whole = whole, True
        elif polled.known() is not None:
            self.log = polled

    def _look_for_successors(self, session: SessionSeen) -> None:
        """A controller may make the pod again: same name or owner, another uid."""

        def found() -> bool:
            others = [one for one in self.sessions.pods() if _succeeds(one, session)]
            self.recreated = tuple(
                f"pod {one.facts.name} (uid {one.facts.uid}), by {one.made_by or 'nobody the pod names'}" for one in others
            )
            return bool(others)

        if self._until(RECREATION_S, found):
            self.mark(What.RECREATED, "; ".join(self.recreated))

    def _mine(self) -> list[SessionSeen]:
        """Pods of this session, by its label and the run's."""
        wanted = {RUN: self.run, SESSION: session_name(self.scenario, self.number)}
        return [one for one in self.sessions.pods() if wanted.items() <= dict(one.labels).items()]

    def _remove_ours(self) -> bool:
        """True once nothing of ours is left. Pods on their way out are waited for; a successor is not ours."""
        ours = [one for one in self.sessions.pods() if self._is_ours(one)]
        for one in ours:
            if one.facts.deletion_requested_at is None and not (self.settings.kind is Kind.DEPLOYMENT and one.made_by):
                self.sessions.end(one, Ending.DELETE)
        return not ours

    def _is_ours(self, one: SessionSeen) -> bool:
        made_again = self.pod_uid is not None and one.facts.uid != self.pod_uid and bool(self.recreated)
        return one.labels.get(EXPERIMENT) == OURS and not (made_again and self.settings.kind is Kind.POD)

    def _know(self, session: SessionSeen) -> None:
        self.pods[session.facts.uid] = session.facts

    def _execute(self, session: SessionSeen, argv: list[str]) -> str:
        done = self.sessions.execute(session.facts.name, argv, timeout_s=EXEC_S)
        if done.code not in (0, None):
            raise SourceUnavailable(
                f"{argv[-1]} ended with code {done.code} in the container: {(done.stderr or done.stdout)[:300]}"
            )
        return done.stdout

    def _until(self, limit_s: float, ready: Callable[[], bool]) -> bool:
        """Ask until ready() holds, at most so long. Whether it came to hold. Raises Interrupted."""
        began = self.now()
        while not ready():
            left_s = limit_s - (self.now() - began).total_seconds()
            if left_s <= 0:
                return False
            if self.stopped() and not self.cleaning:
                raise Interrupted(STOPPED)
            self.pace(min(POLL_S, left_s))
        return True

    def _last_words(self) -> str:
        text = self.log.known()
        return self.log.reason or "none" if text is None else text[-300:] or "none"

    def _recorded(self, failure: str | None) -> Repetition:
        return Repetition(
            number=self.number,
            pod_uid=self.pod_uid,
            pods=tuple(self.pods.values()),
            image_id=self.image_id,
            marks=tuple(self.marks),
            killed_pid=self.killed_pid,
            orphan_pid=self.orphan_pid,
            after_spawn=self.observations.get(What.HOLDS),
            after_kill=self.observations.get(What.KILL),
            before_delete=self.observations.get(What.DELETE),
            log=self.log,
            log_whole=self.log_whole,
            recreated=self.recreated,
            failure=failure,
        )


def _ending(chosen: Ending) -> Ending:
    """sigkill is an ordinary deletion of a session whose PID 1 ignores SIGTERM."""
    return Ending.DELETE if chosen is Ending.SIGKILL else chosen


def _succeeds(one: SessionSeen, session: SessionSeen) -> bool:
    same = one.facts.name == session.facts.name or (session.made_by is not None and one.made_by == session.made_by)
    return same and one.facts.uid != session.facts.uid
