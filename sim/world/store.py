"""The state file: one lock, read, change, replace. Several processes use it at once; a kill leaves the old or the new one.

A version of it is never written to, only replaced: so who only looks needs no lock, and decodes each version once.
"""

import fcntl
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import msgspec

from sim.world.state import World
from sim.world.timeline import settle
from steps.contracts.errors import BadInput


class StateFile:
    """Door to a world on disk. Raises BadInput if the file is missing or no world."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = path.with_name(path.name + ".lock")
        self._seen: _Version | None = None

    def create(self, world: World) -> None:
        """Write a fresh world, over whatever was there."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked():
            settle(world)
            self._replace(msgspec.json.encode(world))

    def read(self) -> World:
        """The world as it is now, for looking only: a change to it is lost, or seen by the next look."""
        with self._readable():
            if self._seen is None or not self._seen.is_at(self._path):
                self._seen = _Version(self._path)
        return self._seen.world

    @contextmanager
    def open(self) -> Iterator[World]:
        """The world for one change, which is settled and written back; what is on disk is settled already."""
        with self._locked():
            with self._readable():
                before = self._path.read_bytes()
            world = _decoded(before, self._path)
            yield world
            if msgspec.json.encode(world) != before:
                settle(world)
                self._replace(msgspec.json.encode(world))

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BadInput(f"{self._path} cannot be read: {error.strerror}; give the state file of a simulated cluster") from error

    def _replace(self, content: bytes) -> None:
        """No flush to disk: a simulated world need not survive a power cut."""
        fresh = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        fresh.write_bytes(content)
        fresh.replace(self._path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            handle = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise BadInput(f"{self._lock} cannot be opened: {error.strerror}; give a folder that is writable") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


@lru_cache(maxsize=4)
def state_file(path: Path) -> StateFile:
    """This process's door to the world at a path: all who look through it share what was decoded."""
    return StateFile(path)


class _Version:
    """One version of the file, decoded. Its handle stays open, so that no later version can get its inode. Raises OSError."""

    def __init__(self, path: Path) -> None:
        handle = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, handle)
        self._stat = os.fstat(handle)
        with os.fdopen(handle, "rb", closefd=False) as file:
            self.world = _decoded(file.read(), path)

    def is_at(self, path: Path) -> bool:
        return os.path.samestat(self._stat, path.stat())


def _decoded(content: bytes, path: Path) -> World:
    try:
        return msgspec.json.decode(content, type=World)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is no simulated world: {error}; make it again with `gpu-reclaim demo`") from error
