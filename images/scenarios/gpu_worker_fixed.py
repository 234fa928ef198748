#!/usr/bin/env python3
"""The worker of scenario 4: on SIGTERM it drops its tensors, empties the cache, synchronises and exits."""

import sys

from gpu_memory import Memory
from worker import run, say


def clean_up(memory: Memory) -> None:
    say("gpu_worker_fixed.cleanup_began")
    memory.clean_up()
    say("gpu_worker_fixed.cleanup_done")
    sys.exit(0)


if __name__ == "__main__":
    sys.exit(run("gpu_worker_fixed", clean_up, sys.argv[1:]))
