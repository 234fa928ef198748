"""The termination experiment on the simulator: the rendered workflow run here, then the faults that nobody can provoke at will.

Loaded by `gpu-reclaim experiment zombie --local` alone: it needs the simulator and the local runner, which the image does not hold.
"""

import fcntl
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from experiments.zombie.results import ZombieResults
from sim.clock import SimulatedClock
from sim.scenarios.builder import WorldBuilder
from sim.world.store import StateFile
from steps.contracts.document import MAX_DOCUMENT_BYTES, decode
from steps.contracts.errors import BadInput, SourceUnavailable
from steps.contracts.files import read_limited, write_atomically
from steps.contracts.run_record import NodeRecord
from workflows import MANIFESTS
from workflows.local import Setting, load, run_locally

NODE: Final = "gpu-sim-1"
PRODUCT: Final = "Simulated GPU (A100 80GB)"
NAMESPACES: Final = ("gpu-reclaim", "gpu-zombie-test")
MARKER: Final = ".gpu-reclaim-experiment"
"""Stands in a folder that this made: only such a folder is ever emptied."""
INJECTED: Final[Mapping[str, Mapping[str, str]]] = {
    "ghost": {"scenarios": "s2"},
    "stuck": {"scenarios": "s2", "grace-s": "5"},
}
"""Faults that are put in, by name: memory that a killed worker leaves without a process; a killed worker that stays in state D."""


@dataclass(frozen=True)
class LocalRun:
    """One finished run. folder: its evidence. injected: the fault that was put in, empty if none."""

    name: str
    injected: str
    phase: str
    folder: Path
    results: ZombieResults


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Raises BadInput if another run works in this folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f".{folder.name}.lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BadInput(f"another experiment runs in {folder}; let it end, or give another folder with --folder=PATH") from error
        yield


def emptied(folder: Path) -> Path:
    """The folder, empty. Raises BadInput rather than empty one that is not the experiment's own."""
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / MARKER).exists())):
        raise BadInput(f"{folder} exists and was not made by the experiment; give another one with --folder=PATH")
    shutil.rmtree(folder, ignore_errors=True)
    write_atomically(folder / MARKER, b"")
    return folder


def run_here(
    folder: Path, name: str, parameters: Mapping[str, str], on_node: Callable[[NodeRecord], None], *, injected: str = ""
) -> LocalRun:
    """Run the rendered experiment in a fresh world of one node with one GPU. Raises BadInput for a parameter it does not have,
    SourceUnavailable if it left no results."""
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


def fresh_world(state: Path, injected: str = "") -> None:
    """One node with one free GPU, and the namespaces of the experiment."""
    built = WorldBuilder(datetime.now(UTC))
    for namespace in NAMESPACES:
        built.namespace(namespace)
    built.node(NODE, PRODUCT, gpus=1, memory_gib=80)
    built.world.injected = injected
    StateFile(state).create(built.world)
