"""Watches from before the creation until drive has ended and the memory came to rest, or until the limit."""

from typing import Final, NamedTuple

from experiments.zombie.ports import Glances, Partner, ZombieOutside
from experiments.zombie.watch.history import History
from experiments.zombie.watch.portraits import Portraits

NEVER_CAME_S: Final = 120.0
QUIET_S: Final = 0.7
"""A full look is made when nothing material has changed for so long."""
ASK_S: Final = 0.6
"""How often it is asked whether drive still runs."""


class Pace(NamedTuple):
    """interval_s: between two looks. settle_s: watched on after drive has ended. limit_s: the end in any case."""

    interval_s: float
    settle_s: float
    limit_s: float


def watch(glances: Glances, partner: Partner, portraits: Portraits, outside: ZombieOutside, pace: Pace) -> tuple[History, str]:
    """(what was seen, why watching ended)."""
    clock = outside.base.clock
    history, began = History(), clock.now()
    history.add(glances.look(()))  # what was given before anything began
    partner.say_ready()
    changed_at, asked_at, driven_at, pictured = began, began, None, True
    while True:
        now = clock.now()
        if history.add(glances.look(history.pods)):
            changed_at, pictured = now, False
        if not pictured and (now - changed_at).total_seconds() >= QUIET_S and not portraits.busy:
            portraits.take()
            pictured = True
        if (now - asked_at).total_seconds() >= ASK_S:
            asked_at = now
            if partner.driving():
                driven_at = now
        if driven_at is not None and (now - driven_at).total_seconds() >= ASK_S + pace.settle_s:
            return history, "drive has ended"
        if driven_at is None and (now - began).total_seconds() >= NEVER_CAME_S:
            return history, f"drive never began within {NEVER_CAME_S:g} s"
        if (now - began).total_seconds() >= pace.limit_s:
            return history, f"the limit of {pace.limit_s:g} s was reached"
        outside.pace(max(0.0, pace.interval_s - (clock.now() - now).total_seconds()))
