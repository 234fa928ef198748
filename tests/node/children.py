"""Children that hold a device in one shape each (facts 4.2). Each prints the PIDs that matter once it holds."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

PRELUDE = """
import ctypes, mmap, os, signal, socket, sys, threading, time
def say(*pids):
    print(*pids, flush=True)
def wait():
    time.sleep(600)
    os._exit(0)
"""


class Children:
    def __init__(self) -> None:
        self._running: list[subprocess.Popen[str]] = []
        self._pids: set[int] = set()

    def start(self, code: str, *arguments: str, before: Sequence[str] = (), lines: int = 1) -> list[int]:
        """Run Python code in a child and return the PIDs it says, in `lines` lines. before: a command that starts it."""
        command = [*before, sys.executable, "-c", PRELUDE + code, *arguments]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self._running.append(child)
        assert child.stdout is not None
        said = [int(word) for _ in range(lines) for word in child.stdout.readline().split()]
        assert said, f"the child said nothing; it ended with {child.poll()}"
        assert min(said) > 1, "a child said a PID of its own namespace: here that number is another process"
        self._pids.update(said)
        return said

    def end(self) -> None:
        for pid in self._pids | {child.pid for child in self._running}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        for child in self._running:
            child.wait(timeout=10)
            if child.stdout is not None:
                child.stdout.close()
