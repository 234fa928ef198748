"""The simulated API where it is followed: the answer to a log that is read along ends with the container, as the kubelet's does."""

import threading
import time
from pathlib import Path
from typing import Final

from experiments.adapters.log_following import FollowedLog
from experiments.adapters.sessions import Exec, KubernetesSessions
from sim.api import StateFileApi
from sim.world.paths import target_of
from sim.world.store import StateFile

POLL_S: Final = 0.02
BEGIN_S: Final = 30.0
"""Real seconds that a reader has to begin."""


class FollowedLogApi(StateFileApi):
    """Answers `text` only once no container of the pod runs."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._state = StateFile(path)
        self.begun = threading.Event()

    def text(self, path: str, *, limit_bytes: int) -> tuple[int, str]:
        heard = super().text(path, limit_bytes=limit_bytes)
        self.begun.set()
        target = target_of(path.split("?", 1)[0])
        while target is not None and heard[0] == 200:
            with self._state.open() as world:
                heard = 200, world.logs.get(f"{target.namespace}/{target.name}", "")
                if target.object_path not in (box.path for box in world.boxes.values()):
                    return heard
            time.sleep(POLL_S)
        return heard


class SimulatedSessions(KubernetesSessions):
    """A log is being read once follow_log() returns: simulated time waits for drive, not for the thread that reads."""

    def __init__(self, path: Path, execute: Exec, namespace: str) -> None:
        self._followed = FollowedLogApi(path)
        super().__init__(StateFileApi(path), execute, namespace, patient=self._followed)

    def follow_log(self, pod: str) -> FollowedLog:
        self._followed.begun.clear()
        log = super().follow_log(pod)
        self._followed.begun.wait(BEGIN_S)
        return log
