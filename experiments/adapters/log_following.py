"""Reads a pod's log along until its container has ended. The kubelet closes such an answer when it has sent the last line."""

import threading
from typing import Final

from steps.adapters.kubernetes.api import Api
from steps.contracts.document import Sample
from steps.contracts.errors import ReclaimError


class FollowedLog:
    """Fits ports.LogToItsEnd. Begins at once, in a thread of its own that keeps no process alive."""

    def __init__(self, api: Api, path: str, limit_bytes: int) -> None:
        """api: one whose answers may be silent for as long as a session lives."""
        self._api, self._path, self._limit_bytes = api, path, limit_bytes
        self._heard: Sample[str] | None = None
        self._thread: Final = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def whole(self, within_s: float) -> Sample[str] | None:
        """A log that fills its limit was cut, and is not whole."""
        self._thread.join(within_s)
        return self._heard

    def _listen(self) -> None:
        try:
            status, text = self._api.text(self._path, limit_bytes=self._limit_bytes)
        except ReclaimError:
            return
        if status == 200 and len(text.encode()) < self._limit_bytes:
            self._heard = Sample.measured(text)
