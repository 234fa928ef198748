"""A process that uses a real GPU: `python -m experiments.gpu_check.worker INDEX MIB MODE CHILD SECONDS`.

MODE: idle, one-thread or matrix. CHILD: none, or fork for a child that never calls CUDA and holds what its parent had open.
Prints one JSON line when it is ready, {"child": PID or null}, or {"cannot": why}. Ends by itself after SECONDS.
"""

import json
import os
import sys
import time
from typing import Final

from experiments.gpu_check import kernel
from experiments.gpu_check.cuda import Gpu
from experiments.gpu_check.record import CannotRun

MIB: Final = 1 << 20
_NAP_S: Final = 0.05


def main(index: str, mib: str, mode: str, child: str, seconds: str) -> int:
    until = time.monotonic() + float(seconds)
    try:
        gpu = Gpu(int(index))
        memory = gpu.allocate(int(mib) * MIB)
        function = None if mode == "idle" else gpu.load()
    except CannotRun as error:
        print(json.dumps({"cannot": str(error)}), flush=True)
        return 1
    print(json.dumps({"child": _fork(until) if child == "fork" else None}), flush=True)
    blocks, threads = gpu.full_grid() if mode == "matrix" else (1, 1)
    rounds = kernel.FULL_ROUNDS if mode == "matrix" else kernel.ONE_THREAD_ROUNDS
    while time.monotonic() < until:
        if function is None:
            time.sleep(_NAP_S)
        else:
            gpu.launch(function, memory, rounds, blocks=blocks, threads=threads)
            gpu.wait()
    return 0


def _fork(until: float) -> int:
    child = os.fork()
    if child == 0:
        while time.monotonic() < until:
            time.sleep(_NAP_S)
        os._exit(0)
    return child


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
