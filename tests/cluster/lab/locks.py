"""One program at a time: locks on files below the cache, given up by the kernel when their holder ends, however it ends."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.cluster.lab.errors import LabError
from tests.cluster.lab.places import Places
from tests.cluster.lab.progress import say

POLL_S: Final = 0.5


@contextmanager
def alone(where: Places, doing: str, *, patience_s: float) -> Iterator[None]:
    """Hold the lock of that name for the block. Raises LabError if another program holds it for longer than patience_s."""
    where.cache.mkdir(parents=True, exist_ok=True)
    with (where.cache / f"{doing}.lock").open("w") as file:
        deadline_s = time.monotonic() + patience_s
        told = False
        while not _taken(file.fileno()):
            if time.monotonic() > deadline_s:
                raise LabError(
                    f"another program is {doing} in {where.cache} and does not end; look for it with `fuser {file.name}`"
                )
            if not told:
                say(f"waiting for another program that is {doing}")
                told = True
            time.sleep(POLL_S)
        yield


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
