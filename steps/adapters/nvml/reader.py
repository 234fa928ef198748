"""NVML behind a deadline: a driver that hangs makes a reading unknown, and never hangs the step.

The child is a fresh interpreter and no fork: forking a process that may have threads is unsafe, and a fork would inherit
what the parent has open. It costs about a tenth of a second, once a look. A child stuck in the driver cannot be killed (state
D); it is left behind, and while it lives no second one is started (facts 3.8).
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import steps
from steps.adapters.nvml.pci import pci_gpu_count
from steps.adapters.nvml.scan import failed_reading
from steps.contracts.document import decode
from steps.contracts.errors import BadInput
from steps.contracts.ports import GpuReading

DEADLINE_S: Final = 20.0
"""8 GPUs answer within a second; a GPU without persistence mode can take several to wake (facts 3.9)."""
_AFTER_KILL_S: Final = 1.0
_CHILD: Final = (sys.executable, "-P", "-m", "steps.adapters.nvml.child")


class NvmlReader:
    """GpuReader over the library that the node's driver brings."""

    def __init__(self, deadline_s: float = DEADLINE_S, child: Sequence[str] = _CHILD) -> None:
        """child: the command that prints a GpuReading as JSON."""
        self._deadline_s = deadline_s
        self._child = tuple(child)
        self._stuck: subprocess.Popen[bytes] | None = None

    def read(self) -> GpuReading:
        """One look. If NVML does not answer in time, or the child dies, `gpus` is an error with a sentence."""
        if self._stuck is not None and self._stuck.poll() is None:
            return _failed(
                f"NVML still hangs: process {self._stuck.pid} is stuck in the driver and cannot be killed; reboot the node"
            )
        self._stuck = None
        with_path = {**os.environ, "PYTHONPATH": _search_path()}
        child = subprocess.Popen(
            self._child, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=with_path
        )
        try:
            output, errors = child.communicate(timeout=self._deadline_s)
        except subprocess.TimeoutExpired:
            self._end(child)
            return _failed(f"NVML did not answer within {self._deadline_s:g} s")
        except BaseException:
            self._end(child)
            raise
        if child.returncode != 0:
            return _failed(f"the process that asks NVML ended with {_how(child.returncode)}: {_last_line(errors)}")
        try:
            return decode(output, GpuReading, "what the process that asks NVML printed")
        except BadInput as error:
            return _failed(str(error))

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """Kill it, and do not wait for ever: in state D a kill stays pending."""
        child.kill()
        try:
            child.communicate(timeout=_AFTER_KILL_S)
        except subprocess.TimeoutExpired:
            self._stuck = child


def _failed(reason: str) -> GpuReading:
    return failed_reading(reason, pci_gpu_count())


def _search_path() -> str:
    """Where this package lies, first: the child must be of the same version, wherever it is started from."""
    here = str(Path(steps.__path__[0]).parent)
    given = os.environ.get("PYTHONPATH")
    return here if not given else f"{here}{os.pathsep}{given}"


def _how(code: int) -> str:
    if code >= 0:
        return f"code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _last_line(errors: bytes) -> str:
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else "it said nothing"
