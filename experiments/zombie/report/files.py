"""All files of a run's results but the HTML: the seed's names, notes, comparison. Pure: recordings in, texts out."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from experiments.zombie.recording import DriveRecord, Repetition, WatchRecording, What
from experiments.zombie.report import logs, portraits
from experiments.zombie.results import Judgement, ScenarioResult, Word, ZombieResults
from experiments.zombie.scenarios import SCENARIOS, Row, Scenario


class Recorded(NamedTuple):
    """What one scenario left. drive or watch None: that step left nothing, and `ended` may say why."""

    scenario: Scenario
    drive: DriveRecord | None
    watch: WatchRecording | None
    ended: Mapping[str, str] = MappingProxyType({})
    """What the workflow engine says of each of the two steps."""


ORDER: Final = tuple(SCENARIOS.values())


def scenario_files(recorded: Sequence[Recorded], results: Sequence[ScenarioResult]) -> dict[str, str]:
    """`results/scenario-N/...`: both shell starts of scenario 1, and all repetitions, each under its heading in one file."""
    found: dict[str, str] = {}
    for number in sorted({one.scenario.number for one in recorded}):
        mine = [one for one in recorded if one.scenario.number == number]
        folder = f"results/scenario-{number}"
        for name, texts in _logs(mine).items():
            found[f"{folder}/{name}.log"] = logs.headed(texts)
        found[f"{folder}/notes.md"] = notes([one for one in results if one.number == number], mine)
    return found


def _logs(mine: Sequence[Recorded]) -> Mapping[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {name: [] for name in _NAMES}
    for one in mine:
        repetitions = one.drive.repetitions if one.drive else ()
        if not repetitions:
            for texts in found.values():
                texts.append((one.scenario.title, f"nothing was driven: {_no_drive(one)}\n"))
        for place, repetition in enumerate(repetitions):
            following = repetitions[place + 1 : place + 2]
            for name, text in _of_repetition(repetition, one.watch, following).items():
                found[name].append((f"{one.scenario.title}, repetition {repetition.number}", text))
    return found


_NAMES: Final = (
    "observe-after-spawn",
    "observe-after-kill",
    "gpu-pod-trace",
    "nvidia-smi-before-delete",
    "nvidia-smi-after-delete",
    "pod",
)


def _of_repetition(repetition: Repetition, watched: WatchRecording | None, following: Sequence[Repetition]) -> dict[str, str]:
    texts = {
        "observe-after-spawn": logs.observation(repetition.after_spawn, repetition.failure),
        "observe-after-kill": logs.observation(repetition.after_kill, repetition.failure),
        "pod": _pod_log(repetition),
    }
    if watched is None:
        return texts | dict.fromkeys(_NAMES[2:5], "watch left no recording\n")
    until = portraits.at(following[0], What.CREATE) if following else None
    alive, killed = portraits.worker_alive(repetition, watched), portraits.after_kill(repetition, watched)
    parts = [("the worker lives", logs.pod_trace(alive, repetition)), ("after kill -9", logs.pod_trace(killed, repetition))]
    return texts | {
        "gpu-pod-trace": logs.headed(parts),
        "nvidia-smi-before-delete": logs.smi(portraits.before_delete(repetition, watched)),
        "nvidia-smi-after-delete": logs.smi(portraits.after_delete(repetition, watched, until)),
    }


def _pod_log(repetition: Repetition) -> str:
    known = repetition.log.known()
    if known is None:
        return f"unknown: {logs.plain(repetition.log.reason or 'not read')}\n"
    return "\n".join(logs.plain(line) for line in known.splitlines()) + "\n"


def _no_drive(one: Recorded) -> str:
    if one.drive is not None and one.drive.failure:
        return logs.plain(one.drive.failure)
    if one.watch is not None and not one.watch.clean:
        return logs.plain(one.watch.clean_sentence)
    return "the step left no record"


def notes(results: Sequence[ScenarioResult], recorded: Sequence[Recorded]) -> str:
    """What happened in a scenario, for a person."""
    lines: list[str] = []
    for one in results:
        pid1 = one.pid1.known()
        lines += [f"# Scenario {one.number}: {one.title}", "", f"PID 1 was `{logs.plain(pid1) if pid1 else 'unknown'}`.", ""]
        if one.problem:
            lines += [f"**Problem:** {logs.plain(one.problem)}", ""]
        lines += ["| question | expected | measured | n of N | |", "|---|---|---|---|---|"]
        lines += [
            f"| {v.row.value} | {v.expected} | {v.measured.value} | {v.n} of {v.of} | {v.judgement.value} |" for v in one.verdicts
        ]
        lines += [""]
        for v in one.verdicts:
            lines += [f"- **{v.row.value}**: {logs.plain(v.sentence)}. {logs.plain(v.why)}".rstrip()]
        for repetition in one.repetitions:
            lines += [
                f"- repetition {repetition.number}: made again by a controller: {logs.plain(pod)}" for pod in repetition.recreated
            ]
            lines += [
                f"- repetition {repetition.number}: proposed, not done: {logs.plain(remedy)}" for remedy in repetition.remedies
            ]
        lines += [f"- watched by {one.looks} looks; the longest gap between two was {_gap(one)}.", ""]
    refused = [one.watch.clean_sentence for one in recorded if one.watch is not None and not one.watch.clean]
    lines += [f"The GPUs were not clean before this scenario: {logs.plain(sentence)}" for sentence in refused]
    return "\n".join(lines) + "\n"


def _gap(one: ScenarioResult) -> str:
    return "unknown" if one.longest_gap_s is None else f"{one.longest_gap_s:.2f} s"


def comparison(results: ZombieResults) -> str:
    """`results/comparison.md`: the seed's table, expected and measured in every cell, and the reasons where they differ."""
    scenarios = results.scenarios
    origin = results.stamp.origin.value
    lines = [
        "# Expected and measured",
        "",
        f"Run {results.provenance.run}, facts {origin}. A cell: *expected* / **measured** (n of N).",
        "",
    ]
    lines += ["| | " + " | ".join(_column(one) for one in scenarios) + " |", "|---" * (len(scenarios) + 1) + "|"]
    for row in Row:
        lines.append(f"| {row.value} | " + " | ".join(_cell(one, row) for one in scenarios) + " |")
    lines += ["", "## Why they differ, or what decided an open question", ""]
    for one in scenarios:
        for v in one.verdicts:
            if v.judgement not in (Judgement.AS_EXPECTED, Judgement.UNKNOWN):
                lines.append(
                    f"- {_column(one)}, {v.row.value}: expected *{v.expected}*, measured **{v.measured.value}** "
                    f"({v.n} of {v.of}): {logs.plain(v.sentence)}. {logs.plain(v.why)}".rstrip()
                )
    unmeasured = [f"{_column(one)}: {one.problem}" for one in scenarios if one.problem]
    lines += ["", *(f"- not measured: {logs.plain(words)}" for words in (*unmeasured, *results.missing))]
    return "\n".join(lines).rstrip() + "\n"


def _column(one: ScenarioResult) -> str:
    suffix = {"s1-stays": " stays", "s1-execs": " execs"}.get(one.scenario.value, "")
    return f"S{one.number}{suffix}"


def _cell(one: ScenarioResult, row: Row) -> str:
    verdict = next(v for v in one.verdicts if v.row is row)
    if verdict.measured is Word.UNKNOWN:
        return f"*{verdict.expected}* / not measured"
    mark = {Judgement.OTHERWISE: " (differs)", Judgement.MIXED: " (not stable)"}.get(verdict.judgement, "")
    return f"*{verdict.expected}* / **{verdict.measured.value}** ({verdict.n} of {verdict.of}){mark}"
