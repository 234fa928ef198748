"""One thing that doctor has to say."""

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from steps.contracts.document import Sample

T = TypeVar("T")


class Standing(enum.Enum):
    """note: it works, and somebody should know it. unknown: it could not be read, so it may be a problem."""

    GOOD = "ok"
    NOTE = "note"
    UNKNOWN = "unknown"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """remedy: what to do, for problems and what is unknown."""

    standing: Standing
    subject: str
    sentence: str
    remedy: str | None = None


def good(subject: str, sentence: str) -> Finding:
    return Finding(Standing.GOOD, subject, sentence)


def note(subject: str, sentence: str) -> Finding:
    return Finding(Standing.NOTE, subject, sentence)


def problem(subject: str, sentence: str, remedy: str) -> Finding:
    return Finding(Standing.PROBLEM, subject, sentence, remedy)


def of_reading(subject: str, reading: Sample[T], judge: Callable[[T], Finding]) -> Finding:
    """The judgement of a reading, or that there is none and why."""
    return of_list(subject, reading, lambda known: [judge(known)])[0]


def of_list(subject: str, reading: Sample[T], judge: Callable[[T], Sequence[Finding]]) -> Sequence[Finding]:
    """The same where a reading may give several findings."""
    known = reading.known()
    if known is not None:
        return judge(known)
    remedy = "ask somebody who may read it, or read it with more rights"
    return [Finding(Standing.UNKNOWN, subject, f"it could not be read: {reading.reason or reading.state.value}", remedy)]


def of_object(subject: str, reading: Sample[T], judge: Callable[[T], Finding], remedy: str) -> Finding:
    """Like of_reading, for an object that must be there: absent is a problem."""
    absent = reading.known() is None and reading.state.value == "absent"
    return problem(subject, reading.reason or "absent", remedy) if absent else of_reading(subject, reading, judge)
