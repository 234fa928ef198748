"""The same story on the simulator: one node, one GPU, A idle on it and B waiting. What comes out must be the same."""

import os
import re
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sim.clock import SimulatedClock
from sim.scenarios.builder import MIB, WorldBuilder
from sim.world.state import Behaviour
from sim.world.store import StateFile
from steps.contracts.run_record import RunRecord
from tests.cluster.scene import GRACE_S, HELD_MIB, IDLE_AFTER_S, QUICK, TEAM, Run
from workflows import MANIFESTS
from workflows.local import Setting, load, run_locally

PRODUCT: Final = "Simulated GPU"


def acting_sweep(folder: Path) -> Run:
    """The sweep that stops A: after one that only looked, and the idle time of the policy."""
    _world(folder / "cluster.json")
    (folder / "policy.yaml").write_text(f"mode: act\nnamespaces: [{TEAM}]\nidle_after_s: {IDLE_AFTER_S}\nminimum_age_s: 1\n")
    _sweep(folder, "first")
    SimulatedClock(folder / "cluster.json").sleep(IDLE_AFTER_S + 1)
    _sweep(folder, "acted")
    return Run("acted", {}, folder / "evidence" / "acted")


def outline(record: RunRecord) -> set[tuple[str, str]]:
    """(path, phase) of every node that a template made; what stands in brackets after a fan-out's member is left out.

    archive is left out: it writes the record while it runs.
    """
    nodes = ((_path(node.name, record.run), node.phase) for node in record.nodes if node.template != "archive")
    return {(path, phase) for path, phase in nodes if not path.endswith(".onExit")}


def _path(name: str, run: str) -> str:
    return re.sub(r"\([^()]*\)", "()", name.removeprefix(run))


def _world(state: Path) -> None:
    built = WorldBuilder(datetime.now(UTC))
    for name in ("gpu-reclaim", TEAM):
        built.namespace(name)
    built.node("node-a", PRODUCT, gpus=1, memory_gib=80)
    idle = Behaviour(command="python3 /opt/session/workload.py", memory_bytes=HELD_MIB * MIB, exits_after_s=None)
    built.session(TEAM, "a", PRODUCT, idle, grace_s=GRACE_S)
    built.wait(minutes=1)
    built.session(TEAM, "b", PRODUCT, idle, grace_s=GRACE_S)
    built.wait(minutes=1)
    StateFile(state).create(built.world)


def _sweep(folder: Path, run: str) -> None:
    runs = folder / "runs"
    environment: Mapping[str, str] = {
        **os.environ,
        "GPU_RECLAIM_SIMULATOR": str(folder / "cluster.json"),
        "GPU_RECLAIM_RUNS_DIR": str(runs),
    }
    setting = Setting(
        runs_folder=runs,
        claims={"gpu-reclaim-evidence": folder / "evidence"},
        config_maps={"gpu-reclaim-policy": {"policy.yaml": folder / "policy.yaml"}},
        environment=environment,
        now=SimulatedClock(folder / "cluster.json").now,
    )
    record = run_locally(
        load(MANIFESTS / "sweep.yaml"),
        {"dry-run": "false", **QUICK},
        setting,
        run=run,
        uid=str(uuid.uuid4()),
        on_node=lambda _: None,
    )
    assert record.phase == "Succeeded", f"the local sweep {run} ended as {record.phase}: {record.message}"
