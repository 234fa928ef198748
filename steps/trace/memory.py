"""How much of a GPU's memory nothing explains, and what that amount means (facts/gpu-and-linux 3.5). Bytes throughout."""

import enum
from dataclasses import dataclass
from typing import Final

from steps.contracts.document import Sample
from steps.contracts.node_facts import GpuMemory, MemoryAccounting

MIB: Final = 1024 * 1024
ALLOWANCE_BYTES: Final = 64 * MIB
GHOST_BYTES: Final = 256 * MIB
GHOST_SHARE_V1: Final = 0.02
"""Of the total, with v1 accounting: its driver-reserved part is not known exactly."""
RESERVED_SHARE_V1: Final = 0.025
"""Published idle figures with v1 (912 of 40960, 517 of 23028, 308 of 24 GB, H20 below 1 of 96 GB) stay below this share."""


class Level(enum.Enum):
    """baseline: what an idle device shows. drift: more, but below the ghost threshold. above: beyond it."""

    BASELINE = "baseline"
    DRIFT = "drift"
    ABOVE = "above"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Rest:
    """level of what is left unexplained; bytes: how much that is, None if it cannot be computed; sentence: with figures."""

    level: Level
    bytes: int | None
    sentence: str


def baseline_bytes(memory: GpuMemory) -> Sample[int]:
    """What an idle device uses, nothing learned: nothing with v2, the driver's reserve with v1 (unknown if not reported)."""
    if memory.accounting is MemoryAccounting.V2:
        return Sample.measured(0, source="v2 accounting, nothing learned")
    reserved = memory.reserved_bytes.known()
    if reserved is None:
        return Sample.absent("v1 accounting counts the driver's reserve as used and does not tell it")
    return Sample.measured(reserved, source="driver-reserved memory")


def unexplained_bytes(memory: GpuMemory, used: Sample[int], explained: Sample[int]) -> Sample[int]:
    """Used less baseline less what processes account for. Unknown as soon as one input is; may be slightly negative."""
    values = {"used": used.known(), "baseline": baseline_bytes(memory).known(), "the processes' memory": explained.known()}
    for name, value in values.items():
        if value is None:
            return Sample.absent(f"{name} is not known")
    known = [value for value in values.values() if value is not None]
    return Sample.measured(known[0] - known[1] - known[2])


def judge_rest(memory: GpuMemory, used: Sample[int], explained: Sample[int]) -> Rest:
    """What the memory beyond `explained` means. Unknown if `used` is, or if an unknown part could decide it."""
    used_bytes, explained_bytes = used.known(), explained.known()
    if used_bytes is None:
        return Rest(Level.UNKNOWN, None, f"used memory is not known: {used.reason or used.state.value}")
    if used_bytes <= ALLOWANCE_BYTES:
        return Rest(Level.BASELINE, used_bytes, f"{mib(used_bytes)} used, within the idle allowance")
    if explained_bytes is None:
        return Rest(Level.UNKNOWN, None, f"{mib(used_bytes)} used, and what its processes hold of it is not known")
    base = baseline_bytes(memory).known()
    if base is None:
        return _without_reserve(memory, used_bytes - explained_bytes)
    rest = used_bytes - base - explained_bytes
    return _graded(memory, rest)


def _graded(memory: GpuMemory, rest: int) -> Rest:
    if rest <= ALLOWANCE_BYTES:
        return Rest(Level.BASELINE, rest, f"{mib(rest)} beyond baseline and processes, within the idle allowance")
    limit = GHOST_BYTES
    if memory.accounting is MemoryAccounting.V1:
        total = memory.total_bytes.known()
        if total is None and rest > limit:
            return Rest(Level.UNKNOWN, rest, f"{mib(rest)} unexplained with v1 accounting, and the device's total is not known")
        limit = limit if total is None else max(limit, int(total * GHOST_SHARE_V1), _idle_in_v1(memory, total))
    if rest <= limit:
        return Rest(Level.DRIFT, rest, f"{mib(rest)} beyond baseline and processes, below the ghost threshold of {mib(limit)}")
    return Rest(Level.ABOVE, rest, f"{mib(rest)} that neither baseline nor a process explains")


def _idle_in_v1(memory: GpuMemory, total: int) -> int:
    """What an idle device of this size may show beyond the reserve that it tells. Without this a device that tells a small one
    would be judged harder than one that tells none."""
    told = memory.reserved_bytes.known()
    return ALLOWANCE_BYTES + int(total * RESERVED_SHARE_V1) - (0 if told is None else told)


def _without_reserve(memory: GpuMemory, rest: int) -> Rest:
    """v1 with its reserve untold: what published idle devices show is drift; more than that could be either."""
    total = memory.total_bytes.known()
    if rest <= ALLOWANCE_BYTES:
        return Rest(Level.BASELINE, rest, f"{mib(rest)} beyond processes, within the idle allowance")
    if rest <= GHOST_BYTES or (total is not None and rest <= ALLOWANCE_BYTES + int(total * RESERVED_SHARE_V1)):
        words = "which with v1 accounting an idle device of this size may show as the driver's reserve"
        return Rest(Level.DRIFT, rest, f"{mib(rest)} beyond processes, {words}")
    return Rest(Level.UNKNOWN, rest, f"{mib(rest)} beyond processes, and v1 accounting does not tell the driver's reserve in it")


def mib(count: int) -> str:
    """Bytes for people, rounded to MiB."""
    return f"{count / MIB:.0f} MiB"
