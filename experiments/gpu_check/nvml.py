"""NVML asked directly, beside the collector: always in a forked child with a deadline, so that this process never loads the
library and no call can hang the check."""

import json
from collections.abc import Callable
from typing import Any, Final

from experiments.gpu_check.record import CannotRun
from steps.adapters.nvml.fork import kill, start, wait

DEADLINE_S: Final = 30.0
_AFTER_KILL_S: Final = 1.0

Answer = Any
"""What JSON can carry; each caller knows what it asked for."""


def ask(question: Callable[[Any], Answer], deadline_s: float = DEADLINE_S) -> Answer:
    """The answer of `question`, which gets the initialised bindings. Raises CannotRun: no answer in time, or NVML refused."""

    def work() -> bytes:
        import pynvml  # noqa: PLC0415 - only the child may load the library

        pynvml.nvmlInit()
        try:
            return json.dumps(question(pynvml)).encode()
        finally:
            pynvml.nvmlShutdown()

    child = start(work)
    ended = wait(child, deadline_s)
    if ended is None:
        kill(child, _AFTER_KILL_S)
        raise CannotRun(f"NVML did not answer within {deadline_s:g} s")
    if ended.code != 0:
        raise CannotRun(ended.errors.decode("utf-8", "replace").strip() or f"the process that asks NVML ended with {ended.code}")
    return json.loads(ended.output)


def attempt(nvml: Any, call: Callable[[], Answer]) -> dict[str, Answer]:
    """{"value": ...} or {"error": "words (NVML code)"} of one call."""
    try:
        return {"value": call()}
    except nvml.NVMLError as error:
        return {"error": f"{error} (NVML {error.value})"}
    except nvml.NVMLLibraryMismatchError as error:
        return {"error": str(error)}


def used_bytes(nvml: Any, handle: Any) -> int:
    """v2 accounting where the driver has it, else v1."""
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2).used)
    except nvml.NVMLError:
        return int(nvml.nvmlDeviceGetMemoryInfo(handle).used)
