"""NVML's process list from inside and outside a PID namespace: old drivers tell all the node's PIDs, new ones translate."""

import json
import os
import shutil
import subprocess
import sys
import time
from typing import Any, Final

from experiments.gpu_check.nvml import ask
from experiments.gpu_check.record import CannotRun, Measure
from experiments.gpu_check.workers import Starter

SETTLED_S: Final = 0.5
TIMEOUT_S: Final = 60.0
_SCRIPT: Final = """
import json, pynvml, sys
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(int(sys.argv[1]))
print(json.dumps([[p.pid, p.usedGpuMemory] for p in pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)]))
"""


def from_both_sides(starter: Starter) -> tuple[Measure, ...]:
    """The same GPU with one worker of the outer namespace on it. Raises CannotRun without root or `unshare`."""
    unshare = shutil.which("unshare")
    if unshare is None or os.geteuid() != 0:
        raise CannotRun("a PID namespace needs root and the program `unshare`")
    with starter.running("idle") as worker:
        time.sleep(SETTLED_S)
        outside = ask(lambda nvml: _listed(nvml, starter.index))
        command = (unshare, "--pid", "--fork", "--mount-proc", sys.executable, "-c", _SCRIPT, str(starter.index))
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise CannotRun(f"the list could not be read inside: {done.stderr.strip()[-200:]}")
    inside = json.loads(done.stdout)
    return (
        *_entries("outside", outside, worker.pid),
        *_entries("inside", inside, worker.pid),
    )


def _listed(nvml: Any, index: int) -> list[list[int | None]]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    return [[one.pid, one.usedGpuMemory] for one in nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)]


def _entries(where: str, listed: list[list[int | None]], pid: int) -> tuple[Measure, Measure]:
    shown = ", ".join(f"{one} ({memory} B)" for one, memory in listed) or "none"
    return (
        Measure(name=f"{where}: processes listed", value=len(listed), note=shown),
        Measure(name=f"{where}: the worker under the node's PID", value=pid in [one for one, _ in listed]),
    )
