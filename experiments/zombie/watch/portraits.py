"""Full looks at chosen moments, made beside the fast ones: a thread of its own, so that the fast looks go on meanwhile."""

import threading
from collections.abc import Callable
from typing import Final

import msgspec

from experiments.zombie.recording import Portrait, WatchRecording
from steps.collect.look import look
from steps.contracts.errors import ReclaimError
from steps.contracts.parcel import pack
from steps.contracts.ports import Outside

MOST: Final = 36
JOIN_S: Final = 30.0
PROOF_LOOKS: Final = 3
PROOF_INTERVAL_S: Final = 30.0
"""What a ghost or a process stuck in the driver needs before it may be called that (facts/gpu-and-linux 8)."""
BUDGET_BYTES: Final = 96 * 1024
"""Of a whole recording as a parcel: an Argo argument holds 128 KiB."""


class Portraits:
    """take() begins one unless one is being made. failed: the sentences of those that could not be."""

    def __init__(self, node: str, outside: Outside, beside: Callable[[Callable[[], None]], threading.Thread]) -> None:
        """beside: begins some work beside the fast looks."""
        self._node, self._outside, self._beside = node, outside, beside
        self._thread: threading.Thread | None = None
        self.made: list[Portrait] = []
        self.failed: list[str] = []

    @property
    def busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def take(self) -> None:
        if not self.busy and len(self.made) < MOST:
            self._thread = self._beside(self._one)

    def finish(self, *, left_over: bool) -> None:
        """Wait for the one under way, and make a last one; left_over: as long a look as a proof takes."""
        self._join()
        if left_over:
            self._one(PROOF_LOOKS, PROOF_INTERVAL_S)
        else:
            self._one()

    def _join(self) -> None:
        if self._thread is not None:
            self._thread.join(JOIN_S)

    def _one(self, looks: int = 1, interval_s: float = 0.0) -> None:
        try:
            facts = look(self._node, self._outside, looks, interval_s, made_by="watch")
            self.made.append(Portrait(at=facts.stamp.made_at, facts=facts))
        except ReclaimError as error:
            self.failed.append(str(error))


def fitted(recording: WatchRecording) -> WatchRecording:
    """The recording within its budget: portraits are left out from the end, but for the last one; how many, it says."""
    while len(recording.portraits) > 1 and len(pack(recording)) > BUDGET_BYTES:
        kept = (*recording.portraits[:-2], recording.portraits[-1])
        recording = msgspec.structs.replace(recording, portraits=kept, portraits_dropped=recording.portraits_dropped + 1)
    return recording
