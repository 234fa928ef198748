"""What the report shows, as plain data: rows, tones, words, pictures. Pure; the template only lays it out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from experiments.zombie.report.charts import Chart, chart
from experiments.zombie.report.files import Recorded
from experiments.zombie.report.track import tracks
from experiments.zombie.results import Figure, Judgement, ScenarioResult, Verdict, Word, ZombieResults
from experiments.zombie.scenarios import Row
from steps.contracts.document import Origin, Sample

TONES: Final = {
    Judgement.AS_EXPECTED: "good",
    Judgement.OTHERWISE: "warn",
    Judgement.OPEN: "act",
    Judgement.MIXED: "bad",
    Judgement.UNKNOWN: "unknown",
}
ALWAYS: Final = (Judgement.AS_EXPECTED, Judgement.OTHERWISE, Judgement.OPEN)
START: Final = {"s1-stays": "shell stays", "s1-execs": "shell execs"}


@dataclass(frozen=True)
class Answer:
    """One cell: what was expected, what came out, and how sure."""

    row: str
    expected: str
    measured: str
    count: str
    judgement: str
    tone: str
    sentence: str
    why: str


@dataclass(frozen=True)
class Spread:
    """A figure over the repetitions. values: one for each, as an interval; strip: (left, width) in percent of the longest."""

    figure: str
    values: tuple[str, ...]
    whole: str
    strips: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Picture:
    title: str
    chart: Chart


@dataclass(frozen=True)
class Card:
    name: str
    short: str
    title: str
    pid1: str
    problem: str | None
    answers: tuple[Answer, ...]
    spreads: tuple[Spread, ...]
    pictures: tuple[Picture, ...]
    notes: tuple[str, ...]
    watched: str


@dataclass(frozen=True)
class View:
    run: str
    lead: str
    banner: str | None
    figures: tuple[tuple[str, str, str], ...]
    """(label, value, tone)."""
    cards: tuple[Card, ...]
    rows: tuple[str, ...]
    missing: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    provenance: tuple[tuple[str, str], ...]


def view(results: ZombieResults, recorded: Sequence[Recorded]) -> View:
    verdicts = [v for one in results.scenarios for v in one.verdicts]
    counts = {word: sum(v.judgement is word for v in verdicts) for word in Judgement}
    return View(
        run=results.provenance.run,
        lead=_lead(results, verdicts),
        banner=_banner(results),
        figures=tuple((word.value, str(n), TONES[word] if n else "plain") for word, n in counts.items() if n or word in ALWAYS),
        cards=tuple(_card(one, recorded) for one in results.scenarios),
        rows=tuple(row.value for row in Row),
        missing=results.missing,
        settings=_settings(results),
        provenance=_provenance(results),
    )


def _lead(results: ZombieResults, verdicts: Sequence[Verdict]) -> str:
    after = [v for v in verdicts if v.row is Row.AFTER_DELETION and v.measured is not Word.UNKNOWN]
    stayed = [v for v in after if v.measured is not Word.FREE]
    wrong = sum(v.judgement is Judgement.OTHERWISE for v in verdicts)
    unstable = sum(v.judgement is Judgement.MIXED for v in verdicts)
    if not after:
        seen = any(v.measured is not Word.UNKNOWN for v in verdicts)
        return f"Nothing was measured to its end.{' What was seen until then stands below.' if seen else ''}"
    wanted = 1 if results.settings is None else results.settings.repetitions
    whole, asked = sum(_ended(one) >= wanted for one in results.scenarios), len(results.scenarios) + len(results.missing)
    partly = "" if whole == asked else f"{whole} of {asked} scenarios were measured in every repetition. "
    left = f"left memory behind in {len(stayed)}" if stayed else "left nothing behind in any"
    memory = f"{left} of {len(after)} scenarios"
    if len(after) == 1:
        memory = f"left {'memory' if stayed else 'nothing'} behind in the one scenario measured"
    spoken = "no expectation was wrong" if not wrong else f"{wrong} of {len(verdicts)} expectations were wrong"
    stable = f"; {unstable} answers are not stable over the repetitions" if unstable else ""
    return f"{partly}Deleting the session {memory}; {spoken}{stable}."


def _ended(one: ScenarioResult) -> int:
    """How many repetitions got to the memory after the deletion."""
    words = [m.word for rep in one.repetitions for m in rep.measured if m.row is Row.AFTER_DELETION]
    return sum(word is not Word.UNKNOWN for word in words)


def _banner(results: ZombieResults) -> str | None:
    if results.stamp.origin is Origin.SIMULATED:
        return "Simulated. Kernel, kubelet and GPU of these sessions are a simulator; only the steps and their order are real."
    if results.provenance.backend == "simulated":
        return (
            "Real cluster, real containers and processes; the GPU is simulated: its memory is a lock on an open file, which the "
            "kernel gives back by the driver's rule. Nothing here speaks about a real driver's own time or faults."
        )
    return None


def _card(one: ScenarioResult, recorded: Sequence[Recorded]) -> Card:
    found = next((entry for entry in recorded if entry.scenario.id is one.scenario), None)
    start = START.get(one.scenario.value)
    return Card(
        name=f"Scenario {one.number}" + (f", {start}" if start else ""),
        short=f"S{one.number}" + (f" {start.split()[-1]}" if start else ""),
        title=one.title,
        pid1=_said(one.pid1),
        problem=one.problem,
        answers=tuple(_answer(v) for v in one.verdicts),
        spreads=tuple(_spread(one, figure) for figure in Figure),
        pictures=_pictures(found),
        notes=_notes(one),
        watched=f"{one.looks} looks" + ("" if one.longest_gap_s is None else f", at most {one.longest_gap_s:.2f} s apart"),
    )


def _answer(v: Verdict) -> Answer:
    return Answer(
        row=v.row.value,
        expected=v.expected,
        measured=v.measured.value,
        count=f"{v.n} of {v.of}",
        judgement=v.judgement.value,
        tone=TONES[v.judgement],
        sentence=v.sentence,
        why=v.why,
    )


def _spread(one: ScenarioResult, figure: Figure) -> Spread:
    within = [timed.within for rep in one.repetitions for timed in rep.timed if timed.figure is figure]
    known = [interval for interval in within if interval is not None]
    longest = max([interval.by_s for interval in known], default=0.0) or 1.0
    whole = f"{min(i.after_s for i in known):.2f} to {max(i.by_s for i in known):.2f} s" if known else "not seen"
    return Spread(
        figure=figure.value,
        values=tuple("not seen" if one is None else f"{one.after_s:.2f} to {one.by_s:.2f} s" for one in within),
        whole=whole,
        strips=tuple(
            (round(i.after_s / longest * 100, 1), round(max(1.5, (i.by_s - i.after_s) / longest * 100), 1)) for i in known
        ),
    )


def _pictures(found: Recorded | None) -> tuple[Picture, ...]:
    if found is None or found.drive is None or found.watch is None:
        return ()
    drawn = [(track.repetition.number, chart(track)) for track in tracks(found.drive.repetitions, found.watch)]
    return tuple(Picture(f"Repetition {number}", one) for number, one in drawn if one is not None)


def _notes(one: ScenarioResult) -> tuple[str, ...]:
    made = [
        f"Repetition {rep.number}: made again after the deletion: {words}" for rep in one.repetitions for words in rep.recreated
    ]
    proposed = [f"Repetition {rep.number}: proposed, not done: {words}" for rep in one.repetitions for words in rep.remedies]
    return (*made, *proposed)


def _settings(results: ZombieResults) -> tuple[tuple[str, str], ...]:
    chosen = results.settings
    if chosen is None:
        return ()
    return (
        ("repetitions", str(chosen.repetitions)),
        ("memory held by a worker", f"{chosen.memory_mib} MiB"),
        ("grace", f"{chosen.grace_s} s"),
        ("preStop hook waits", f"at most {chosen.prestop_wait_s} s"),
        ("each state watched for", f"{chosen.observe_s:g} s"),
        ("ending", chosen.ending.value),
        ("worker", chosen.shape.value),
        ("session", chosen.kind.value),
    )


def _provenance(results: ZombieResults) -> tuple[tuple[str, str], ...]:
    p = results.provenance
    return (
        ("facts", results.stamp.origin.value),
        ("memory held by", p.backend or "unknown"),
        ("git tag", p.tag),
        ("commit", p.commit),
        ("node", p.node or "unknown"),
        ("GPUs", ", ".join(p.gpus) or "unknown"),
        ("driver", _said(p.driver)),
        ("kernel", _said(p.kernel)),
        ("images that ran", ", ".join(p.images) or "unknown: the cluster named none"),
        ("took", "unknown" if p.took_s is None else f"{p.took_s:.0f} s, of which {p.waited_s:.0f} s were waiting on purpose"),
        ("started", "unknown" if p.started_at is None else f"{p.started_at:%Y-%m-%d %H:%M:%S} UTC"),
        ("report made", f"{results.stamp.made_at:%Y-%m-%d %H:%M:%S} UTC"),
    )


def _said(reading: Sample[str]) -> str:
    known = reading.known()
    return f"unknown: {reading.reason or reading.state.value}" if known is None else known
