"""What both workers share: hold memory, say so in the pod log, and live until they are ended. How they end is their own affair.

Shapes: plain; training-child (a child by fork and exec with a context of its own, like an engine worker); multiprocessing (two
forked workers that inherit the open device, like data loaders); setsid (the worker in a session of its own, like nohup).
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from gpu_memory import Memory, memory_from

SHAPES = ("plain", "training-child", "multiprocessing", "setsid")
FORKED = 2
CHILD_MIB = 256


def say(event: str, **values: object) -> None:
    """One JSON line in the pod log, in one write, so that lines of several processes never mix."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = json.dumps({"at": at, "event": event, "pid": os.getpid(), **values})
    os.write(1, f"{line}\n".encode())


def run(who: str, on_term: Callable[[Memory], None], arguments: Sequence[str]) -> int:
    """Hold memory until the process is ended. on_term: what SIGTERM does."""
    made = argparse.ArgumentParser(prog=who)
    made.add_argument("--mib", type=int, default=2048, help="device memory to hold")
    made.add_argument("--shape", choices=SHAPES, default="plain")
    options = made.parse_args(arguments)
    if options.shape == "setsid":
        os.setsid()
    try:
        memory = memory_from()
        signal.signal(signal.SIGTERM, lambda _number, _frame: on_term(memory))
        memory.allocate(options.mib)
    except (OSError, RuntimeError, ValueError, ImportError) as error:
        say(f"{who}.failed", problem=str(error))
        return 2
    children = _children(options.shape)
    say(f"{who}.holding", mib=options.mib, backend=os.environ["GPU_BACKEND"], shape=options.shape, children=children)
    while True:  # until a signal ends it: that is what a worker is
        signal.pause()


def _children(shape: str) -> list[int]:
    if shape == "training-child":
        argv = [sys.executable, sys.argv[0], f"--mib={CHILD_MIB}"]
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        return [child.pid]
    return [_forked() for _ in range(FORKED)] if shape == "multiprocessing" else []


def _forked() -> int:
    """A child that does nothing but keep what it inherited open."""
    child = os.fork()
    if child:
        return child
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        signal.pause()
