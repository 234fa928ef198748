"""The termination experiment on a terminal: progress while it runs, the table of expected and measured, where the report is."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from experiments.zombie.results import Judgement, ScenarioResult, Verdict, ZombieResults
from experiments.zombie.scenarios import Row
from steps.archive.shown import plain
from steps.commands.experiment_local import LocalRun, run_here
from steps.contracts.errors import Exit
from steps.contracts.run_record import NodeRecord
from workflows.local.folders import own_folder

STYLES = {
    Judgement.AS_EXPECTED: "green",
    Judgement.OTHERWISE: "yellow",
    Judgement.OPEN: "cyan",
    Judgement.MIXED: "red",
    Judgement.UNKNOWN: "magenta",
}
INJECTED_WORDS = {
    "ghost": "memory that a killed worker leaves on the GPU without any process",
    "stuck": "a killed worker that stays in the driver, in state D",
}


def run_zombie(folder: Path, parameters: Mapping[str, str], faults: Sequence[str], *, color: bool) -> Exit:
    """Run and show. Exit 3 if what was measured left memory behind where no fault was put in."""
    console, began = Console(no_color=not color, highlight=False), time.monotonic()
    with own_folder(folder.absolute(), of="experiment") as own:
        console.print("Which of init process, preStop hook and signal handler lets a GPU pod leave nothing behind?", style="bold")
        console.print("The workflow that is deployed, its steps as processes; kernel, kubelet and GPU are a simulator.\n")
        run = _run(console, own, "zombie", parameters)
        console.print(_table(run.results))
        for scenario in run.results.scenarios:
            if scenario.problem:
                console.print(Text(f"{_name(scenario)}: {plain(scenario.problem)}", style="red"))
        injected = [_injected(console, own, fault) for fault in faults]
    _close(console, [run, *injected], time.monotonic() - began)
    return Exit.DONE if run.phase == "Succeeded" else Exit.COULD_NOT


def _run(console: Console, folder: Path, name: str, parameters: Mapping[str, str], injected: str = "") -> LocalRun:
    seen: dict[str, str] = {}

    def tell(node: NodeRecord) -> None:
        if node.template == "scenario" and "scenario" in node.inputs:
            seen[node.inputs["scenario"]] = node.phase

    def line() -> Text:
        colours = {"Running": "yellow", "Succeeded": "green"}
        return Text("  ").append_text(Text(" > ").join(Text(key, style=colours.get(phase, "red")) for key, phase in seen.items()))

    with Live(console=console, transient=True, refresh_per_second=8, get_renderable=line):
        return run_here(folder, name, parameters, tell, injected=injected)


def _table(results: ZombieResults) -> Table:
    table = Table(
        title="Measured, and below it what had been expected", title_justify="left", title_style="bold", box=box.SIMPLE_HEAD
    )
    table.add_column("")
    for scenario in results.scenarios:
        table.add_column(_name(scenario), overflow="fold")
    for row in Row:
        table.add_row(row.value, *(_cell(next(v for v in one.verdicts if v.row is row)) for one in results.scenarios))
    return table


def _name(scenario: ScenarioResult) -> str:
    return f"S{scenario.number}{scenario.scenario.value[2:].replace('-', ' ')}"


def _cell(verdict: Verdict) -> Text:
    shown = Text(f"{verdict.measured.value}", style=STYLES[verdict.judgement])
    return shown.append(f" {verdict.n} of {verdict.of}\n({verdict.expected})", style="dim")


def _injected(console: Console, folder: Path, fault: str) -> LocalRun:
    console.print(Text(f"Injected, not provoked: {INJECTED_WORDS[fault]}", style="bold"))
    run = _run(console, folder, f"injected-{fault}", {}, injected=fault)
    for scenario in run.results.scenarios:
        for verdict in scenario.verdicts:
            if verdict.row in (Row.KILLED_CONTEXT, Row.AFTER_DELETION, Row.REBOOT):
                console.print(Text(f"  {verdict.row.value}: {verdict.measured.value}; {plain(verdict.sentence)}"))
    console.print()
    return run


def _close(console: Console, runs: Sequence[LocalRun], took_s: float) -> None:
    here = Path.cwd()
    for run in runs:
        report = run.folder / "report.html"
        shown = report.relative_to(here) if report.is_relative_to(here) else report
        console.print(f"{'Report' if not run.injected else 'Injected ' + run.injected}  {shown}", style="bold", soft_wrap=True)
    console.print(f"All of this was simulated, and every document says so. It took {took_s:.0f} s.", style="dim")
