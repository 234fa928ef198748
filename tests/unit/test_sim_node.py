"""What the simulated node reports, and that what it cannot report is unknown and never zero."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sim.readers import SimulatedAllocations, SimulatedGpus, SimulatedProcesses, SimulatedTree
from sim.scenarios.builder import GIB, MIB, WorldBuilder
from sim.scenarios.demo import demo_world
from sim.world.state import Behaviour, SimNode
from sim.world.store import StateFile
from steps.contracts.document import State
from steps.contracts.errors import BadInput, SourceUnavailable
from steps.contracts.node_facts import GpuFacts, Health, Scan
from steps.contracts.ports import ProcessScan

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def state_of(folder: Path, behaviour: Behaviour, change: Callable[[SimNode], None] = lambda node: None) -> Path:
    built = WorldBuilder(NOON)
    built.namespace("team")
    node = built.node("node-1", "GPU-X", gpus=2, memory_gib=80)
    built.session("team", "a", "GPU-X", behaviour)
    built.wait(minutes=1)
    change(node)
    StateFile(folder / "state.json").create(built.world)
    return folder / "state.json"


def gpus_of(path: Path) -> tuple[GpuFacts, ...]:
    gpus = SimulatedGpus(path, "node-1").begin()().gpus.known()
    assert gpus is not None
    return gpus


def scan_of(path: Path) -> ProcessScan:
    reader = SimulatedProcesses(path, "node-1")
    devices = reader.devices(gpus_of(path)).known()
    assert devices is not None
    return reader.scan(devices, (), Scan.FULL)


def test_a_working_session_shows_memory_activity_holder_and_allocation(tmp_path: Path) -> None:
    path = state_of(tmp_path, Behaviour(memory_bytes=10 * GIB, sm_ratio=0.9, busy_gpus=1, connections=2))
    gpu, other = gpus_of(path)
    assert gpu.memory.used_bytes.known() == 10 * GIB + 4 * MIB
    assert (gpu.activity[0].sm_active_ratio.known(), other.activity[0].sm_active_ratio.known()) == (0.9, 0.0)
    scan = scan_of(path)
    assert [hold.gpu_uuid for process in scan.processes for hold in process.holds] == [gpu.uuid]
    assert [namespace.established.known() for namespace in scan.sockets.known() or ()] == [2]
    assert [entry.device_id for entry in SimulatedAllocations(path, "node-1").read().known() or ()] == [gpu.uuid]


def test_missing_metrics_are_absent_and_not_zero(tmp_path: Path) -> None:
    gpu, _ = gpus_of(state_of(tmp_path, Behaviour(memory_bytes=GIB, breaks_metrics=True)))
    readings = (gpu.activity[0].utilisation_ratio, gpu.activity[0].sm_active_ratio, gpu.process_activity)
    assert [(reading.value, reading.state) for reading in readings] == [(None, State.ABSENT)] * 3
    assert gpu.memory.used_bytes.known() == GIB + 4 * MIB


def test_a_latched_counter_shows_full_utilisation_over_empty_memory(tmp_path: Path) -> None:
    gpu, _ = gpus_of(state_of(tmp_path, Behaviour(latches_counter=True)))
    assert (gpu.activity[0].utilisation_ratio.known(), gpu.memory.used_bytes.known()) == (1.0, 4 * MIB)
    assert gpu.processes.known() == ()


def test_a_lost_gpu_does_not_end_the_scan_of_the_others(tmp_path: Path) -> None:
    def lose_first(node: SimNode) -> None:
        node.gpus[0].lost = True

    lost, other = gpus_of(state_of(tmp_path, Behaviour(memory_bytes=GIB), lose_first))
    assert (lost.health, lost.memory.used_bytes.state, lost.processes.state) == (Health.LOST, State.ERROR, State.ERROR)
    assert (other.health, other.memory.used_bytes.known()) == (Health.OK, 4 * MIB)


def test_a_silent_node_answers_nothing(tmp_path: Path) -> None:
    def silence(node: SimNode) -> None:
        node.silent = True

    path = state_of(tmp_path, Behaviour(), silence)
    with pytest.raises(SourceUnavailable, match="node-1"):
        SimulatedGpus(path, "node-1").begin()()
    with pytest.raises(SourceUnavailable, match="node-1"):
        SimulatedAllocations(path, "node-1").read()


def test_an_unknown_node_is_bad_input_that_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="node-1"):
        SimulatedGpus(state_of(tmp_path, Behaviour()), "node-9").begin()()


@pytest.mark.parametrize("secret", ["--token=hunter2", "--password hunter2", "HF_TOKEN=hunter2", "-c 'login --password=hunter2'"])
def test_a_simulated_command_line_loses_its_secrets_as_a_real_one_does(secret: str, tmp_path: Path) -> None:
    path = state_of(tmp_path, Behaviour(command=f"python3 serve.py {secret} --epochs=3", memory_bytes=GIB))
    listed = [process.command.known() or "" for process in scan_of(path).processes]
    whole = [process.command.known() or "" for process in SimulatedTree(path, "node-1").read().processes]
    assert len(listed) == 1
    for command in (*listed, *whole):
        assert "hunter2" not in command
        assert command.startswith("python3 serve.py ")
        assert command.endswith(" --epochs=3")


def test_the_demo_has_every_case_the_product_must_tell_apart() -> None:
    world = demo_world(NOON)
    pods = {item["metadata"]["labels"]["app"]: item for item in world.objects.values() if item["kind"] == "Pod"}
    waiting = [name for name, pod in pods.items() if pod["status"]["phase"] == "Pending"]
    assert (world.now, waiting) == (NOON, ["dora-finetune"])
    assert set(pods) == {
        "alice-train", "bob-notebook", "carol-lab", "dave-vscode", "dora-finetune", "erin-jupyter", "frank-eval",
    }  # fmt: skip
    alive = {pod["metadata"]["uid"] for pod in pods.values()}
    leaked = [process.pod_uid in alive for process in world.nodes["gpu-l40s-1"].processes]
    assert leaked.count(False) == 1
    assert [gpu.ghost_bytes // GIB for gpu in world.nodes["gpu-l40s-1"].gpus] == [0, 0, 0, 11]
    assert [(gpu.latched, gpu.metrics) for gpu in world.nodes["gpu-l40s-1"].gpus[:2]] == [(True, True), (False, False)]
