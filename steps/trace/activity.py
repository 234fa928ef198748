"""Whether a GPU did work over the looks at it (facts/gpu-and-linux 3.6). An unknown figure is a gap, never a zero."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from steps.contracts.document import Sample, State
from steps.contracts.node_facts import Activity

LOW_SM_RATIO: Final = 0.10
"""At or below it few SMs work while kernels run: one looped thread shows 0.012 on 80 SMs, a matrix product 0.984. It only
leads to a notice, so it may be generous; where exactly it lies is policy."""
NOT_THERE: Final = (State.ABSENT, State.NOT_APPLICABLE)
"""States of a figure that this device or driver does not have."""
BUSY_RATIO: Final = 0.5
"""Utilisation from which kernels count as running most of the time."""
PHANTOM_RATIO: Final = 0.95


class Work(enum.Enum):
    """low: kernels run most of the time and few SMs work, or run at all and none does. unknown: no work seen, and a look
    without any figure."""

    NONE = "none"
    LOW = "low"
    REAL = "real"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Window:
    work: Work
    sentence: str
    pinned: bool
    """Utilisation at 95 % or more in every look."""
    looks: int


def read_window(activity: Sequence[Activity]) -> Window:
    """All looks as one window. One figure above zero is work; all zero needs a figure in every look."""
    util = [moment.utilisation_ratio.known() for moment in activity]
    graphics = [moment.graphics_active_ratio.known() for moment in activity]
    sm = [moment.sm_active_ratio.known() for moment in activity]
    pinned = bool(util) and all(value is not None and value >= PHANTOM_RATIO for value in util)
    looks = "1 look" if len(activity) == 1 else f"{len(activity)} looks"
    figures = f"{_range('utilisation', util)}, {_range('SM activity', sm)} in {looks}"
    if all(value is None or value <= 0 for value in (*util, *graphics, *sm)):
        idle = bool(activity) and all(_tells_idleness(moment) for moment in activity)
        return Window(Work.NONE if idle else Work.UNKNOWN, figures, pinned, len(activity))
    return Window(_amount(util, graphics, sm), figures, pinned, len(activity))


def _tells_idleness(moment: Activity) -> bool:
    """It has a figure that any kernel would move. SM activity stays at zero beside a kernel that waits, so it is one by itself only
    where the device has no utilisation (MIG). A figure that this device has and that could not be read may have shown work."""
    figures = (moment.utilisation_ratio, moment.graphics_active_ratio, moment.sm_active_ratio)
    if any(one.known() is None and one.state not in NOT_THERE for one in figures):
        return False
    return any(one.known() is not None for one in figures)


def _amount(util: Sequence[float | None], graphics: Sequence[float | None], sm: Sequence[float | None]) -> Work:
    """How much, once any figure is above zero."""
    busy = max((value for value in (*util, *graphics) if value is not None), default=0.0) >= BUSY_RATIO
    known_sm = [value for value in sm if value is not None]
    all_known = len(known_sm) == len(sm)
    few = all_known and busy and max(known_sm) <= LOW_SM_RATIO
    none = all_known and max(known_sm) <= 0  # kernels were counted, and in no look did an SM work: nobody measured real work
    return Work.LOW if few or none else Work.REAL


def _range(name: str, values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return f"{name} unknown"
    gap = "" if len(known) == len(values) else " (with gaps)"
    shown = f"{min(known):.1%}" if min(known) == max(known) else f"{min(known):.1%} to {max(known):.1%}"
    return f"{name} {shown}{gap}"


def largest(samples: Sequence[Sample[float]], taken_at: datetime | None = None) -> Sample[float]:
    """The largest of the looks if it is above zero; else unknown if any look is unknown; else zero. taken_at: of the last look,
    so that whoever judges by it knows its age."""
    known = [value for sample in samples if (value := sample.known()) is not None]
    if known and max(known) > 0:
        return Sample.measured(max(known), taken_at=taken_at)
    gap = next((sample for sample in samples if sample.known() is None), None)
    if gap is not None:
        return gap
    return Sample.measured(0.0, taken_at=taken_at) if known else Sample.absent("there was no look")
