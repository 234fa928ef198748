"""Memory is held by real processes, and comes back when the kernel says so."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from sim.node.state import MIB, MigInstance
from sim.node.state_file import remove_leftovers
from tests.shim.conftest import PATIENCE_S, WORKLOAD, Node, Workload, ask_elsewhere, eventually

Start = Callable[..., Workload]


def test_a_process_that_allocates_is_listed_with_its_bytes(node: Node, start: Start) -> None:
    worker = start("--mib", "1000")
    assert node.used() == 1000 * MIB
    assert node.listed() == {worker.pid: 1000 * MIB}
    assert "python" in node.nvml.nvmlSystemGetProcessName(worker.pid)


def test_a_context_without_memory_is_listed_and_an_allocation_without_context_is_not(node: Node, start: Start) -> None:
    worker = start("--mib", "0")
    start()
    assert (node.used(), node.listed()) == (0, {worker.pid: 0})


def test_two_processes_add_up(node: Node, start: Start) -> None:
    one, other = start("--mib", "100"), start("--mib", "20")
    assert (node.used(), node.listed()) == (120 * MIB, {one.pid: 100 * MIB, other.pid: 20 * MIB})


def test_a_session_that_ignores_sigterm_gives_its_memory_back_when_it_is_killed(node: Node, start: Start) -> None:
    worker = start("--mib", "1000", "--on-term", "ignore")
    worker.process.send_signal(signal.SIGTERM)
    worker.order("busy")
    eventually(lambda: node.nvml.nvmlDeviceGetUtilizationRates(node.handle()).gpu == 95, "it lives on and obeys")
    assert node.used() == 1000 * MIB
    worker.process.kill()
    worker.process.wait(PATIENCE_S)
    assert (node.used(), node.listed()) == (0, {})


@pytest.mark.parametrize("kind", ["fork", "setsid"])
def test_a_forked_child_keeps_the_memory_of_its_dead_parent_and_nvml_does_not_list_it(node: Node, start: Start, kind: str) -> None:
    worker = start("--mib", "1000", "--child", kind)
    assert node.listed() == {worker.pid: 1000 * MIB}
    worker.process.kill()
    worker.process.wait(PATIENCE_S)
    assert (node.used(), node.listed()) == (1000 * MIB, {})
    os.kill(worker.said["child"], signal.SIGKILL)
    eventually(lambda: node.used() == 0, "the child's memory is back")


def test_a_parent_that_is_a_zombie_is_not_listed_although_its_child_holds_the_memory(node: Node, start: Start) -> None:
    worker = start("--mib", "1000", "--child", "fork")
    worker.process.kill()  # and not waited for
    eventually(lambda: node.listed() == {}, "the zombie is not listed")
    assert " Z " in Path(f"/proc/{worker.pid}/stat").read_text(encoding="utf-8")
    assert node.used() == 1000 * MIB


def test_a_child_with_a_context_of_its_own_is_listed_by_its_own_pid(node: Node, start: Start) -> None:
    worker = start("--mib", "1000", "--child", "own", "--child-mib", "200")
    child = worker.said["child"]
    eventually(lambda: node.listed() == {worker.pid: 1000 * MIB, child: 200 * MIB}, "parent and child are listed")
    worker.process.kill()
    worker.process.wait(PATIENCE_S)
    assert (node.used(), node.listed()) == (200 * MIB, {child: 200 * MIB})


def test_a_reader_in_another_pid_namespace_sees_the_memory_and_no_process(node: Node, start: Start) -> None:
    start("--mib", "1000", "--mode", "busy")
    script = (
        "h = nvmlDeviceGetHandleByIndex(0)\n"
        "print(json.dumps([nvmlDeviceGetMemoryInfo(h, nvmlMemory_v2).used, len(nvmlDeviceGetComputeRunningProcesses_v3(h)),"
        " nvmlDeviceGetUtilizationRates(h).gpu]))"
    )
    namespace = ("unshare", *(() if os.geteuid() == 0 else ("--map-root-user",)), "--pid", "--fork", "--mount-proc")
    baseline = node.state.gpus[0].baseline_bytes
    assert ask_elsewhere(node, script) == [1000 * MIB + baseline, 1, 95]
    assert ask_elsewhere(node, script, namespace) == [1000 * MIB + baseline, 0, 95]


def test_work_is_seen_while_it_is_done(node: Node, start: Start) -> None:
    worker = start("--mib", "1000", "--utilisation", "60", "--sm", "40")
    rates = node.nvml.nvmlDeviceGetUtilizationRates
    assert rates(node.handle()).gpu == 0
    with pytest.raises(node.nvml.NVMLError_NotFound):
        node.nvml.nvmlDeviceGetProcessUtilization(node.handle(), 0)
    worker.order("busy")
    eventually(lambda: rates(node.handle()).gpu == 60, "it is busy by order")
    (sample,) = node.nvml.nvmlDeviceGetProcessUtilization(node.handle(), 0)
    assert (sample.pid, sample.smUtil) == (worker.pid, 60)
    worker.process.send_signal(signal.SIGUSR1)
    eventually(lambda: rates(node.handle()).gpu == 0, "it is idle by signal")
    worker.process.send_signal(signal.SIGUSR2)
    eventually(lambda: rates(node.handle()).gpu == 60, "it is busy by signal")
    worker.process.kill()
    worker.process.wait(PATIENCE_S)
    assert rates(node.handle()).gpu == 0


def test_work_of_several_processes_adds_up_to_a_hundred_at_most(node: Node, start: Start) -> None:
    for _ in range(2):
        start("--mib", "1", "--mode", "busy", "--utilisation", "70")
    assert node.nvml.nvmlDeviceGetUtilizationRates(node.handle()).gpu == 100


def test_a_child_does_not_seem_to_work_after_its_busy_parent_died(node: Node, start: Start) -> None:
    worker = start("--mib", "1000", "--mode", "busy", "--child", "fork")
    eventually(lambda: node.nvml.nvmlDeviceGetUtilizationRates(node.handle()).gpu == 95, "it is busy")
    worker.process.kill()
    worker.process.wait(PATIENCE_S)
    eventually(lambda: node.nvml.nvmlDeviceGetUtilizationRates(node.handle()).gpu == 0, "nobody works")
    assert node.used() == 1000 * MIB


def test_a_session_can_give_its_memory_back_and_live_on(node: Node, start: Start) -> None:
    worker = start("--mib", "1000", "--child", "fork")
    worker.order("free")
    eventually(lambda: node.used() == 0, "the memory is back")
    assert worker.process.poll() is None


@pytest.mark.parametrize(("on_term", "left"), [("exit", 1000 * MIB), ("cleanup", 0)])
def test_sigterm_leaves_the_child_behind_unless_the_session_cleans_up(node: Node, start: Start, on_term: str, left: int) -> None:
    worker = start("--mib", "1000", "--child", "fork", "--on-term", on_term)
    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(PATIENCE_S) == 0
    assert node.used() == left


def test_a_session_answers_over_http(node: Node, start: Start) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    worker = start("--mib", "1", "--port", str(port))
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE_S) as answer:
        said = json.load(answer)
    assert (answer.status, said["pid"], said["computing"]) == (200, worker.pid, False)


def test_a_session_keeps_its_device_nodes_open(node: Node, start: Start, tmp_path_factory: pytest.TempPathFactory) -> None:
    devices = tmp_path_factory.mktemp("dev")
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm"):
        (devices / name).touch()
    worker = start("--devices", str(devices))
    held = {str(path.readlink()) for path in Path(f"/proc/{worker.pid}/fd").iterdir()}
    assert {str(devices / "nvidia0"), str(devices / "nvidiactl")} <= held
    assert str(devices / "nvidia-uvm") not in held


def test_a_workload_without_a_simulated_gpu_says_so(node: Node, tmp_path: Path) -> None:
    words = ["--uuid", "GPU-of-nobody", "--mib", "1", "--port", "0", "--control", str(tmp_path / "control" / "mode")]
    done = subprocess.run(
        [sys.executable, WORKLOAD, *words], env=node.environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "No such file or directory; is this pod given a simulated GPU?" in done.stderr


def test_a_file_whose_lock_is_gone_counts_for_nothing_and_is_removed(node: Node, start: Start) -> None:
    worker = start("--mib", "1000")
    alive = start("--mib", "1")
    worker.process.kill()
    worker.process.wait(PATIENCE_S)
    assert node.used() == MIB
    assert remove_leftovers(node.folder) == 1
    assert node.listed() == {alive.pid: MIB}


def test_a_reader_that_asks_at_the_same_moment_is_not_taken_for_a_holder(node: Node, start: Start) -> None:
    start("--mib", "1000").end()
    (left,) = (node.folder / "memory" / node.uuid).iterdir()
    with left.open("rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        assert (node.used(), node.listed()) == (0, {})


def test_files_that_are_no_allocation_are_left_out(node: Node, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = node.folder / "memory" / node.uuid
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "locked"
    (folder / "512.link").symlink_to(elsewhere)
    (folder / "512.folder").mkdir()
    with (
        elsewhere.open("wb") as other,
        (folder / "not-bytes.x").open("wb") as strange,
        (folder / ".512.hidden").open("wb") as hidden,
    ):
        for file in (other, strange, hidden):
            fcntl.flock(file, fcntl.LOCK_EX)
        assert (node.used(), node.listed()) == (0, {})


def test_compute_instances_of_one_gpu_instance_share_its_memory(node: Node) -> None:
    node.change(
        mig=tuple(MigInstance(uuid=f"MIG-{ci}", gpu_instance=3, compute_instance=ci, total_bytes=100 * MIB) for ci in (0, 1))
    )
    with (node.folder / "memory" / "MIG-1" / f"{40 * MIB}.C.test").open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        first, second = (node.nvml.nvmlDeviceGetMigDeviceHandleByIndex(node.handle(), index) for index in (0, 1))
        assert [node.nvml.nvmlDeviceGetMemoryInfo(one).used for one in (first, second)] == [40 * MIB, 40 * MIB]
        assert node.used() == 40 * MIB  # counted once on the parent
        assert node.nvml.nvmlDeviceGetComputeRunningProcesses_v3(first) == []
        (own,) = node.nvml.nvmlDeviceGetComputeRunningProcesses_v3(second)
        assert (own.pid, own.usedGpuMemory, own.gpuInstanceId, own.computeInstanceId) == (os.getpid(), 40 * MIB, 3, 1)
        assert node.listed() == {os.getpid(): None}  # the parent lists it and does not know its memory
