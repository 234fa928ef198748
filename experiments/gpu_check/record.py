"""What the check writes down: figures by name, and for every section that could not run, why."""

from datetime import datetime
from typing import Literal

from steps.contracts.document import Document, Origin

Value = str | int | float | bool | None


class Measure(Document, frozen=True, kw_only=True):
    """One figure. value None: there is none, and `note` says why. unit: empty for names, counts and yes or no."""

    name: str
    value: Value
    unit: str = ""
    note: str = ""


class Section(Document, frozen=True, kw_only=True):
    """One part of the check. reason: why it did not run, or ended early; None if it ran to its end."""

    name: str
    reason: str | None
    took_s: float
    measures: tuple[Measure, ...]


class GpuCheck(Document, frozen=True, kw_only=True):
    """The whole record. origin: simulated says that no driver answered, and that no figure in here is one of a GPU."""

    document: Literal["GpuCheck/1"] = "GpuCheck/1"
    origin: Origin
    made_at: datetime
    driver: str | None
    nvml: str | None
    cuda: str | None
    model: str | None
    gpus: int | None
    kernel: str
    python: str
    took_s: float
    sections: tuple[Section, ...]


class CannotRun(Exception):
    """Why a section cannot run here, as a clause for a person."""
