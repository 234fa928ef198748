"""The public function of the step `drive`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

import msgspec

from experiments.zombie.drive.conduct import Conduct
from experiments.zombie.ports import Partner, Watching, ZombieOutside
from experiments.zombie.recording import DriveRecord, Ending, Kind, Mark, Repetition, Settings, Shape, What
from experiments.zombie.scenarios import SCENARIOS, Scenario, ScenarioId
from experiments.zombie.stopping import STOPPED, stop_noticed
from steps.contracts.declaration import Inputs
from steps.contracts.document import Stamp
from steps.contracts.errors import BadInput, Exit, ReclaimError
from steps.logs import log_for

T = TypeVar("T")
WATCH_S: Final = 120.0
"""How long watch may take to start; it may have to be scheduled, and waits for the GPU to be clean."""


@dataclass
class Driving:
    """One scenario under way. done: what was recorded so far, which survives a stop."""

    inputs: Inputs
    outside: ZombieOutside
    scenario: Scenario
    settings: Settings
    stopped: Callable[[], bool]
    done: list[Repetition] = field(default_factory=list)

    def whole(self) -> str | None:
        """All repetitions. The sentence why one was not begun, if so."""
        run, clock = self.inputs.text("run"), self.outside.base.clock
        refused = wait_for_watch(self.outside.partner(run, self.scenario.id.value), self.outside, self.stopped)
        if refused is not None:
            return refused
        ready = Mark(at=clock.now(), what=What.WATCHED)
        sessions = self.outside.sessions(self.settings.namespace)
        for number in range(1, self.settings.repetitions + 1):
            if self.stopped():
                return STOPPED
            one = Conduct(self.scenario, self.settings, run, number, sessions, clock.now, self.outside.pace, self.stopped)
            repetition = one.from_a_clean_start()
            self.done.append(_with_mark(repetition, ready) if number == 1 else repetition)
            self.keep(None)
        return None

    def keep(self, failure: str | None) -> DriveRecord:
        """Write what there is so far."""
        stamp = Stamp(made_by="drive", made_at=self.outside.base.clock.now(), origin=self.outside.base.origin)
        record = DriveRecord(
            stamp=stamp, scenario=self.scenario.id, settings=self.settings, repetitions=tuple(self.done), failure=failure
        )
        self.inputs.put("record", record)
        return record


def run(inputs: Inputs, outside: ZombieOutside) -> Exit:
    """Write a DriveRecord, also where the scenario could not be run to its end: the record says why, and the exit code is 1."""
    settings, scenario = settings_of(inputs), scenario_of(inputs.text("scenario"))
    with stop_noticed() as stopped:
        driving = Driving(inputs, outside, scenario, settings, stopped)
        try:
            failure = driving.whole()
        except ReclaimError as error:  # watch could not be asked for
            failure = str(error)
        record = driving.keep(failure)
    failed = [one.failure for one in record.repetitions if one.failure]
    log_for("drive").info(
        "drive.recorded", scenario=record.scenario.value, repetitions=len(record.repetitions), failure=failure, failed=failed
    )
    return Exit.COULD_NOT if failure or failed else Exit.DONE


def settings_of(inputs: Inputs) -> Settings:
    """Raises BadInput for a word that is none of those known."""
    return Settings(
        namespace=inputs.text("namespace"),
        node=inputs.text("node"),
        repetitions=inputs.count("repetitions"),
        memory_mib=inputs.count("memory-mib"),
        grace_s=inputs.count("grace-s"),
        prestop_wait_s=inputs.count("prestop-wait-s"),
        observe_s=inputs.seconds("observe-s"),
        ending=_word(inputs, "ending", {one.value: one for one in Ending}),
        shape=_word(inputs, "worker", {one.value: one for one in Shape}),
        kind=_word(inputs, "session", {one.value: one for one in Kind}),
        backend=_word(inputs, "backend", {one: one for one in ("cuda", "simulated")}),
        image=inputs.text("image"),
        pull=_word(inputs, "pull", {one: one for one in ("Always", "IfNotPresent")}),
    )


def scenario_of(word: str) -> Scenario:
    known = {one.value: one for one in ScenarioId}
    if word not in known:
        raise BadInput(f"--scenario={word} is none; give one of {', '.join(known)}")
    return SCENARIOS[known[word]]


def _word(inputs: Inputs, name: str, known: dict[str, T]) -> T:
    word = inputs.text(name)
    if word not in known:
        raise BadInput(f"--{name}={word} is none; give one of {', '.join(known)}")
    return known[word]


def wait_for_watch(partner: Partner, outside: ZombieOutside, stopped: Callable[[], bool]) -> str | None:
    """None once watch is ready, which includes that every GPU is clean; else the sentence why nothing was begun."""
    clock = outside.base.clock
    began = clock.now()
    while (clock.now() - began).total_seconds() < WATCH_S:
        state = partner.watching()
        if state is Watching.READY:
            return None
        if stopped():
            return f"{STOPPED}, before watch was ready; nothing was begun"
        if state is Watching.ENDED:
            return "watch ended before it was ready: the node's GPUs were not clean, or could not be read; see its recording"
        outside.pace(0.25)
    return f"watch was not ready within {WATCH_S:g} s; nothing was begun"


def _with_mark(repetition: Repetition, mark: Mark) -> Repetition:
    return msgspec.structs.replace(repetition, marks=(mark, *repetition.marks))
