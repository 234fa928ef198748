"""From submit to reclaimed, on the real cluster, against a workflow of the same pods that does nothing."""

import os
import statistics
import time
from datetime import datetime
from pathlib import Path
from typing import Final

from tests.bench.on_cluster import row_on_cluster
from tests.bench.row import Row, measured
from tests.cluster import scene
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab

NAME: Final = "submit -> reclaimed / no-op workflow with the same pods in a row"
TARGET: Final = 1.3
ROUNDS: Final = 3
NOOP: Final = Path(__file__).with_name("noop.yaml")


def rows() -> list[Row]:
    """One row; not measured, with the reason, where the test cluster cannot run."""
    return row_on_cluster(NAME, TARGET, _row)


def _row(lab: Lab) -> Row:
    scene.install(lab)
    lab.kubectl.apply(NOOP)
    scene.start_session(lab, "a")
    scene.wait_running(lab, "a")
    scene.sweep(lab, dry_run=False)  # the first under this policy: looks only, and starts the idle clock
    ratios = []
    for _ in range(ROUNDS):
        nothing_s = _seconds(scene.finish(lab, scene.submit(lab, "noop", {})))
        time.sleep(scene.IDLE_AFTER_S)
        ratios.append(_reclaim_seconds(lab) / nothing_s)
        _begin_again(lab)
    setting = (
        f"one node, {os.cpu_count()} cores, requeue 1 s, median of {ROUNDS} pairs ({', '.join(f'{r:.2f}' for r in ratios)}); "
        f"3 looks {scene.QUICK['look-interval-s']} s apart in collect and capture; archive not counted"
    )
    return measured(NAME, statistics.median(ratios), TARGET, setting)


def _reclaim_seconds(lab: Lab) -> float:
    """From the Workflow's start to the end of its last verify pod."""
    run = scene.sweep(lab, dry_run=False)
    ends = [node["finishedAt"] for node in run.workflow["status"]["nodes"].values() if node.get("templateName") == "verify"]
    if not ends:
        raise LabError(f"the sweep {run.name} stopped nothing: {run.decision('a').sentence}")
    return (max(map(_time, ends)) - _time(run.workflow["status"]["startedAt"])).total_seconds()


def _seconds(workflow: Json) -> float:
    status = workflow["status"]
    return (_time(status["finishedAt"]) - _time(status["startedAt"])).total_seconds()


def _begin_again(lab: Lab) -> None:
    """The session back on its GPU, and seen idle once."""
    scene.cli(lab, "restore", "deployment/a", f"--namespace={scene.TEAM}", "--yes")
    scene.wait_running(lab, "a")
    scene.sweep(lab, dry_run=True)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
