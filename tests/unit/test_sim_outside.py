"""The simulated outside: what it needs to be told, and the records of local runs."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from sim.outside import SimulatedOutside
from sim.runs import LocalRuns
from sim.scenarios.demo import demo_world
from sim.world.store import StateFile
from steps.contracts.document import Origin, State, encode
from steps.contracts.errors import BadInput
from steps.contracts.ports import Outside
from steps.contracts.run_record import RunRecord

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def outside(folder: Path, **environment: str) -> Outside:
    StateFile(folder / "state.json").create(demo_world(NOON))
    return SimulatedOutside(str(folder / "state.json"), environment)


def test_every_fact_of_a_simulated_world_says_where_it_comes_from(tmp_path: Path) -> None:
    assert outside(tmp_path).origin is Origin.SIMULATED


def test_a_container_reads_the_node_that_its_template_selected(tmp_path: Path) -> None:
    gpus = outside(tmp_path, GPU_RECLAIM_NODE="gpu-h100-1").gpus().begin()().gpus.known()
    assert gpus is not None
    assert len(gpus) == 8


def test_a_node_step_without_a_node_is_told_which_variable_is_missing(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="GPU_RECLAIM_NODE"):
        outside(tmp_path).gpus()
    with pytest.raises(BadInput, match="GPU_RECLAIM_RUNS_DIR"):
        outside(tmp_path).runs()


def test_the_cluster_of_the_demo_is_read_by_the_real_adapters(tmp_path: Path) -> None:
    cluster = outside(tmp_path).cluster()
    assert [(node.name, node.gpus, node.ready) for node in cluster.gpu_nodes()] == [
        ("gpu-a100-1", 4, True),
        ("gpu-h100-1", 8, True),
        ("gpu-l40s-1", 4, True),
    ]
    (waiter,) = cluster.waiters(None)
    assert "Insufficient nvidia.com/gpu" in (waiter.message.known() or "")


def test_the_clock_is_one_for_all_who_share_the_world(tmp_path: Path) -> None:
    first = outside(tmp_path)
    second = SimulatedOutside(str(tmp_path / "state.json"), {})
    first.clock.sleep(90)
    assert (second.clock.now() - NOON).total_seconds() == 90


def test_a_run_is_read_from_its_record_and_its_logs(tmp_path: Path) -> None:
    record = RunRecord(
        run="r",
        uid="u",
        template="sweep",
        phase="Running",
        message=None,
        parameters={},
        started_at=NOON,
        finished_at=None,
        nodes=(),
    )
    (tmp_path / "r.json").write_bytes(encode(record))
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "pod-1.main.log").write_text("first\nlast\n")
    runs = LocalRuns(tmp_path)
    assert runs.read("r") == record
    assert runs.log("pod-1", "main", 5).known() == "last\n"
    assert (runs.log("pod-2", "main", 5).value, runs.log("pod-2", "main", 5).state) == (None, State.ABSENT)
    with pytest.raises(BadInput, match=r"other\.json"):
        runs.read("other")
