"""How the steps of a scenario know of each other on the simulator: lock files beside its state, which a crash lets go of.

Beside its lock, who follows the world says until when it waits. While it acts, the world stands still: so what is seen does not
depend on how fast a machine is, or on what else runs on it.
"""

import fcntl
import os
import time
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Final

from experiments.zombie.ports import Watching
from steps.contracts.errors import SourceUnavailable

WATCH: Final = "watch"
DRIVE: Final = "drive"
ONLOOKER: Final = "onlooker"
"""Whoever else must miss nothing: a test that stops drive at a certain moment."""
FOLLOWERS: Final = (DRIVE, ONLOOKER)
TRIES: Final = 500
RETRY_S: Final = 0.002
"""A look at a lock holds it for a moment; who wants it for good tries again."""


class SimulatedPartner:
    """Files beside the state: each step holds its own lock while it lives. Raises SourceUnavailable if another holds it."""

    def __init__(self, state: Path, key: str, role: str) -> None:
        self._state, self._key = state, key
        self._other = self._file(DRIVE if role == WATCH else WATCH)
        self._turn = self._turn_of(role)
        self._mine = os.open(self._file(role), os.O_RDWR | os.O_CREAT, 0o644)
        if not _locked(self._mine):
            os.close(self._mine)
            raise SourceUnavailable(f"another {role} of {key} is at work on {state}; end it first, or give another run")
        self._turn.unlink(missing_ok=True)

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

    def wait_until(self, moment: datetime) -> None:
        """Say that nothing will be done before this moment of the world."""
        fresh = self._turn.with_name(f"{self._turn.name}.new")
        fresh.write_text(moment.isoformat(), encoding="ascii")
        fresh.replace(self._turn)

    def turns(self) -> list[datetime | None]:
        """Until when each living follower of the world waits. A moment that has come, or None: it acts."""
        return [self._turn_said_by(role) for role in FOLLOWERS if _is_held(self._file(role))]

    def close(self) -> None:
        """Let go, as the end of the process does."""
        os.close(self._mine)

    def other_lives(self) -> bool:
        """Whether the other step holds its lock."""
        return _is_held(self._other)

    def _was_there_and_went(self) -> bool:
        held = self.other_lives()
        if held:
            self._seen.append(True)
        return self._other.exists() and not held and (bool(self._seen) or self._other.stat().st_size == 0)

    def _turn_said_by(self, role: str) -> datetime | None:
        try:
            return datetime.fromisoformat(self._turn_of(role).read_text(encoding="ascii"))
        except FileNotFoundError:
            return None

    def _file(self, role: str) -> Path:
        return self._state.with_name(f".{self._key}.{role}")

    def _turn_of(self, role: str) -> Path:
        return self._state.with_name(f".{self._key}.{role}.until")


def _locked(handle: int) -> bool:
    for _ in range(TRIES):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(RETRY_S)
        else:
            return True
    return False


def _is_held(path: Path) -> bool:
    """Whether a step holds this lock. Asked with a shared one, so that two who ask do not take each other for the step."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
