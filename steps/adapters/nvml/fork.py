"""One function in a forked child, waited for no longer than a deadline, whatever the child does.

A fork and no fresh interpreter, because that would load Python and our modules anew in every look (about 0.2 s). What speaks
against a fork is met: the steps have one thread, the child closes all that the parent has open before it does anything else, and
a child that hangs all the same is a missed deadline, like any other.
"""

import os
import selectors
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple, NoReturn

_CHUNK: Final = 1 << 16
_EXIT_POLL_S: Final = 0.001
_FAILED: Final = 1


class Child(NamedTuple):
    """A running child and our ends of its pipes."""

    pid: int
    output: int
    errors: int


class Ended(NamedTuple):
    """code: exit code, or minus the signal that killed it."""

    code: int
    output: bytes
    errors: bytes


def start(work: Callable[[], bytes]) -> Child:
    """Run `work` in a child; what it returns is the child's output, what it raises its errors. Raises OSError, with nothing left
    open, if there is no room for another process."""
    output, its_output = os.pipe()
    errors, its_errors = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        for pipe in (output, its_output, errors, its_errors):
            os.close(pipe)
        raise
    if pid == 0:
        _be_the_child(work, its_output, its_errors)
    os.close(its_output)
    os.close(its_errors)
    return Child(pid, output, errors)


def wait(child: Child, deadline_s: float) -> Ended | None:
    """All that it said and how it ended; None if it has not ended by then, and is the caller's to end. Its pipes are closed."""
    until = time.monotonic() + deadline_s
    try:
        said = _read_all((child.output, child.errors), until)
    finally:
        os.close(child.output)
        os.close(child.errors)
    code = None if said is None else _exit_code(child.pid, until)
    return None if said is None or code is None else Ended(code, *said)


def kill(child: Child, patience_s: float) -> bool:
    """Kill it and wait so long, not for ever: in state D a kill stays pending. False: it is still there."""
    os.kill(child.pid, signal.SIGKILL)  # not reaped yet, so the PID is still its own
    return _exit_code(child.pid, time.monotonic() + patience_s) is not None


def has_ended(child: Child) -> bool:
    """Whether a child that was left behind is gone by now."""
    return _exit_code(child.pid, until=0.0) is not None


def _be_the_child(work: Callable[[], bytes], output: int, errors: int) -> NoReturn:
    code = _FAILED
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(errors, 1)
        os.dup2(errors, 2)
        _close_all_but((0, 1, 2, output))
        remaining = memoryview(work())
        while remaining:
            remaining = remaining[os.write(output, remaining) :]
        code = 0
    except BaseException as error:  # noqa: BLE001 - nothing may return into a second copy of the parent
        os.write(2, f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(code)


def _close_all_but(kept: tuple[int, ...]) -> None:
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - numbers, not paths
        if int(name) not in kept:
            with suppress(OSError):  # the listing's own is closed already
                os.close(int(name))


def _read_all(pipes: tuple[int, int], until: float) -> tuple[bytes, bytes] | None:
    """What came out of both until the child closed them; None at the deadline."""
    said = {pipe: bytearray() for pipe in pipes}
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            left_s = until - time.monotonic()
            if left_s <= 0:
                return None
            for key, _ in selector.select(left_s):
                chunk = os.read(key.fd, _CHUNK)
                said[key.fd] += chunk
                if not chunk:
                    selector.unregister(key.fd)
    return bytes(said[pipes[0]]), bytes(said[pipes[1]])


def _exit_code(pid: int, until: float) -> int | None:
    """None if it has not ended by then. Asked again and again, because kernels before 5.3 have no descriptor to wait on."""
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= until:
            return None
        time.sleep(_EXIT_POLL_S)
