"""The demo's cluster: three nodes, and one session for every thing gpu-reclaim must tell apart."""

from datetime import datetime, timedelta
from typing import Final

from sim.scenarios.builder import GIB, WorldBuilder
from sim.world.state import Behaviour, World

A100: Final = "NVIDIA A100-SXM4-80GB"
H100: Final = "NVIDIA H100 80GB HBM3"
L40S: Final = "NVIDIA L40S"
NAMESPACES: Final = ("speech", "vision")
HISTORY: Final = timedelta(hours=30)


def demo_world(now: datetime) -> World:
    """The cluster as it stands at `now`, after thirty hours of history that its own controllers made."""
    built = WorldBuilder(now - HISTORY)
    for name in ("gpu-reclaim", *NAMESPACES):
        built.namespace(name)
    built.node("gpu-a100-1", A100, gpus=4, memory_gib=80)
    built.node("gpu-h100-1", H100, gpus=8, memory_gib=80)
    built.node("gpu-l40s-1", L40S, gpus=4, memory_gib=48)
    _open_sessions(built)
    built.wait(hours=2)
    _leave_leaks(built)
    built.wait(hours=24)
    built.session(
        "vision", "dora-finetune", A100, Behaviour(command="python3 finetune.py", memory_bytes=30 * GIB, sm_ratio=0.9, busy_gpus=1)
    )
    built.wait(minutes=(now - built.world.now).total_seconds() / 60)
    return built.world


def _leave_leaks(built: WorldBuilder) -> None:
    """Two sessions that are long deleted: a worker of the first lives on, the second left memory without a process."""
    worker = Behaviour(command="python3 train.py --workers=4", memory_bytes=18 * GIB, outlives_pod=True, exits_after_s=None)
    built.session("speech", "heidi-train", L40S, worker)
    ghost = Behaviour(command="python3 decode.py", memory_bytes=9 * GIB, leaves_ghost_bytes=11 * GIB, exits_after_s=None)
    built.session("speech", "ivan-decode", L40S, ghost)
    built.wait(hours=1)
    built.delete_session("speech", "heidi-train")
    built.delete_session("speech", "ivan-decode")


def _open_sessions(built: WorldBuilder) -> None:
    working = Behaviour(command="python3 train.py --config=vit.yaml", memory_bytes=61 * GIB, sm_ratio=0.93, busy_gpus=2)
    built.session("vision", "alice-train", A100, working, gpus=2)
    idle = Behaviour(command="python3 -m ipykernel_launcher", memory_bytes=39 * GIB, exits_after_s=None)
    built.session("vision", "bob-notebook", A100, idle)
    watched = Behaviour(command="python3 -m ipykernel_launcher", memory_bytes=22 * GIB, connections=1)
    built.session("vision", "erin-jupyter", A100, watched)
    one_of_eight = Behaviour(command="python3 eval.py", memory_bytes=12 * GIB, sm_ratio=0.41, busy_gpus=1)
    built.session("vision", "frank-eval", H100, one_of_eight, gpus=8)
    built.session("speech", "carol-lab", L40S, Behaviour(latches_counter=True))
    silent = Behaviour(command="python3 -m ipykernel_launcher", memory_bytes=7 * GIB, breaks_metrics=True)
    built.session("speech", "dave-vscode", L40S, silent)
