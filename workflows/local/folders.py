"""Folders that one run has to itself: held while it lasts, however it ends, and emptied only where that harms nobody."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from steps.contracts.errors import BadInput
from steps.contracts.files import write_atomically


@contextmanager
def run_folder(runs: Path, run: str, *, replace: bool) -> Iterator[Path]:
    """`<runs>/<run>`, empty and this run's alone while it lasts; the lock goes with the process.

    Raises BadInput if a run of that name is under way, or was here before and is not to be replaced, or if nothing can be
    written there.
    """
    folder = runs / run
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder} cannot be made: {error.strerror}; give another folder with --runs=DIR") from error
    with _held(folder, f"a run called {run} is under way in {runs}; let it end, or give another --name"):
        if (runs / f"{run}.json").exists() and not replace:
            raise BadInput(f"{runs} holds a run called {run} already; give another --name, or --replace to write over it")
        _empty(folder)
        yield folder


@contextmanager
def own_folder(folder: Path, *, of: str) -> Iterator[Path]:
    """The folder, empty, for `of` ("demo") alone while it lasts.

    Raises BadInput if another one works in it, if it holds what no earlier one made, or if it cannot be written.
    """
    marker = f".gpu-reclaim-{of}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = folder.with_name(f".{folder.name}.lock")
        lock.touch()
    except OSError as error:
        raise BadInput(f"{folder.parent} cannot be written: {error.strerror}; give another folder with --folder=PATH") from error
    with _held(lock, f"another {of} runs in {folder}; let it end, or give another folder with --folder=PATH"):
        if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / marker).exists())):
            raise BadInput(f"{folder} exists and was not made by the {of}; give another one with --folder=PATH")
        shutil.rmtree(folder, ignore_errors=True)
        write_atomically(folder / marker, b"")
        yield folder


@contextmanager
def _held(path: Path, refusal: str) -> Iterator[None]:
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise BadInput(refusal) from error
    else:
        yield
    finally:
        os.close(handle)


def _empty(folder: Path) -> None:
    """What is in it goes, the folder stays: it is what the lock is on."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
