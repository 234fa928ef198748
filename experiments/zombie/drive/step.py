"""The public function of the step `drive`."""

from typing import Final, TypeVar

import msgspec

from experiments.zombie.drive.conduct import Conduct
from experiments.zombie.drive.interruption import Interrupted, interruptible
from experiments.zombie.ports import Partner, Watching, ZombieOutside
from experiments.zombie.recording import DriveRecord, Ending, Kind, Mark, Repetition, Settings, Shape, What
from experiments.zombie.scenarios import SCENARIOS, Scenario, ScenarioId
from steps.contracts.declaration import Inputs
from steps.contracts.document import Stamp
from steps.contracts.errors import BadInput, Exit
from steps.logs import log_for

T = TypeVar("T")
WATCH_S: Final = 120.0
"""How long watch may take to start; it may have to be scheduled, and waits for the GPU to be clean."""


def run(inputs: Inputs, outside: ZombieOutside) -> Exit:
    """Write a DriveRecord, also where the scenario could not be run to its end: the record says why, and the exit code is 1."""
    settings, scenario = settings_of(inputs), scenario_of(inputs.text("scenario"))
    clock = outside.base.clock
    repetitions: list[Repetition] = []
    failure: str | None
    ready_at: Mark | None = None
    with interruptible():
        try:
            failure = wait_for_watch(outside.partner(inputs.text("run"), scenario.id.value), outside)
            ready_at = Mark(at=clock.now(), what=What.WATCHED)
            if failure is None:
                _repeat(inputs.text("run"), scenario, settings, outside, repetitions)
        except Interrupted as stopped:
            failure = str(stopped)
    if repetitions and ready_at is not None:
        repetitions[0] = _with_mark(repetitions[0], ready_at)
    stamp = Stamp(made_by="drive", made_at=clock.now(), origin=outside.base.origin)
    record = DriveRecord(stamp=stamp, scenario=scenario.id, settings=settings, repetitions=tuple(repetitions), failure=failure)
    inputs.put("record", record)
    failed = [one.failure for one in repetitions if one.failure]
    log_for("drive").info(
        "drive.recorded", scenario=scenario.id.value, repetitions=len(repetitions), failure=failure, failed=failed
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


def wait_for_watch(partner: Partner, outside: ZombieOutside) -> str | None:
    """None once watch is ready, which includes that every GPU is clean; else the sentence why nothing was begun."""
    clock = outside.base.clock
    began = clock.now()
    while (clock.now() - began).total_seconds() < WATCH_S:
        state = partner.watching()
        if state is Watching.READY:
            return None
        if state is Watching.ENDED:
            return "watch ended before it was ready: the node's GPUs were not clean, or could not be read; see its recording"
        outside.pace(0.25)
    return f"watch was not ready within {WATCH_S:g} s; nothing was begun"


def _repeat(run: str, scenario: Scenario, settings: Settings, outside: ZombieOutside, done: list[Repetition]) -> None:
    """Fills `done`, so that what was recorded survives an interruption."""
    sessions, clock = outside.sessions(settings.namespace), outside.base.clock
    for number in range(1, settings.repetitions + 1):
        one = Conduct(scenario, settings, run, number, sessions, clock.now, outside.pace)
        problem = one.clean_up()
        one.marks.clear()
        done.append(one.unbegun(problem) if problem is not None else one.whole())
        if one.interrupted is not None:
            raise one.interrupted


def _with_mark(repetition: Repetition, mark: Mark) -> Repetition:
    return msgspec.structs.replace(repetition, marks=(mark, *repetition.marks))
