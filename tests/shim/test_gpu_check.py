"""The check for a machine with a real driver, against the simulated library: every section runs or says why it does not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.gpu_check import fields, idle
from experiments.gpu_check.__main__ import check
from experiments.gpu_check.record import CannotRun, GpuCheck, Section
from sim.node.state import GIB, GPU_IS_LOST, ScriptedProcess, not_supported
from steps.contracts.document import Origin, decode
from tests.shim.conftest import ROOT, Node

SECTIONS = (
    "collector against driver",
    "idle baseline",
    "call costs",
    "activity under three loads",
    "a forked child that keeps memory",
    "process list and PID namespaces",
    "time from SIGKILL to memory free",
)


def figures(section: Section) -> dict[str, object]:
    return {measure.name: measure.value for measure in section.measures}


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> GpuCheck:
    """One whole run, as `make gpu-check` starts it."""
    out = tmp_path_factory.mktemp("record") / "gpu-check.json"
    command = [sys.executable, "-m", "experiments.gpu_check", "--simulated", f"--out={out}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no figure below is one of a GPU" in done.stdout
    return decode(out.read_bytes(), GpuCheck, str(out))


@pytest.mark.timeout(180)
def test_a_rehearsal_runs_every_section_and_says_that_it_is_simulated(rehearsal: GpuCheck) -> None:
    assert (rehearsal.origin, rehearsal.driver) == (Origin.SIMULATED, "580.95.05")
    assert "Simulated" in str(rehearsal.model)
    assert [section.name for section in rehearsal.sections] == list(SECTIONS)
    not_run = {section.name: section.reason for section in rehearsal.sections if section.reason is not None}
    assert not_run == ({} if os.geteuid() == 0 else {SECTIONS[5]: "a PID namespace needs root and the program `unshare`"})


def test_the_collector_agrees_with_the_driver_in_every_field(rehearsal: GpuCheck) -> None:
    section = rehearsal.sections[0]
    assert figures(section)["fields that differ from the driver"] == 0
    assert [measure for measure in section.measures if measure.note.startswith("DIFFERS")] == []
    assert "energy" in str(figures(section)["fields absent on this model"])


def test_known_work_shows_in_the_figures(rehearsal: GpuCheck) -> None:
    seen = figures(rehearsal.sections[3])
    assert (seen["memory only: utilisation"], seen["one thread: utilisation"]) == (0.0, 1.0)
    assert (seen["one thread: SM activity"], seen["matrix: SM activity"]) == (0.01, 0.98)


def test_memory_that_a_forked_child_keeps_is_held_and_comes_back_with_its_end(rehearsal: GpuCheck) -> None:
    seen = figures(rehearsal.sections[4])
    assert seen["held after the parent's death"] == GIB
    assert seen["NVML lists the child"] is False
    assert isinstance(seen["child's end to memory free"], float)


def test_twenty_kills_are_timed(rehearsal: GpuCheck) -> None:
    seen = figures(rehearsal.sections[6])
    assert seen["kills"] == 20
    assert isinstance(seen["SIGKILL to memory free, median"], float)


@pytest.fixture
def checked(node: Node, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(node.library.parent))
    return node


def test_a_gpu_in_use_has_no_idle_baseline_and_a_missing_reading_is_named(checked: Node) -> None:
    checked.change(
        scripted=(ScriptedProcess(kind="C", pid=os.getpid(), used_bytes=GIB),), faults=not_supported("nvmlDeviceGetPowerUsage")
    )
    with pytest.raises(CannotRun, match="the GPU is not idle"):
        idle.baseline(0)
    seen = {measure.name: measure.value for measure in fields.compare(0)}
    assert "power" in str(seen["fields absent on this model"])
    assert seen["fields that differ from the driver"] == 0


def test_a_collector_that_reads_something_else_than_the_driver_says_differs(checked: Node) -> None:
    field = next(field for field in fields.FIELDS if field.name == "memory total")
    gpu = fields.collected(0)
    told = fields.told(field, field.collector(gpu), {"value": 1})
    assert (told.value, told.note) == (gpu.memory.total_bytes.known(), "DIFFERS: driver 1")
    refused = fields.told(field, field.collector(gpu), {"error": "Not Supported (NVML 3)"})
    assert refused.note.startswith("DIFFERS: driver: Not Supported")


def test_without_a_gpu_every_section_says_why_it_did_not_run(checked: Node) -> None:
    checked.change(lost=GPU_IS_LOST)
    record = check(7, simulator=checked.folder, kills=1)
    assert record.model is None
    reasons = {section.name: section.reason for section in record.sections}
    assert all(reason for name, reason in reasons.items()), reasons


# --- the worker for a real GPU, against a library that checks how it is called


@pytest.fixture(scope="module")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cuda")
    source = Path(__file__).with_name("fake_cuda.c")
    command = [
        "gcc",
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fPIC",
        "-shared",
        "-o",
        str(folder / "libcuda.so.1"),
        str(source),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return folder


def work(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "experiments.gpu_check.worker", *words]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("mode", ["idle", "one-thread", "matrix"])
def test_the_worker_calls_cuda_as_its_header_says(cuda: Path, mode: str) -> None:
    done = work(cuda, "0", "64", mode, "none", "0.3")
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, {"child": None}, "")


def test_the_worker_names_its_forked_child(cuda: Path) -> None:
    done = work(cuda, "0", "64", "idle", "fork", "0.3")
    assert json.loads(done.stdout)["child"] > 1


def test_a_refusal_of_the_driver_is_a_sentence(cuda: Path) -> None:
    done = work(cuda, "0", "63", "idle", "none", "1")
    assert (done.returncode, json.loads(done.stdout)) == (1, {"cannot": "cuMemAlloc_v2 answered 1 (fake error 1)"})


def test_without_the_library_the_worker_says_so(tmp_path: Path) -> None:
    done = work(tmp_path, "0", "64", "idle", "none", "1")
    assert done.returncode == 1
    assert "libcuda.so.1 cannot be loaded" in json.loads(done.stdout)["cannot"]
