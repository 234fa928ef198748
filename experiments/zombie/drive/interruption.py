"""SIGTERM as an exception, so that a run that is stopped half-way still cleans up. The emissary hands Argo's signal through."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from steps.contracts.errors import ReclaimError


class Interrupted(ReclaimError):
    """The run was stopped from outside."""


@contextmanager
def interruptible() -> Iterator[None]:
    """The first SIGTERM raises Interrupted where the program stands; a second one is left to wait while it cleans up."""
    before = signal.signal(signal.SIGTERM, _raise_once)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _raise_once(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Interrupted("the run was stopped half-way; the session was cleaned up")
