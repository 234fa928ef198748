"""A cluster of any size with ordinary sessions, for asking what a size costs. It tells no story: `demo` does."""

from datetime import datetime, timedelta
from typing import Final

from sim.scenarios.builder import GIB, WorldBuilder
from sim.world.state import Behaviour, World

PRODUCT: Final = "NVIDIA H100 80GB HBM3"
GPUS_A_NODE: Final = 8
TEAMS: Final = ("audio", "maps", "speech", "vision")
AGE: Final = timedelta(hours=24)
WORKING: Final = Behaviour(command="python3 train.py", memory_bytes=61 * GIB, sm_ratio=0.93, busy_gpus=1)
PRESENT: Final = Behaviour(command="python3 -m ipykernel_launcher", memory_bytes=22 * GIB, connections=1)
IDLE: Final = Behaviour(command="python3 -m ipykernel_launcher", memory_bytes=39 * GIB, exits_after_s=None)


def large_world(now: datetime, nodes: int, sessions: int) -> World:
    """`nodes` nodes of eight GPUs and `sessions` Deployments of one GPU each in four namespaces, a day old at `now`.

    A third each works, is connected, and is idle. Sessions beyond the GPUs wait for one.
    """
    built = WorldBuilder(now - AGE)
    for name in ("gpu-reclaim", *TEAMS):
        built.namespace(name)
    for number in range(nodes):
        built.node(f"gpu-{number:03}", PRODUCT, gpus=GPUS_A_NODE, memory_gib=80)
    for number in range(sessions):
        behaviour = (WORKING, PRESENT, IDLE)[number % 3]
        built.deployment(TEAMS[number % len(TEAMS)], f"session-{number:04}", PRODUCT, behaviour)
    built.wait(hours=AGE.total_seconds() / 3600)
    return built.world
