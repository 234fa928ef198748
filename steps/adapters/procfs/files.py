"""Reads below /proc. What vanishes while we look is no error; what we may not read is said."""
# Paths are strings in here: they are made thousands of times a look, and a Path costs as much as the call.
# ruff: noqa: PTH208

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

GONE: Final = (FileNotFoundError, ProcessLookupError, NotADirectoryError)
"""The process, thread or descriptor ended between two calls: nothing to report."""

_FILE: Final = os.O_RDONLY | os.O_CLOEXEC
DIRECTORY: Final = _FILE | os.O_DIRECTORY
_CHUNK: Final = 1 << 16


@contextmanager
def open_directory(path: str) -> Iterator[int]:
    """A descriptor of the directory, for names relative to it. Raises OSError."""
    handle = os.open(path, DIRECTORY)
    try:
        yield handle
    finally:
        os.close(handle)


def read(path: str) -> bytes:
    """The whole file. Raises OSError. By descriptor: a file object costs half as much again as the file."""
    handle = os.open(path, _FILE)
    try:
        parts = []
        while part := os.read(handle, _CHUNK):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(handle)


def read_if_there(path: str) -> bytes | None:
    """The whole file; None if it, or its process, is gone or may not be read."""
    try:
        return read(path)
    except OSError:
        return None


def numbers_in(path: str) -> list[int]:
    """Numeric names in a directory, ascending: PIDs, threads. Raises OSError."""
    return sorted(int(name) for name in os.listdir(path) if name.isdecimal())
