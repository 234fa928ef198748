"""The simulated clock: one for all processes; sleeping moves the world and costs next to nothing."""

from datetime import datetime
from pathlib import Path

from sim.world.store import state_file
from sim.world.timeline import advance


class SimulatedClock:
    """Implements steps.contracts.ports.Clock."""

    def __init__(self, path: Path) -> None:
        self._store = state_file(path)

    def now(self) -> datetime:
        return self._store.read().now

    def sleep(self, seconds: float) -> None:
        """Let simulated time pass, with everything that is due in it."""
        with self._store.open() as world:
            advance(world, seconds)
