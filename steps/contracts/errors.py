"""The one exception hierarchy. `str(error)` is the sentence a person reads: what, where, what to do."""

import enum
from typing import ClassVar


class Exit(enum.IntEnum):
    """What a process of gpu-reclaim says when it ends, for people and for Argo alike."""

    DONE = 0
    COULD_NOT = 1
    BAD_INPUT = 2
    FOUND_PROBLEMS = 3
    MEMORY_NOT_BACK = 4


class ReclaimError(Exception):
    """Root of all errors that gpu-reclaim raises on purpose; it could not do what was asked."""

    exit_code: ClassVar[Exit] = Exit.COULD_NOT


class BadInput(ReclaimError):
    """The caller can mend it: a wrong flag, a broken document, an unknown policy field."""

    exit_code = Exit.BAD_INPUT


class SourceUnavailable(ReclaimError):
    """A part of the outside did not answer, or refused: API server, NVML, /proc, a file."""


class OutcomeUnknown(SourceUnavailable):
    """A write was sent and no answer came: read again, never repeat it."""
