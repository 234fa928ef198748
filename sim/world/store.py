"""The state file: one lock, read, change, replace. Several processes use it at once; a kill leaves the old or the new one."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
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

    def create(self, world: World) -> None:
        """Write a fresh world, over whatever was there."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked():
            settle(world)
            self._replace(msgspec.json.encode(world))

    @contextmanager
    def open(self) -> Iterator[World]:
        """The world for one look or one change. A change is settled and written back; what is on disk is settled already."""
        with self._locked():
            before = self._read()
            try:
                world = msgspec.json.decode(before, type=World)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise BadInput(f"{self._path} is no simulated world: {error}; make it again with `gpu-reclaim demo`") from error
            yield world
            if msgspec.json.encode(world) != before:
                settle(world)
                self._replace(msgspec.json.encode(world))

    def _read(self) -> bytes:
        try:
            return self._path.read_bytes()
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
