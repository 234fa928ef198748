"""The simulated API where it is followed: the answer to a log that is read along ends with the container, as the kubelet's does."""

import time
from pathlib import Path
from typing import Final

from sim.api import StateFileApi
from sim.world.paths import target_of
from sim.world.store import StateFile

POLL_S: Final = 0.02


class FollowedLogApi(StateFileApi):
    """Answers `text` only once no container of the pod runs."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._state = StateFile(path)

    def text(self, path: str, *, limit_bytes: int) -> tuple[int, str]:
        heard = super().text(path, limit_bytes=limit_bytes)
        target = target_of(path.split("?", 1)[0])
        while target is not None and heard[0] == 200:
            with self._state.open() as world:
                heard = 200, world.logs.get(f"{target.namespace}/{target.name}", "")
                if target.object_path not in (box.path for box in world.boxes.values()):
                    return heard
            time.sleep(POLL_S)
        return heard
