"""Full looks at chosen moments, made beside the fast ones: a thread of its own, so that the fast looks go on meanwhile."""

import threading
from typing import Final

import msgspec

from experiments.zombie.recording import Portrait, WatchRecording
from steps.collect.look import look
from steps.contracts.errors import ReclaimError
from steps.contracts.parcel import pack
from steps.contracts.ports import Outside

MOST: Final = 36
JOIN_S: Final = 30.0
BUDGET_BYTES: Final = 96 * 1024
"""Of a whole recording as a parcel: an Argo argument holds 128 KiB."""


class Portraits:
    """take() begins one unless one is being made. failed: the sentences of those that could not be."""

    def __init__(self, node: str, outside: Outside) -> None:
        self._node, self._outside = node, outside
        self._thread: threading.Thread | None = None
        self.made: list[Portrait] = []
        self.failed: list[str] = []

    @property
    def busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def take(self) -> None:
        if not self.busy and len(self.made) < MOST:
            self._thread = threading.Thread(target=self._one, daemon=True)
            self._thread.start()

    def finish(self) -> None:
        """Wait for the one under way, and make a last one."""
        self._join()
        self.take()
        self._join()

    def _join(self) -> None:
        if self._thread is not None:
            self._thread.join(JOIN_S)

    def _one(self) -> None:
        try:
            facts = look(self._node, self._outside, 1, 0.0, made_by="watch")
            self.made.append(Portrait(at=facts.stamp.made_at, facts=facts))
        except ReclaimError as error:
            self.failed.append(str(error))


def fitted(recording: WatchRecording) -> WatchRecording:
    """The recording within its budget: portraits are left out from the end, but for the last one; how many, it says."""
    while len(recording.portraits) > 1 and len(pack(recording)) > BUDGET_BYTES:
        kept = (*recording.portraits[:-2], recording.portraits[-1])
        recording = msgspec.structs.replace(recording, portraits=kept, portraits_dropped=recording.portraits_dropped + 1)
    return recording
