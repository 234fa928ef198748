"""Time in the world: what is due happens at its own moment, and the controllers answer at that moment."""

from datetime import timedelta
from typing import Final

from sim.world import boxes, pods
from sim.world.controllers import reconcile
from sim.world.objects import remove
from sim.world.state import Due, World

MAX_MOMENTS: Final = 100_000


def settle(world: World) -> None:
    """Let everything happen that follows from the present, without time passing."""
    advance(world, 0.0)


def advance(world: World, seconds: float) -> None:
    """Let time pass. What is due happens at its time, what is due at one time together; RuntimeError if there is no end to it."""
    until = world.now + timedelta(seconds=seconds)
    _until_quiet(world)
    for _ in range(MAX_MOMENTS):
        ripe = [due for due in world.due if due.at <= until]
        if not ripe:
            world.now = until
            return
        moment = min(due.at for due in ripe)
        world.due = [due for due in world.due if due.at != moment]
        world.now = max(world.now, moment)
        for due in ripe:
            if due.at == moment:
                _happen(world, due)
        _until_quiet(world)
    raise RuntimeError(f"the simulated world had more than {MAX_MOMENTS} moments in {seconds} s")


def _until_quiet(world: World) -> None:
    for _ in range(100):
        before = world.version
        reconcile(world)
        if world.version == before:
            return
    raise RuntimeError("the simulated controllers never come to rest")


def _happen(world: World, due: Due) -> None:
    item = world.objects.get(due.path)
    if item is None or item["metadata"]["uid"] != due.uid:
        return
    if due.what == "vanish":
        remove(world, due.path)
    elif due.what == "exit":
        pods.end(world, due.path)
    elif due.what == "act":
        boxes.act(world, due)
    elif "deletionTimestamp" not in item["metadata"]:
        pods.run(world, due.path)
