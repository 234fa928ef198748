"""From the run's record to results: unpack what drive and watch handed over, measure, judge. Pure."""

from collections.abc import Sequence
from typing import TypeVar

from experiments.zombie.drive.conduct import RECREATION_S
from experiments.zombie.recording import DriveRecord, WatchRecording, What
from experiments.zombie.report import portraits
from experiments.zombie.report.files import ORDER, Recorded
from experiments.zombie.report.measure import held_bytes, measure, timed
from experiments.zombie.report.track import Track, tracks
from experiments.zombie.report.verdicts import verdicts
from experiments.zombie.results import (
    Judgement,
    Provenance,
    RepetitionResult,
    ScenarioResult,
    ZombieResults,
    ZombieSummary,
)
from experiments.zombie.scenarios import SCENARIOS, Scenario
from steps.contracts.document import Document, Origin, Sample, Stamp
from steps.contracts.errors import BadInput
from steps.contracts.parcel import unpack
from steps.contracts.run_record import NodeRecord, RunRecord

D = TypeVar("D", bound=Document)
R = TypeVar("R", DriveRecord, WatchRecording)


def recorded(run: RunRecord) -> tuple[Recorded, ...]:
    """One entry for each scenario of which a pod began, in the experiment's order. What cannot be read, or is not of this scenario
    and node, counts as not left, with its reason: it hides no other scenario."""
    found = []
    for scenario in ORDER:
        nodes = [one for one in run.nodes if one.inputs.get("scenario") == scenario.id.value]
        if any(one.template in ("drive", "watch") and one.pod is not None for one in nodes):
            ended = {
                one.template: f"{one.phase}{f': {one.message}' if one.message else ''}" for one in nodes if one.pod is not None
            }
            try:
                drive = _of(scenario, _output(nodes, "drive", "record", DriveRecord))
            except BadInput as error:
                drive, ended["drive"] = None, str(error)
            try:
                watched = _beside(drive, _of(scenario, _output(nodes, "watch", "recording", WatchRecording)))
            except BadInput as error:
                watched, ended["watch"] = None, str(error)
            found.append(Recorded(scenario, drive, watched, ended))
    return tuple(found)


def _output(nodes: Sequence[NodeRecord], template: str, name: str, kind: type[D]) -> D | None:
    """The step's output; None where it left none. Raises BadInput if it cannot be read."""
    text = next((one.outputs[name] for one in nodes if one.template == template and one.outputs.get(name)), None)
    return None if text is None else unpack(text, kind, f"output {name} of {template}")


def _of(scenario: Scenario, found: R | None) -> R | None:
    """Raises BadInput if it speaks of another scenario."""
    if found is not None and found.scenario is not scenario.id:
        raise BadInput(f"what it left is of scenario {found.scenario.value}")
    return found


def _beside(drive: DriveRecord | None, watched: WatchRecording | None) -> WatchRecording | None:
    """Raises BadInput if the two were on different nodes, whose clocks may not be compared."""
    if drive is not None and watched is not None and watched.node != drive.settings.node:
        raise BadInput(f"what it left is of node {watched.node}, and the session was on {drive.settings.node}")
    return watched


def scenario_result(one: Recorded) -> ScenarioResult:
    """Raises nothing for what is missing: it is said."""
    repetitions: tuple[RepetitionResult, ...] = ()
    if one.drive is not None and one.watch is not None:
        cut = tracks(one.drive.repetitions, one.watch)
        repetitions = tuple(_repetition(place, cut, one.drive, one.watch) for place in range(len(cut)))
    return ScenarioResult(
        scenario=one.scenario.id,
        number=one.scenario.number,
        title=one.scenario.title,
        pid1=_pid1(one.drive),
        verdicts=verdicts(one.scenario, repetitions),
        repetitions=repetitions,
        looks=0 if one.watch is None else one.watch.looks,
        longest_gap_s=None if one.watch is None or one.watch.looks < 2 else one.watch.longest_gap_s,
        problem=_problem(one, repetitions),
    )


def _repetition(place: int, cut: Sequence[Track], drive: DriveRecord, watched: WatchRecording) -> RepetitionResult:
    track = cut[place]
    following = cut[place + 1].moment(What.CREATE) if place + 1 < len(cut) else None
    remedies = portraits.remedies(
        portraits.after_delete(track.repetition, watched, following), track.devices, track.repetition.pods
    )
    return RepetitionResult(
        number=track.repetition.number,
        pod_uid=track.repetition.pod_uid,
        image_id=track.repetition.image_id,
        measured=measure(track, SCENARIOS[drive.scenario], drive.settings.grace_s, remedies),
        timed=timed(track),
        held_bytes=held_bytes(track),
        recreated=track.repetition.recreated,
        remedies=remedies,
        failure=track.repetition.failure,
    )


def _pid1(drive: DriveRecord | None) -> Sample[str]:
    for repetition in drive.repetitions if drive else ():
        if repetition.after_spawn is not None and repetition.after_spawn.pid1 is not None:
            return Sample.measured(repetition.after_spawn.pid1.command or repetition.after_spawn.pid1.name)
    return Sample.absent("nobody looked inside the container")


