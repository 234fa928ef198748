#!/usr/bin/env python3
"""The worker of scenarios 1 to 3: holds GPU memory and ignores SIGTERM."""

import sys

from gpu_memory import Memory
from worker import run, say


def ignore(_memory: Memory) -> None:
    say("gpu_worker.sigterm_ignored")


if __name__ == "__main__":
    sys.exit(run("gpu_worker", ignore, sys.argv[1:]))
