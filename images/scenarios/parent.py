#!/usr/bin/env python3
"""Starts the worker and exits without waiting for it: the worker becomes an orphan, and whoever is PID 1 inherits it.

    parent.py WORKER.py [argument...]

The worker's words go where PID 1's go, into the pod log: what a process started by exec prints would be lost, and an open pipe to
the exec session would keep that session alive. Prints one JSON line with the worker's PID inside the container.
"""

import json
import subprocess
import sys
from collections.abc import Sequence

POD_LOG = "/proc/1/fd/1"


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        print("usage: parent.py WORKER.py [argument...]", file=sys.stderr)
        return 2
    with open(POD_LOG, "ab", buffering=0) as log:  # noqa: PTH123  # a pipe, by the name the kernel gives it
        worker = subprocess.Popen([sys.executable, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    print(json.dumps({"event": "parent.spawned", "worker": worker.pid}), flush=True)
    worker.returncode = 0  # nobody waits for it: that is the fault under test, and Python must not warn about it
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
