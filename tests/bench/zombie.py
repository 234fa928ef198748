"""The whole termination experiment, as shipped, against what it waits for on purpose: graces and windows of observation."""

import os
from typing import Final

from tests.bench.row import Row, measured, not_measured
from tests.cluster import scene, zombie_scene
from tests.cluster.lab.debian import install_missing, require_root_on_debian
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.gobuild import build
from tests.cluster.lab.images import make_images
from tests.cluster.lab.lab import Lab
from tests.cluster.lab.network import DEFAULT_NAME, NetworkNamespace
from tests.cluster.lab.places import places
from tests.cluster.lab.starting import started

NAME: Final = "termination experiment, one repetition / what it waits for on purpose"
TARGET: Final = 2.0


def rows() -> list[Row]:
    """One row; not measured, with the reason, where the test cluster cannot run."""
    try:
        require_root_on_debian()
        install_missing()
        where = places()
        build(where)
        with started(where, NetworkNamespace(DEFAULT_NAME), make_images(where)) as lab:
            return [_row(lab)]
    except LabError as error:
        return [not_measured(NAME, TARGET, str(error))]


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
