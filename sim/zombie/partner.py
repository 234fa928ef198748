"""How drive and watch know of each other on the simulator: two lock files beside its state, which a crash lets go of."""

import fcntl
import os
from functools import cached_property
from pathlib import Path

from experiments.zombie.ports import Watching


class SimulatedPartner:
    """Two lock files beside the state: each step holds its own while it lives, so that a crash lets go."""

    def __init__(self, state: Path, key: str, is_watch: bool) -> None:
        mine, other = ("watch", "drive") if is_watch else ("drive", "watch")
        self._other = state.with_name(f".{key}.{other}")
        self._mine = os.open(state.with_name(f".{key}.{mine}"), os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(self._mine, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @cached_property
    def _seen(self) -> list[bool]:
        return []

    def watching(self) -> Watching:
        if self._other.exists() and self._other.read_bytes():
            return Watching.READY
        return Watching.ENDED if self._was_there_and_went() else Watching.NOT_YET

    def driving(self) -> bool:
        return self.other_lives()

    def say_ready(self) -> None:
        os.pwrite(self._mine, b"ready\n", 0)

    def _was_there_and_went(self) -> bool:
        held = self.other_lives()
        if held:
            self._seen.append(True)
        return self._other.exists() and not held and (bool(self._seen) or self._other.stat().st_size == 0)

    def other_lives(self) -> bool:
        """Whether the other step holds its lock."""
        try:
            handle = os.open(self._other, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False
