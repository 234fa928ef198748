"""NVML behind a deadline: a driver that hangs makes a reading unknown, and never hangs the step.

A child stuck in the driver cannot be killed (state D); it is left behind, and while it lives no second one is started
(facts 3.8).
"""

import signal
from collections.abc import Callable
from functools import partial
from typing import Final

from steps.adapters.nvml.child import ask_nvml
from steps.adapters.nvml.fork import Child, has_ended, kill, start, wait
from steps.adapters.nvml.pci import pci_gpu_count
from steps.adapters.nvml.scan import failed_reading
from steps.contracts.document import decode
from steps.contracts.errors import BadInput
from steps.contracts.ports import GpuReading

DEADLINE_S: Final = 20.0
"""8 GPUs answer within a second; a GPU without persistence mode can take several to wake (facts 3.9)."""
_AFTER_KILL_S: Final = 1.0


class NvmlReader:
    """GpuReader over the library that the node's driver brings."""

    def __init__(self, deadline_s: float = DEADLINE_S, ask: Callable[[], bytes] = ask_nvml) -> None:
        """ask: what the child runs; it returns a GpuReading as JSON."""
        self._deadline_s = deadline_s
        self._ask = ask
        self._stuck: Child | None = None

    def begin(self) -> Callable[[], GpuReading]:
        """One look, begun; the function returned waits for it. If NVML does not answer within the deadline, counted from there,
        or the child dies or cannot be started, `gpus` is an error with a sentence."""
        if self._stuck is not None and not has_ended(self._stuck):
            words = f"NVML still hangs: process {self._stuck.pid} is stuck in the driver and cannot be killed; reboot the node"
            return partial(_failed, words)
        self._stuck = None
        try:
            child = start(self._ask)
        except OSError as error:
            return partial(_failed, f"the process that asks NVML could not be started: {error}")
        return partial(self._finish, child)

    def _finish(self, child: Child) -> GpuReading:
        try:
            ended = wait(child, self._deadline_s)
        except BaseException:
            self._end(child)
            raise
        if ended is None:
            self._end(child)
            return _failed(f"NVML did not answer within {self._deadline_s:g} s")
        if ended.code != 0:
            return _failed(f"the process that asks NVML ended with {_how(ended.code)}: {_last_line(ended.errors)}")
        try:
            return decode(ended.output, GpuReading, "what the process that asks NVML printed")
        except BadInput as error:
            return _failed(str(error))

    def _end(self, child: Child) -> None:
        if not kill(child, _AFTER_KILL_S):
            self._stuck = child


def _failed(reason: str) -> GpuReading:
    return failed_reading(reason, pci_gpu_count())


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
