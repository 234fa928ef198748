"""The whole termination experiment, as shipped, against what it waits for on purpose: graces and windows of observation."""

import os
from typing import Final

from tests.bench.on_cluster import row_on_cluster
from tests.bench.row import Row, measured
from tests.cluster import scene, zombie_scene
from tests.cluster.lab.lab import Lab

NAME: Final = "termination experiment, one repetition / what it waits for on purpose"
TARGET: Final = 2.0


def rows() -> list[Row]:
    """One row; not measured, with the reason, where the test cluster cannot run."""
    return row_on_cluster(NAME, TARGET, _row)


def _row(lab: Lab) -> Row:
    scene.install(lab)
    zombie_scene.install(lab)
    run = zombie_scene.experiment(lab, as_shipped=True)
    provenance = zombie_scene.results_of(run).provenance
    setting = (
        f"one node, {os.cpu_count()} cores, requeue 1 s; 5 scenarios in {provenance.took_s:g} s, waits {provenance.waited_s:g} s: "
        "grace 30 s twice, hook 20 s, states watched 3 s each; report not counted"
    )
    return measured(NAME, zombie_scene.share_of_waiting(run), TARGET, setting)
