"""The termination experiment on the simulator: the rendered workflow run here, then the faults that nobody can provoke at will.

Loaded by `gpu-reclaim experiment zombie --local` alone: it needs the simulator and the local runner, which the image does not hold.
"""

import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from experiments.zombie.drive.declaration import STEP as DRIVE
from experiments.zombie.results import ZombieResults
from sim.clock import SimulatedClock
from sim.scenarios.builder import WorldBuilder
from sim.world.store import StateFile
from steps.contracts.document import MAX_DOCUMENT_BYTES, decode
from steps.contracts.errors import BadInput, SourceUnavailable
from steps.contracts.files import read_limited
from steps.contracts.run_record import NodeRecord
from workflows import MANIFESTS
from workflows.local import Setting, load, run_locally

NODE: Final = "gpu-sim-1"
PRODUCT: Final = "Simulated GPU (A100 80GB)"
NAMESPACES: Final = ("gpu-reclaim", "gpu-zombie-test")
INJECTED: Final[Mapping[str, Mapping[str, str]]] = {
    "ghost": {"scenarios": "s2", "observe-s": "6"},
    "stuck": {"scenarios": "s2", "grace-s": "5"},
}
"""Faults that are put in, by name: memory that a killed worker leaves without a process, watched for longer than a driver may take;
a killed worker that stays in state D."""


@dataclass(frozen=True)
class LocalRun:
    """One finished run. folder: its evidence. injected: the fault that was put in, empty if none."""

    name: str
    injected: str
    phase: str
    folder: Path
    results: ZombieResults


def run_here(
    folder: Path, name: str, parameters: Mapping[str, str], on_node: Callable[[NodeRecord], None], *, injected: str = ""
) -> LocalRun:
    """Run the rendered experiment in a fresh world of one node with one GPU. Raises BadInput for a parameter it does not have or
    a value that a step would refuse, SourceUnavailable if it left no results."""
    check(parameters)
    state = folder / f"{name}.json"
    fresh_world(state, injected)
    runs, evidence = folder / "runs", folder / "evidence"
    environment = {**os.environ, "GPU_RECLAIM_SIMULATOR": str(state), "GPU_RECLAIM_RUNS_DIR": str(runs)}
    setting = Setting(
        runs_folder=runs,
        claims={"gpu-reclaim-evidence": evidence},
        config_maps={},
        environment=environment,
        now=SimulatedClock(state).now,
    )
    given = {"node": NODE, "backend": "simulated", **INJECTED.get(injected, {}), **parameters}
    record = run_locally(load(MANIFESTS / "zombie.yaml"), given, setting, run=name, uid=str(uuid.uuid4()), on_node=on_node)
    path = evidence / name / "results" / "results.json"
    if not path.exists():
        raise SourceUnavailable(f"{name} ended as {record.phase} and left no results; read the logs below {runs / name}")
    results = decode(read_limited(path, MAX_DOCUMENT_BYTES), ZombieResults, str(path))
    return LocalRun(name, injected, record.phase, evidence / name, results)


def check(parameters: Mapping[str, str]) -> None:
    """Raises BadInput for a value that drive would refuse: better now than once in each scenario."""
    for one in DRIVE.inputs:
        value = parameters.get(one.name)
        if value is not None and not one.admits(value):
            raise BadInput(f"parameter {one.name!r} is {value!r}; give {one.words}")


def fresh_world(state: Path, injected: str = "") -> None:
    """One node with one free GPU, and the namespaces of the experiment."""
    built = WorldBuilder(datetime.now(UTC))
    for namespace in NAMESPACES:
        built.namespace(namespace)
    built.node(NODE, PRODUCT, gpus=1, memory_gib=80)
    built.world.injected = injected
    StateFile(state).create(built.world)
