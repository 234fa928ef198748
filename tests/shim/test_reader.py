"""The collector's reader over the simulated library: real child process, real bindings, real deadline."""

import os
import time
from collections.abc import Callable

import pytest

from sim.node.state import (
    GIB,
    GPU_IS_LOST,
    MIB,
    NO_ACTIVITY,
    Fault,
    MigInstance,
    ScriptedProcess,
    State,
    highest_version,
    ordinary_node,
)
from steps.adapters.nvml import NvmlReader
from steps.contracts.node_facts import GpuFacts, Health, Layout, MemoryAccounting
from steps.contracts.ports import GpuReading
from tests.shim.conftest import Node, Workload


@pytest.fixture
def read(node: Node, monkeypatch: pytest.MonkeyPatch) -> Callable[[], GpuReading]:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(node.library.parent))

    def read_once() -> GpuReading:
        return NvmlReader().begin()()

    return read_once


def only(reading: GpuReading) -> GpuFacts:
    gpus = reading.gpus.known()
    assert gpus is not None, reading.gpus.reason
    assert len(gpus) == 1
    return gpus[0]


def test_a_working_session_is_read_whole(node: Node, read: Callable[[], GpuReading], start: Callable[..., Workload]) -> None:
    worker = start("--mib", "1000", "--mode", "busy", "--utilisation", "90", "--sm", "70")
    gpu = only(read())
    assert (gpu.uuid, gpu.health, gpu.memory.accounting) == (node.uuid, Health.OK, MemoryAccounting.V2)
    assert gpu.memory.used_bytes.known() == 1004 * MIB
    processes = gpu.processes.known()
    assert processes is not None
    assert [(one.pid, one.used_memory_bytes.known()) for one in processes] == [(worker.pid, 1000 * MIB)]
    (activity,) = gpu.activity
    assert (activity.utilisation_ratio.known(), activity.sm_active_ratio.known()) == (0.9, 0.7)


def test_a_gpu_without_metrics_is_unknown_and_not_idle(node: Node, read: Callable[[], GpuReading]) -> None:
    node.change(faults=NO_ACTIVITY)
    (activity,) = only(read()).activity
    assert (activity.utilisation_ratio.known(), activity.sm_active_ratio.known()) == (None, None)


def test_a_hanging_driver_is_an_error_within_the_deadline(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(node.library.parent))
    node.write(State(gpus=node.state.gpus, faults=(Fault(function="nvmlDeviceGetMemoryInfo_v2", delay_ms=60_000),)))
    began = time.monotonic()
    reading = NvmlReader(deadline_s=2.0).begin()()
    assert time.monotonic() - began < 10
    assert reading.gpus.known() is None
    assert "did not answer within 2 s" in str(reading.gpus.reason)


def test_entries_of_another_size_are_a_layout_mismatch_and_give_no_processes(node: Node, read: Callable[[], GpuReading]) -> None:
    node.change(
        scripted=tuple(ScriptedProcess(kind="C", pid=pid, used_bytes=524288000) for pid in (1184, 16040, 19984, 20884)),
        entry_bytes=32,
    )
    gpu = only(read())
    assert (gpu.process_layout, gpu.processes.known()) == (Layout.MISMATCH, None)


def test_one_lost_gpu_is_one_of_the_gpus(node: Node, read: Callable[[], GpuReading]) -> None:
    node.write(ordinary_node(2))
    node.change(lost=GPU_IS_LOST)
    gpus = read().gpus.known()
    assert gpus is not None
    assert [(one.uuid, one.health) for one in gpus] == [(node.uuid, Health.LOST), (node.state.gpus[1].uuid, Health.OK)]
    assert gpus[0].memory.used_bytes.known() is None


def test_a_list_that_grew_is_asked_again(node: Node, read: Callable[[], GpuReading]) -> None:
    node.change(scripted=(ScriptedProcess(kind="C", pid=os.getpid(), used_bytes=GIB),), grow_by=50, grow_times=1)
    processes = only(read()).processes.known()
    assert processes is not None
    assert [one.pid for one in processes] == [os.getpid()]


def test_an_old_driver_is_read_by_its_older_calls(node: Node, read: Callable[[], GpuReading]) -> None:
    node.change(
        faults=(
            *highest_version("nvmlDeviceGetComputeRunningProcesses", 2),
            Fault(function="nvmlDeviceGetMemoryInfo_v2", error=13),
        ),
        scripted=(ScriptedProcess(kind="C", pid=os.getpid(), used_bytes=GIB),),
    )
    gpu = only(read())
    assert (gpu.memory.accounting, gpu.process_layout) == (MemoryAccounting.V1, Layout.PLAUSIBLE)
    processes = gpu.processes.known()
    assert processes is not None
    assert [one.pid for one in processes] == [os.getpid()]


def test_without_a_driver_the_reason_is_a_sentence(node: Node, read: Callable[[], GpuReading]) -> None:
    (node.folder / "state").unlink()
    reading = read()
    assert reading.gpus.known() is None
    assert "the NVIDIA driver is not loaded" in str(reading.gpus.reason)
    node.write(node.state)


def test_mig_instances_are_read_beside_their_gpu(node: Node, read: Callable[[], GpuReading]) -> None:
    node.change(mig=(MigInstance(uuid="MIG-a", gpu_instance=1, compute_instance=0, total_bytes=20 * GIB),))
    gpus = read().gpus.known()
    assert gpus is not None
    assert [(one.uuid, one.parent_uuid, one.memory.total_bytes.known()) for one in gpus] == [
        (node.uuid, None, 80 * GIB),
        ("MIG-a", node.uuid, 20 * GIB),
    ]
