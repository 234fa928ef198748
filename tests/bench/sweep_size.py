"""What one simulated sweep costs by the size of its cluster: `python -m tests.bench.sweep_size NODES SESSIONS`.

No ratio and no row of `make bench`: its figures say how large a world the simulator is good for (docs/limits.md).
"""

import os
import resource
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from sim.clock import SimulatedClock
from sim.scenarios.large import TEAMS, large_world
from sim.world.store import StateFile
from steps.archive.evidence import load_evidence
from workflows import MANIFESTS
from workflows.local import Setting, load, run_locally

POLICY = f"mode: act\nnamespaces: [{', '.join(TEAMS)}]\nidle_after_s: 900\nminimum_age_s: 600\nmax_stops_per_sweep: 3\n"
LOOKS = {"look-interval-s": "5"}
"""Simulated time adds up what runs side by side: with the shipped 30 s the first readings were too old for the judge."""


def main(nodes: int, sessions: int) -> None:
    """Build the world, sweep it once, print what both took. 2 cores, 8 containers at once, as every local run."""
    began = time.perf_counter()
    world = large_world(datetime.now(UTC), nodes, sessions)
    built_s = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        state = folder / "cluster.json"
        StateFile(state).create(world)
        (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
        setting = Setting(
            runs_folder=folder / "runs",
            claims={"gpu-reclaim-evidence": folder / "evidence"},
            config_maps={"gpu-reclaim-policy": {"policy.yaml": folder / "policy.yaml"}},
            environment={**os.environ, "GPU_RECLAIM_SIMULATOR": str(state), "GPU_RECLAIM_RUNS_DIR": str(folder / "runs")},
            now=SimulatedClock(state).now,
        )
        began = time.perf_counter()
        record = run_locally(load(MANIFESTS / "sweep.yaml"), LOOKS, setting, run="sweep-1", uid="sweep-1")
        swept_s = time.perf_counter() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        verdicts = Counter(one.reason.value for one in load_evidence(folder / "evidence/sweep-1").decisions)
        size_mib = state.stat().st_size / 1024**2
    pods = sum(node.kind == "Pod" for node in record.nodes)
    print(f"{nodes} nodes, {sessions} sessions: state {size_mib:.1f} MiB, built in {built_s:.1f} s")
    print(f"sweep {record.phase}: {swept_s:.1f} s, CPU of its {pods} pods {used.ru_utime + used.ru_stime:.1f} s, {dict(verdicts)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
