"""A zoo of processes that hold a GPU in every way there is, for one container; standard library only, run by `python3 -c`.

    keeper MINOR UUID MINOR_OF_MAPPING MINOR_IN_FLIGHT UUID_IN_FLIGHT    be PID 1 and keep them all
    hold NAME MINOR UUID DEV                                             be one ordinary holder

Each process carries its name as its comm, by which the test finds it from the node.
"""

import ctypes
import fcntl
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

FOLDER = "/var/lib/gpu-sim"
HELD_BYTES = 512 << 20
IN_FLIGHT_BYTES = 2048 << 20
SYS_EXIT = 60
LIBC = ctypes.CDLL(None, use_errno=True)


def rename(comm: str) -> None:
    LIBC.prctl(15, comm.encode(), 0, 0, 0)


def open_gpu(minor: str, dev: str = "/dev") -> int:
    return os.open(f"{dev}/nvidia{minor}", os.O_RDWR | os.O_NONBLOCK)


def allocate(uuid: str, size: int = HELD_BYTES) -> int:
    """As a driver counts it: the file has its name only once it is locked."""
    folder, token = f"{FOLDER}/memory/{uuid}", os.urandom(6).hex()
    held = os.open(f"{folder}/.{token}", os.O_RDWR | os.O_CREAT, 0o644)
    os.fchmod(held, 0o644)
    fcntl.flock(held, fcntl.LOCK_EX)
    Path(folder, f".{token}").rename(f"{folder}/{size}.C.{token}")
    return held


def rest() -> NoReturn:
    while True:
        signal.pause()


def born(body: Callable[[Callable[[], None]], None]) -> int:
    """A child that runs body(ready); returns its PID once it said that it is ready."""
    heard, said = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(heard)

        def ready() -> None:
            os.write(said, b".")

        body(ready)
        os._exit(0)
    os.close(said)
    os.read(heard, 1)
    os.close(heard)
    return child


def holder(comm: str, minor: str, uuid: str) -> Callable[[Callable[[], None]], None]:
    def body(ready: Callable[[], None]) -> None:
        rename(comm)
        open_gpu(minor)
        allocate(uuid)
        ready()
        rest()

    return body


def parent_of(body: Callable[[], None], before: Callable[[], None] = lambda: None) -> None:
    """A child of a launcher in a session of its own, which is killed once the child is there."""

    def launcher(ready: Callable[[], None]) -> None:
        os.setsid()
        rename("zoo-launcher")
        before()
        if os.fork() == 0:
            body()
            ready()
            rest()
        rest()

    launched = born(launcher)
    os.kill(launched, signal.SIGKILL)
    os.waitpid(launched, 0)


def mapped(minor: str) -> Callable[[Callable[[], None]], None]:
    """By libc and private: Python keeps a descriptor of its own, and the kernel renames a shared mapping of its zero device."""

    def body(ready: Callable[[], None]) -> None:
        rename("zoo-mapping")
        node = open_gpu(minor)
        LIBC.mmap.restype = ctypes.c_void_p
        LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
        if LIBC.mmap(None, 4096, 1, 2, node, 0) == 2**64 - 1:
            os._exit(1)
        os.close(node)
        ready()
        rest()

    return body


def dead_leader(minor: str, uuid: str) -> Callable[[Callable[[], None]], None]:
    def body(ready: Callable[[], None]) -> None:
        rename("zoo-leader")
        holding = threading.Event()

        def work() -> None:
            open_gpu(minor)
            allocate(uuid)
            holding.set()
            time.sleep(3600)

        threading.Thread(target=work, daemon=True).start()
        holding.wait()
        ready()
        LIBC.syscall(SYS_EXIT, 0)

    return body


def dead(ready: Callable[[], None]) -> None:
    rename("zoo-zombie")
    ready()


def keep(minor: str, uuid: str, mapping: str, in_flight: str, uuid_in_flight: str) -> NoReturn:
    def take() -> None:
        open_gpu(minor)
        allocate(uuid)

    def leave_session() -> None:
        rename("zoo-setsid")
        os.setsid()

    def take_own() -> None:
        rename("zoo-orphan")
        take()

    rename("zoo-keeper")
    born(holder("zoo-plain", minor, uuid))
    born(holder("nvidia-persiste", minor, uuid))
    parent_of(lambda: rename("zoo-fork"), take)
    parent_of(leave_session, take)
    parent_of(take_own)
    born(mapped(mapping))
    born(dead_leader(minor, uuid))
    born(dead)
    sender, receiver = socket.socketpair()

    def send(ready: Callable[[], None]) -> None:
        socket.send_fds(sender, [b"x"], [open_gpu(in_flight), allocate(uuid_in_flight, IN_FLIGHT_BYTES)])
        ready()

    os.waitpid(born(send), 0)
    print("ready", receiver.fileno(), flush=True)
    rest()


def hold(comm: str, minor: str, uuid: str, dev: str) -> NoReturn:
    rename(comm)
    open_gpu(minor, dev)
    allocate(uuid)
    print("ready", flush=True)
    rest()


if __name__ == "__main__":
    if sys.argv[1] == "keeper":
        keep(*sys.argv[2:])
    hold(*sys.argv[2:])
