"""SIGTERM as something to know of, so that a run that is stopped half-way still cleans up and hands over what it recorded.

Never as an exception out of the handler: that is raised wherever the program stands, and in a destructor Python drops it, and the
stop with it. The emissary hands Argo's signal through.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from steps.contracts.errors import ReclaimError

STOPPED: Final = "the run was stopped half-way"


class Interrupted(ReclaimError):
    """The run was stopped from outside."""


@contextmanager
def stop_noticed() -> Iterator[Callable[[], bool]]:
    """A function that says whether SIGTERM has come."""
    seen: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        seen.append(number)

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield lambda: bool(seen)
    finally:
        signal.signal(signal.SIGTERM, before)
