"""Times, spans, ratios and amounts in words for people. Unknown is said as unknown; no number is made up."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from steps.contracts.document import Sample, State

T = TypeVar("T")


def say_span(seconds: float) -> str:
    """`45 s`, `38 min`, `3 h 20 min`, `2 d 4 h`: rounded down, so that a limit is never said to be met before it is."""
    whole = int(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 2 * 3600:
        return f"{whole // 60} min"
    if whole < 48 * 3600:
        return _two(whole // 3600, "h", whole % 3600 // 60, "min")
    return _two(whole // 86400, "d", whole % 86400 // 3600, "h")


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large} {large_unit} {small} {small_unit}" if small else f"{large} {large_unit}"


def say_time(moment: datetime, now: datetime) -> str:
    """`14:02 UTC`, with the date if it is not today's."""
    return f"{moment:%H:%M} UTC" if moment.date() == now.date() else f"{moment:%Y-%m-%d %H:%M} UTC"


def say_ratio(ratio: float) -> str:
    """`63 %`; what is above zero never reads as 0 %."""
    return f"{ratio * 100:.0f} %" if ratio == 0 or ratio >= 0.01 else "below 1 %"


def say_bytes(amount: int) -> str:
    """`18.9 GiB`, `300 MiB`, `512 B`."""
    size = float(amount)
    for unit in ("B", "KiB", "MiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def say_unknown(sample: Sample[T]) -> str:
    """Why a reading carries no value one may judge by."""
    if sample.state is State.MEASURED and sample.value is not None:
        raise ValueError("a measured reading is not unknown")
    return f"{sample.state.value}: {sample.reason}" if sample.reason else sample.state.value


def count_of(amount: int, thing: str) -> str:
    """`1 GPU`, `3 GPUs`."""
    return f"{amount} {thing}" if amount == 1 else f"{amount} {thing}s"


def join_and(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def later(moment: datetime, seconds: float) -> datetime:
    return moment + timedelta(seconds=seconds)