def _problem(one: Recorded, repetitions: Sequence[RepetitionResult]) -> str | None:
    if one.watch is not None and not one.watch.clean:
        return f"nothing was begun: {one.watch.clean_sentence}"
    if one.watch is None or one.drive is None:
        silent = [name for name, left in (("drive", one.drive), ("watch", one.watch)) if left is None]
        return "; ".join(f"{name} left no record ({one.ended.get(name, 'it never began')})" for name in silent)
    failures = [f"repetition {rep.number}: {rep.failure}" for rep in repetitions if rep.failure]
    begun, asked = len(one.drive.repetitions), one.drive.settings.repetitions
    unbegun = [f"repetitions {begun + 1} to {asked} were not begun" if begun + 1 < asked else f"repetition {asked} was not begun"]
    whole = one.drive.failure if one.drive.failure not in [rep.failure for rep in repetitions] else None
    return "; ".join([*([whole] if whole else []), *failures, *(unbegun if 0 < begun < asked else [])]) or None


def results(run: RunRecord, found: Sequence[Recorded], tag: str, commit: str, stamp: Stamp) -> ZombieResults:
    """stamp.origin is that of the facts: simulated as soon as one recording is."""
    origins = {document.stamp.origin for one in found for document in (one.drive, one.watch) if document is not None}
    if Origin.SIMULATED in origins:
        stamp = Stamp(made_by=stamp.made_by, made_at=stamp.made_at, origin=Origin.SIMULATED)
    settings = next((one.drive.settings for one in found if one.drive is not None), None)
    return ZombieResults(
        stamp=stamp,
        provenance=_provenance(run, found, tag, commit),
        settings=settings,
        scenarios=tuple(scenario_result(one) for one in found),
        missing=_missing(run, found),
    )


def _missing(run: RunRecord, found: Sequence[Recorded]) -> tuple[str, ...]:
    """Scenarios that nobody left out by choice and of which no pod began."""
    there = {one.scenario.id.value for one in found}
    skipped = {node.inputs.get("scenario") or node.name.rpartition(".")[2] for node in run.nodes if node.phase == "Skipped"}
    return tuple(
        f"{scenario.id.value}: no pod of it began; the run ended as {run.phase}"
        for scenario in ORDER
        if scenario.id.value not in there | skipped
    )


def _provenance(run: RunRecord, found: Sequence[Recorded], tag: str, commit: str) -> Provenance:
    watched = next((one.watch for one in found if one.watch is not None), None)
    drives = [one.drive for one in found if one.drive is not None]
    images = {rep.image_id for drive in drives for rep in drive.repetitions if rep.image_id}
    unknown: Sample[str] = Sample.absent("watch left no recording")
    return Provenance(
        run=run.run,
        tag=tag,
        commit=commit,
        node=watched.node if watched else None,
        kernel=watched.kernel if watched else unknown,
        driver=watched.driver.driver_version if watched else unknown,
        gpus=tuple(f"{gpu.name.known() or 'unknown'} ({gpu.uuid})" for gpu in watched.gpus) if watched else (),
        backend=drives[0].settings.backend if drives else None,
        images=tuple(sorted(images)),
        waited_s=round(sum(waiting_s(one.drive, one.watch) for one in found if one.drive is not None), 1),
        took_s=_took_s(run),
        started_at=run.started_at,
        finished_at=run.finished_at,
    )


def waiting_s(drive: DriveRecord, watched: WatchRecording | None) -> float:
    """Seconds that a scenario waits on purpose: each state for its window, the grace that is used up, a moment to see whether a
    controller makes the pod again, and the looks after drive has ended."""
    waited = watched.settle_s if watched is not None and drive.repetitions else 0.0
    for repetition in drive.repetitions:
        marks = {mark.what: mark for mark in repetition.marks}
        waited += drive.settings.observe_s * sum(what in marks for what in (What.HOLDS, What.KILL, What.HOLDS_AGAIN))
        waited += RECREATION_S if What.GONE in marks else 0.0
        if What.DELETE in marks and What.GONE in marks:
            ended = marks[What.GONE].at
            waited += min(float(drive.settings.grace_s), max(0.0, (ended - marks[What.DELETE].at).total_seconds()))
    return waited


def _took_s(run: RunRecord) -> float | None:
    """From the start of the run to the end of its last scenario: the report is made after that."""
    ends = [node.finished_at for node in run.nodes if node.template in ("drive", "watch") and node.finished_at is not None]
    return None if run.started_at is None or not ends else round((max(ends) - run.started_at).total_seconds(), 1)


def summary(done: ZombieResults, report: str) -> ZombieSummary:
    judged = [v for one in done.scenarios for v in one.verdicts]
    return ZombieSummary(
        run=done.provenance.run,
        scenarios=len(done.scenarios),
        measured=sum(any(v.judgement is not Judgement.UNKNOWN for v in one.verdicts) for one in done.scenarios),
        judgements={word.value: n for word in Judgement if (n := sum(v.judgement is word for v in judged))},
        problems=(*(f"{one.scenario.value}: {one.problem}" for one in done.scenarios if one.problem), *done.missing),
        report=report,
    )
