"""The experiment's outside on the simulator: sessions over the simulated API, exec into simulated containers, fast looks.

One clock for drive and watch: watch's sleep moves the world, up to the next moment that drive waits for, and not while drive acts.
So watch sees everything that drive does, at its own rate, as it would on a node, and no act takes longer on a slow machine.
"""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from experiments.zombie.ports import Glances, Partner, Sessions, ZombieOutside
from sim.outside import NODE_VARIABLE, SimulatedOutside
from sim.zombie.container import SimulatedExec
from sim.zombie.glances import SimulatedGlances
from sim.zombie.log import SimulatedSessions
from sim.zombie.partner import DRIVE, WATCH, SimulatedPartner
from steps.contracts.document import Sample
from steps.contracts.errors import BadInput
from steps.contracts.ports import DeviceNode, Outside

STATE_VARIABLE: Final = "GPU_RECLAIM_SIMULATOR"
STALLED_S: Final = 30.0
"""Real seconds that watch and drive wait for each other while both live: on a slow machine each may take its time."""
UNWATCHED_S: Final = 0.1
"""Real seconds without progress after which drive moves the world itself, while watch is not there yet, or no more."""
LOOK_S: Final = 0.002
ALONE_S: Final = 0.03
"""Real seconds between two looks of watch without drive: simulated minutes must not pass while drive starts."""


class SimulatedZombieOutside:
    """Fits experiments.zombie.ports.ZombieOutside."""

    def __init__(self, base: SimulatedOutside) -> None:
        self._base = base
        self._path = Path(base.environment[STATE_VARIABLE])
        self._partner: SimulatedPartner | None = None
        self._given_up: list[datetime | None] = []

    @property
    def base(self) -> Outside:
        return self._base

    def sessions(self, namespace: str) -> Sessions:
        return SimulatedSessions(self._path, SimulatedExec(self._path), namespace)

    def partner(self, run: str, scenario: str) -> Partner:
        self._partner = SimulatedPartner(self._path, f"{run}.{scenario}", WATCH if self._is_watch else DRIVE)
        return self._partner

    @property
    def _accompanied(self) -> bool:
        return self._partner is not None and self._partner.other_lives()

    @property
    def _is_watch(self) -> bool:
        return self._base.environment.get("GPU_RECLAIM_NODE_POD") is not None

    def glances(self, devices: Sequence[DeviceNode]) -> Glances:
        return SimulatedGlances(self._path, self._base.environment[NODE_VARIABLE])

    def under_way(self, run: str) -> bool:
        """The local runner begins the report when all is over."""
        return False

    def kernel(self) -> Sample[str]:
        return Sample.measured("simulated", "simulator")

    def beside(self, work: Callable[[], None]) -> threading.Thread:
        """Work takes no simulated time, so it is through before the world moves on."""
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(STALLED_S)
        return thread

    def pace(self, seconds: float) -> None:
        """drive waits until the world has got so far, or moves it if nobody does; watch moves it whenever drive waits."""
        until = self._base.clock.now() + timedelta(seconds=seconds)
        if self._is_watch:
            self._move(until)
        else:
            self._wait(until)

    def _move(self, until: datetime) -> None:
        clock = self._base.clock
        if not self._accompanied:
            time.sleep(ALONE_S)
        while (now := clock.now()) < until:
            clock.sleep((min([until, *self._turns_after(now)]) - now).total_seconds())

    def _turns_after(self, now: datetime) -> list[datetime]:
        """The moments that others wait for, once nobody acts any more; one that hangs is waited for once."""
        began = time.monotonic()
        while True:
            turns = [] if self._partner is None else self._partner.turns()
            later = [one for one in turns if one is not None and one > now]
            if len(later) == len(turns) or turns == self._given_up:
                return later
            if time.monotonic() - began > STALLED_S:
                self._given_up = turns  # until somebody says something new
                return later
            time.sleep(LOOK_S)

    def _wait(self, until: datetime) -> None:
        clock = self._base.clock
        if self._partner is not None:
            self._partner.wait_until(until)
        last, moved_at = clock.now(), time.monotonic()
        while (now := clock.now()) < until:
            if now != last:
                last, moved_at = now, time.monotonic()
            elif time.monotonic() - moved_at > (STALLED_S if self._accompanied else UNWATCHED_S):
                clock.sleep((until - now).total_seconds())
                return
            time.sleep(LOOK_S)


def simulated_outside(base: Outside) -> ZombieOutside:
    """Raises BadInput for a base that is not the simulator's."""
    if not isinstance(base, SimulatedOutside):
        raise BadInput(f"the simulated experiment needs the simulator's outside, not {type(base).__name__}")
    return SimulatedZombieOutside(base)
