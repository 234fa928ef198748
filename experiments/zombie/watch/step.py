"""The public function of the step `watch`."""

from collections.abc import Callable
from typing import NamedTuple

from experiments.zombie.drive.step import scenario_of
from experiments.zombie.ports import Partner, ZombieOutside
from experiments.zombie.recording import GpuSeen, Portrait, WatchRecording
from experiments.zombie.scenarios import ScenarioId
from experiments.zombie.stopping import stop_noticed
from experiments.zombie.watch.cleanliness import cleanliness
from experiments.zombie.watch.history import History
from experiments.zombie.watch.portraits import Portraits, fitted
from experiments.zombie.watch.watching import Terms, watch
from steps.collect.look import look
from steps.contracts.declaration import Inputs
from steps.contracts.document import Stamp
from steps.contracts.errors import Exit
from steps.contracts.node_facts import NodeFacts
from steps.logs import log_for


class Watched(NamedTuple):
    """All there is to record. clean, sentence: what the first full look said."""

    before: NodeFacts
    clean: bool
    sentence: str
    portraits: Portraits
    history: History
    ended: str


def run(inputs: Inputs, outside: ZombieOutside) -> Exit:
    """Write a WatchRecording. GPUs that do not become free in time end it with exit 3, and drive then begins nothing."""
    scenario = scenario_of(inputs.text("scenario")).id
    with stop_noticed() as stopped:
        watched = _watched(inputs, outside, outside.partner(inputs.text("run"), scenario.value), stopped)
    recording = _recording(scenario, watched, outside, interval_s=inputs.seconds("interval-s"), settle_s=inputs.seconds("settle-s"))
    inputs.put("recording", recording)
    log_for("watch").info(
        "watch.recorded",
        scenario=scenario.value,
        clean=watched.clean,
        clean_sentence=watched.sentence,
        looks=recording.looks,
        longest_gap_s=round(recording.longest_gap_s, 3),
        portraits=len(recording.portraits),
        portraits_failed=watched.portraits.failed,
        ended=watched.ended,
    )
    return Exit.DONE if watched.clean else Exit.FOUND_PROBLEMS


def _watched(inputs: Inputs, outside: ZombieOutside, partner: Partner, stopped: Callable[[], bool]) -> Watched:
    node, base = inputs.text("node"), outside.base
    before, clean, sentence = _until_clean(node, outside, inputs.seconds("clean-s"), stopped)
    portraits = Portraits(node, base, outside.beside)
    if not clean:
        return Watched(before, clean, sentence, portraits, History(), "the GPUs were not clean, so nothing was begun")
    glances = outside.glances(base.processes().devices(before.gpus.known() or ()).known() or ())
    terms = Terms(
        interval_s=inputs.seconds("interval-s"),
        settle_s=inputs.seconds("settle-s"),
        limit_s=inputs.seconds("limit-s"),
        stopped=stopped,
    )
    try:
        history, ended = watch(glances, partner, portraits, outside, terms)
    finally:
        glances.close()
    portraits.finish(left_over=history.left_over and not stopped())
    return Watched(before, clean, sentence, portraits, history, ended)


def _until_clean(node: str, outside: ZombieOutside, limit_s: float, stopped: Callable[[], bool]) -> tuple[NodeFacts, bool, str]:
    """A session that just ended may need a moment; what stays is somebody else's or a leak."""
    clock = outside.base.clock
    began = clock.now()
    while True:
        facts = look(node, outside.base, 1, 0.0, made_by="watch")
        clean, sentence = cleanliness(facts, clock.now())
        if clean or stopped() or (clock.now() - began).total_seconds() >= limit_s:
            return facts, clean, sentence
        clock.sleep(1.0)


def _recording(
    scenario: ScenarioId, watched: Watched, outside: ZombieOutside, *, interval_s: float, settle_s: float
) -> WatchRecording:
    before, history = watched.before, watched.history
    gpus = before.gpus.known()
    recording = WatchRecording(
        stamp=Stamp(made_by="watch", made_at=outside.base.clock.now(), origin=outside.base.origin),
        scenario=scenario,
        node=before.node,
        boot_id=before.boot_id,
        kernel=outside.kernel(),
        driver=before.driver,
        gpus=tuple(
            GpuSeen(uuid=one.uuid, index=one.index, name=one.name, total_bytes=one.memory.total_bytes) for one in gpus or ()
        ),
        clean=watched.clean,
        clean_sentence=watched.sentence,
        interval_s=interval_s,
        settle_s=settle_s,
        looks=history.looks,
        longest_gap_s=history.longest_gap_s,
        given=history.given,
        stretches=history.stretches,
        portraits=(Portrait(at=before.stamp.made_at, facts=before), *watched.portraits.made),
        portraits_dropped=0,
        ended=watched.ended,
    )
    return fitted(recording)
