"""How building a simulated world grows with its size: quadratic once, which made a thousand sessions a matter of minutes."""

import time
from datetime import UTC, datetime
from typing import Final

from sim.scenarios.large import large_world
from tests.bench.row import Row, measured

NAME: Final = "building a simulated world: a session of 1,000 / one of 250"
TARGET: Final = 2.0
ROUNDS: Final = 5
SMALL: Final = (50, 250)
LARGE: Final = (200, 1000)


def rows() -> list[Row]:
    """One row: the cheapest of several builds of either size, in turn, each divided by its sessions."""
    small_s, large_s = [], []
    for _ in range(ROUNDS):
        small_s.append(_build_s(*SMALL))
        large_s.append(_build_s(*LARGE))
    ratio = (min(large_s) / LARGE[1]) / (min(small_s) / SMALL[1])
    setting = (
        f"{LARGE[0]} and {SMALL[0]} nodes, best of {ROUNDS} in turn: {min(large_s):.2f} s and {min(small_s):.2f} s of CPU time"
    )
    return [measured(NAME, ratio, TARGET, setting)]


def _build_s(nodes: int, sessions: int) -> float:
    began = time.process_time()
    large_world(datetime.now(UTC), nodes, sessions)
    return time.process_time() - began
