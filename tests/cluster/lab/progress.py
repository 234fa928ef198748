"""Progress for whoever waits: one line on stderr with the seconds since this process began its work."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_BEGUN_S = time.monotonic()


def say(words: str) -> None:
    """One progress line, visible at once."""
    print(f"lab {time.monotonic() - _BEGUN_S:7.1f} s  {words}", file=sys.stderr, flush=True)


@contextmanager
def timed(words: str) -> Iterator[None]:
    """Say what begins, and how long it took when it ended well; a failure speaks for itself."""
    say(f"{words} ...")
    begun_s = time.monotonic()
    yield
    say(f"{words}: {time.monotonic() - begun_s:.1f} s")
