"""The collector's reader over the simulated library: real child process, real bindings, real deadline."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from sim.node.state import (
    GIB,
    GPU_IS_LOST,
    MIB,
    NO_ACTIVITY,
    PROCESSES_REFUSED,
    Accounted,
    Fault,
    MigInstance,
    ScriptedProcess,
    State,
    highest_version,
    ordinary_node,
)
from steps.adapters.nvml import NvmlReader
from steps.contracts.document import Sample
from steps.contracts.document import State as State_
from steps.contracts.node_facts import GpuFacts, Health, Layout, MemoryAccounting
from steps.contracts.ports import GpuReading
from tests.shim.conftest import ROOT, Node, Workload


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


def test_accounting_names_the_latest_dead_with_their_peak_and_leaves_the_living_out(
    node: Node, read: Callable[[], GpuReading]
) -> None:
    node.change(
        accounting=True,
        accounted=(
            Accounted(pid=11, running=False, gpu_percent=5, peak_bytes=GIB, time_ms=1500, start_us=100),
            Accounted(pid=12, running=True, gpu_percent=5, peak_bytes=GIB, time_ms=0, start_us=200),
            Accounted(pid=13, running=False, gpu_percent=5, peak_bytes=2 * GIB, time_ms=2500, start_us=300),
        ),
    )
    remembered = only(read()).accounted.known()
    assert remembered is not None
    assert [(one.pid, one.peak_memory_bytes.known(), one.ran_s) for one in remembered] == [(13, 2 * GIB, 2.5), (11, GIB, 1.5)]


def test_with_accounting_off_the_dead_are_not_applicable_and_not_none(node: Node, read: Callable[[], GpuReading]) -> None:
    gpu = only(read())
    assert (gpu.accounting_mode.known(), gpu.accounted.state) == (False, State_.NOT_APPLICABLE)


@pytest.mark.parametrize("used", [0, 8 * GIB])
def test_lists_that_nvml_refuses_are_told_and_never_no_processes(node: Node, read: Callable[[], GpuReading], used: int) -> None:
    node.change(faults=PROCESSES_REFUSED, ghost_bytes=used)
    reading = read()
    assert (only(reading).processes.value, only(reading).processes.state) == (None, State_.ERROR)
    assert "NVML 4" in str(only(reading).processes.reason)
    assert reading.refused == ("list of compute processes",)


NO_PERMISSION = 4
CALLS = {
    "memory": "nvmlDeviceGetMemoryInfo_v2",
    "utilisation": "nvmlDeviceGetUtilizationRates",
    "processes": "nvmlDeviceGetComputeRunningProcesses_v3",
    "power": "nvmlDeviceGetPowerUsage",
    "accounting": "nvmlDeviceGetAccountingMode",
}


@pytest.mark.parametrize("code", sorted(set(range(1, 31)) - {3, 7, 13, 25} | {999}))
@pytest.mark.parametrize("call", sorted(CALLS))
def test_whatever_one_call_answers_its_reading_is_unknown_with_the_code_and_the_others_stand(
    node: Node, read: Callable[[], GpuReading], call: str, code: int
) -> None:
    """Facts 3.8, code by code. 3, 7, 13 and 25 have answers of their own, and tests of their own."""
    node.change(faults=(Fault(function=CALLS[call], error=code),))
    reading = read()
    gpu = only(reading)
    readings: dict[str, Sample[Any]] = {
        "memory": gpu.memory.used_bytes,
        "utilisation": gpu.activity[-1].utilisation_ratio,
        "processes": gpu.processes,
        "power": gpu.power_w,
        "accounting": gpu.accounting_mode,
    }
    assert (readings[call].state, f"NVML {code}" in str(readings[call].reason)) == (State_.ERROR, True)
    lost = {15: Health.LOST, 16: Health.RESET_REQUIRED}
    assert gpu.health is lost.get(code, Health.OK)
    assert gpu.temperature_c.known() is not None
    assert bool(reading.refused) == (code == NO_PERMISSION)


@pytest.mark.parametrize(
    ("code", "words"),
    [(9, "wait for its pod, or load it"), (12, "run this on a GPU node"), (18, "reload it or reboot"), (999, "NVML 999")],
)
def test_an_init_that_fails_says_what_to_do_and_loses_no_gpu(
    node: Node, read: Callable[[], GpuReading], code: int, words: str
) -> None:
    """999 at init in one container only is a fault of its device access: nothing is said of any GPU (facts 3.8)."""
    node.write(State(gpus=node.state.gpus, faults=(Fault(function="nvmlInitWithFlags", error=code),)))
    reading = read()
    assert (reading.gpus.state, words in str(reading.gpus.reason)) == (State_.ERROR, True)


def test_without_the_library_the_reason_says_where_to_run(node: Node) -> None:
    """In a process of its own: this one has the library loaded for good."""
    ask = "from steps.adapters.nvml import NvmlReader; print(NvmlReader().begin()().gpus.reason)"
    nowhere = {**node.environment(), "LD_LIBRARY_PATH": "/nonexistent"}
    told = subprocess.run(
        [sys.executable, "-c", ask], env=nowhere, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert "libnvidia-ml.so.1 is not here: run this on a GPU node" in told.stdout


def test_mig_instances_are_read_beside_their_gpu(node: Node, read: Callable[[], GpuReading]) -> None:
    node.change(mig=(MigInstance(uuid="MIG-a", gpu_instance=1, compute_instance=0, total_bytes=20 * GIB),))
    gpus = read().gpus.known()
    assert gpus is not None
    assert [(one.uuid, one.parent_uuid, one.memory.total_bytes.known()) for one in gpus] == [
        (node.uuid, None, 80 * GIB),
        ("MIG-a", node.uuid, 20 * GIB),
    ]
