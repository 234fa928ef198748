"""The simulated NVML library under unmodified bindings. Needs gcc and Linux; without them this tier fails with a sentence."""

import ctypes
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from sim.node.state import State, ordinary_node
from sim.node.state_file import write_state

ROOT: Final = Path(__file__).parents[2]
BUILD: Final = ROOT / "sim" / "nvml" / "build.sh"
WORKLOAD: Final = ROOT / "sim" / "node" / "workload.py"
PATIENCE_S: Final = 10.0


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shim, built from the checkout's sources."""
    if not sys.platform.startswith("linux"):
        pytest.fail("the NVML shim is a Linux library: run this tier on Linux")
    built = tmp_path_factory.mktemp("lib") / "libnvidia-ml.so.1"
    made = subprocess.run([BUILD, built], capture_output=True, text=True, timeout=120, check=False)
    if made.returncode != 0:
        pytest.fail(f"the NVML shim could not be built: {made.stderr.strip()}")
    return built


class Node:
    """A simulated node: its folder and state, and the bindings loaded in this process."""

    def __init__(self, folder: Path, library: Path, nvml: ModuleType) -> None:
        self.folder, self.library, self.nvml = folder, library, nvml
        self.state = ordinary_node(1)

    @property
    def uuid(self) -> str:
        return self.state.gpus[0].uuid

    def write(self, state: State) -> None:
        self.state = state
        write_state(self.folder, state)

    def change(self, **changes: Any) -> None:
        """Change fields of the first GPU."""
        self.write(self.state.with_gpu(self.uuid, **changes))

    def handle(self, index: int = 0) -> Any:
        return self.nvml.nvmlDeviceGetHandleByIndex(index)

    def used(self) -> int:
        """Bytes in use beyond the baseline."""
        memory = self.nvml.nvmlDeviceGetMemoryInfo(self.handle(), self.nvml.nvmlMemory_v2)
        return int(memory.used) - self.state.gpus[0].baseline_bytes

    def listed(self) -> dict[int, int | None]:
        """PID and bytes of the compute processes."""
        return {one.pid: one.usedGpuMemory for one in self.nvml.nvmlDeviceGetComputeRunningProcesses_v3(self.handle())}

    def environment(self) -> dict[str, str]:
        """What a process of its own needs to load the library and find this node."""
        return {**os.environ, "GPU_SIM_DIR": str(self.folder), "LD_LIBRARY_PATH": str(self.library.parent)}


@pytest.fixture(scope="session")
def bindings(library: Path) -> ModuleType:
    """`pynvml` as installed. The library is loaded first, so that the bindings' lookup by SONAME finds it."""
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    return importlib.import_module("pynvml")


@pytest.fixture
def node(tmp_path: Path, library: Path, bindings: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """A node with one free GPU, initialised."""
    monkeypatch.setenv("GPU_SIM_DIR", str(tmp_path))
    made = Node(tmp_path, library, bindings)
    made.write(made.state)
    bindings.nvmlInit()
    yield made
    bindings.nvmlShutdown()


class Workload:
    """A running workload process and what it said when it was ready."""

    def __init__(self, process: "subprocess.Popen[str]", control: Path) -> None:
        self.process, self._control = process, control
        assert process.stdout is not None
        self.said: dict[str, Any] = json.loads(process.stdout.readline())

    @property
    def pid(self) -> int:
        return self.process.pid

    def order(self, mode: str) -> None:
        self._control.write_text(mode, encoding="utf-8")

    def end(self) -> None:
        """Kill it and its child, if there is one left."""
        self.process.kill()
        self.process.wait(PATIENCE_S)
        if self.said["child"] is not None and Path(f"/proc/{self.said['child']}").exists():
            os.kill(self.said["child"], 9)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def start(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Workload]]:
    """Start workloads on the node's first GPU; all are ended afterwards."""
    running: list[Workload] = []

    def begin(*flags: str) -> Workload:
        control = tmp_path_factory.mktemp("control") / "mode"
        words = ["--uuid", node.uuid, "--port", "0", "--devices", "/nonexistent", "--control", str(control), *flags]
        process = subprocess.Popen([sys.executable, WORKLOAD, *words], stdout=subprocess.PIPE, text=True, env=node.environment())
        running.append(Workload(process, control))
        return running[-1]

    yield begin
    for one in running:
        one.end()


def eventually(question: Callable[[], bool], what: str) -> None:
    """Wait until it is so, at most PATIENCE_S."""
    deadline = time.monotonic() + PATIENCE_S
    while not question():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:g} s: {what}"
        time.sleep(0.02)


def ask_elsewhere(node: Node, script: str, before: Sequence[str] = ()) -> Any:
    """Run Python with the bindings in a process of its own (`before`: a command that starts it) and decode the JSON it prints."""
    command = [*before, sys.executable, "-W", "error", "-c", f"import json\nfrom pynvml import *\nnvmlInit()\n{script}"]
    done = subprocess.run(command, env=node.environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
