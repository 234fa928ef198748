"""The experiment's outside on the simulator: sessions over the simulated API, exec into simulated containers, fast looks.

One clock for drive and watch: watch's sleep moves the world, and drive waits until the world has got there. So watch sees
everything that drive does, at its own rate, as it would on a node.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from experiments.adapters.sessions import KubernetesSessions
from experiments.zombie.ports import Glances, Partner, Sessions, ZombieOutside
from sim.api import StateFileApi
from sim.outside import NODE_VARIABLE, SimulatedOutside
from sim.zombie.container import SimulatedExec
from sim.zombie.glances import SimulatedGlances
from sim.zombie.log import FollowedLogApi
from sim.zombie.partner import SimulatedPartner
from steps.contracts.document import Sample
from steps.contracts.errors import BadInput
from steps.contracts.ports import DeviceNode, Outside

STATE_VARIABLE: Final = "GPU_RECLAIM_SIMULATOR"
STALLED_S: Final = 30.0
UNWATCHED_S: Final = 0.1
"""Real seconds without progress after which drive moves the world itself: while watch lives (on a slow machine it may take its
time, and must not miss anything), and while it is not there yet, or no more."""
LOOK_S: Final = 0.002
ALONE_S: Final = 0.03
"""Real seconds between two looks of watch, with drive there and without: simulated minutes must not pass while drive starts."""


class SimulatedZombieOutside:
    """Fits experiments.zombie.ports.ZombieOutside."""

    def __init__(self, base: SimulatedOutside) -> None:
        self._base = base
        self._path = Path(base.environment[STATE_VARIABLE])
        self._partner: SimulatedPartner | None = None

    @property
    def base(self) -> Outside:
        return self._base

    def sessions(self, namespace: str) -> Sessions:
        patient = FollowedLogApi(self._path)
        return KubernetesSessions(StateFileApi(self._path), SimulatedExec(self._path), namespace, patient=patient)

    def partner(self, run: str, scenario: str) -> Partner:
        self._partner = SimulatedPartner(self._path, f"{run}.{scenario}", self._is_watch)
        return self._partner

    @property
    def _watched(self) -> bool:
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

    def pace(self, seconds: float) -> None:
        """drive waits until the world has got so far, or moves it if nobody does; watch moves it and leaves drive time to act."""
        clock = self._base.clock
        if self._is_watch:
            time.sleep(LOOK_S if self._partner is not None and self._partner.other_lives() else ALONE_S)
            clock.sleep(seconds)
            return
        target_s, last, moved_at = clock.now().timestamp() + seconds, clock.now(), time.monotonic()
        while (now := clock.now()).timestamp() < target_s:
            if now != last:
                last, moved_at = now, time.monotonic()
            elif time.monotonic() - moved_at > (STALLED_S if self._watched else UNWATCHED_S):
                clock.sleep(min(seconds, target_s - now.timestamp()))
                return
            time.sleep(LOOK_S)


def simulated_outside(base: Outside) -> ZombieOutside:
    """Raises BadInput for a base that is not the simulator's."""
    if not isinstance(base, SimulatedOutside):
        raise BadInput(f"the simulated experiment needs the simulator's outside, not {type(base).__name__}")
    return SimulatedZombieOutside(base)
