"""The demo's story: a cluster with a past, a sweep that only looks, a quarter of a simulated hour, a sweep that acts."""

import os
import shutil
import sys
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.live import Live

from sim.clock import SimulatedClock
from sim.scenarios.demo import NAMESPACES, demo_world
from sim.world.state import World
from sim.world.store import StateFile
from steps.archive.evidence import load_evidence
from steps.commands.demo_progress import Progress
from steps.commands.demo_view import show_lead, show_result
from steps.contracts.errors import Exit, SourceUnavailable
from steps.contracts.files import write_atomically
from workflows import MANIFESTS
from workflows.local import Setting, load, run_locally
from workflows.local.folders import own_folder

PAUSE_MIN: Final = 15
POLICY: Final = f"""\
mode: act
namespaces: [{", ".join(NAMESPACES)}]
idle_after_s: 900
minimum_age_s: 600
max_stops_per_sweep: 3
"""


@dataclass(frozen=True)
class Demo:
    """Where one demo works, and where it prints."""

    folder: Path
    console: Console

    @property
    def state(self) -> Path:
        return self.folder / "cluster.json"

    @property
    def evidence(self) -> Path:
        return self.folder / "evidence"

    @property
    def setting(self) -> Setting:
        runs = self.folder / "runs"
        return Setting(
            runs_folder=runs,
            claims={"gpu-reclaim-evidence": self.evidence},
            config_maps={"gpu-reclaim-policy": {"policy.yaml": self.folder / "policy.yaml"}},
            environment={**os.environ, "GPU_RECLAIM_SIMULATOR": str(self.state), "GPU_RECLAIM_RUNS_DIR": str(runs)},
            now=SimulatedClock(self.state).now,
        )


def run_demo(folder: Path, *, color: bool) -> Exit:
    """Run the whole story. Raises BadInput if the folder holds something else or is in use, SourceUnavailable if a sweep fails."""
    with own_folder(folder.absolute(), of="demo") as own:
        _tell_story(Demo(own, Console(no_color=not color, highlight=False)))
    return Exit.DONE


def _tell_story(demo: Demo) -> None:
    began, console = time.monotonic(), demo.console
    world = demo_world(datetime.now(UTC))
    StateFile(demo.state).create(world)
    write_atomically(demo.folder / "policy.yaml", POLICY.encode())
    _introduce(console, world)
    _sweep(demo, "sweep-1", "First sweep under a new policy: a dry run by force, nothing is stopped")
    SimulatedClock(demo.state).sleep(PAUSE_MIN * 60)
    console.print(f"{PAUSE_MIN} minutes pass (simulated)\n", style="bold")
    _sweep(demo, "sweep-2", "Second sweep: what stayed idle for 15 minutes gives its GPU back")
    console.print()
    show_result(console, load_evidence(demo.evidence / "sweep-2"))
    _close(demo, time.monotonic() - began)


def _introduce(console: Console, world: World) -> None:
    gpus = sum(len(node.gpus) for node in world.nodes.values())
    pods = [item for item in world.objects.values() if item["kind"] == "Pod"]
    waiting = sum(pod["status"]["phase"] == "Pending" for pod in pods)
    size = f"{len(world.nodes)} nodes, {gpus} GPUs, {len(pods)} sessions, {waiting} of them waiting for a GPU"
    console.print(f"A simulated cluster: {size}.")
    console.print("The sweep is the one that is deployed: the rendered Argo workflow, its containers as processes.\n")


def _sweep(demo: Demo, run: str, title: str) -> None:
    """Run the rendered sweep once, with its progress in view."""
    began, progress, console = time.monotonic(), Progress(), demo.console
    console.print(title, style="bold")
    with Live(console=console, transient=True, refresh_per_second=8, get_renderable=progress.line):
        record = run_locally(
            load(MANIFESTS / "sweep.yaml"),
            {"dry-run": "false"},
            demo.setting,
            run=run,
            uid=str(uuid.uuid4()),
            on_node=progress.tell,
        )
    console.print(progress.line().append(f"   {time.monotonic() - began:.1f} s", style="dim"))
    if record.phase != "Succeeded":
        raise SourceUnavailable(
            f"the {run} ended as {record.phase} ({record.message}); read the logs below {demo.setting.runs_folder / run}"
        )
    show_lead(console, load_evidence(demo.evidence / run))


def _close(demo: Demo, took_s: float) -> None:
    console, report = demo.console, demo.evidence / "sweep-2" / "report.html"
    command = "gpu-reclaim" if shutil.which("gpu-reclaim") else _from_here(Path(sys.executable).with_name("gpu-reclaim"))
    console.print(f"Report  {_from_here(report)}", style="bold", soft_wrap=True)
    console.print(f"Undo    GPU_RECLAIM_SIMULATOR={_from_here(demo.state)} {command} restore", soft_wrap=True)
    console.print(f"All of this was simulated, and every document says so. It took {took_s:.0f} s.", style="dim")


def _from_here(path: Path) -> Path:
    """As a person standing in the working directory would type it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
