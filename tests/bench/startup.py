"""What it costs to start a step: paid in every pod of every sweep."""

import os
import platform
import statistics
import sys
import time

from tests.bench.row import Row, measured

ROUNDS = 15
BARE = (sys.executable, "-c", "pass")
STEP = (sys.executable, "-m", "steps.cli", "step", "decide", "--help")
MAX_MEMORY_MIB = 40


def rows() -> list[Row]:
    """Start-up of `gpu-reclaim step decide --help`: time against a bare interpreter, peak memory against 40 MiB."""
    bare, step = [], []
    for _ in range(ROUNDS):  # in turn, so that a drifting machine hits both alike
        bare.append(_run(BARE))
        step.append(_run(STEP))
    setting = f"Python {platform.python_version()}, {os.cpu_count()} cores, median of {ROUNDS} pairs"
    ratio = statistics.median(s.seconds / b.seconds for s, b in zip(step, bare, strict=True))
    peak_mib = max(s.peak_kib for s in step) / 1024
    return [
        measured("start-up time of a step / of `python -c pass`", ratio, 6.0, setting),
        measured("peak memory of a step's start-up / 40 MiB", peak_mib / MAX_MEMORY_MIB, 1.0, f"{peak_mib:.1f} MiB; {setting}"),
    ]


class _Run:
    def __init__(self, seconds: float, peak_kib: int) -> None:
        self.seconds = seconds
        self.peak_kib = peak_kib


def _run(command: tuple[str, ...]) -> _Run:
    """Seconds from start to reaped, and the peak memory the kernel counted for that one process."""
    started = time.perf_counter()
    pid = os.posix_spawn(
        command[0],
        command,
        dict(os.environ),
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - started
    if status != 0:
        raise SystemExit(f"{' '.join(command)} ended with status {os.waitstatus_to_exitcode(status)}; the bench needs it to work")
    return _Run(seconds, usage.ru_maxrss)
