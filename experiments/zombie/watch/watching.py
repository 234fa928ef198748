"""Watches from before the creation until drive has ended and the memory came to rest, or until the limit."""

from collections.abc import Callable
from typing import Final, NamedTuple

from experiments.zombie.ports import Glances, Partner, ZombieOutside
from experiments.zombie.watch.history import History
from experiments.zombie.watch.portraits import Portraits
from steps.trace.holder_class import DRIVER_S, RUNTIME_S

NEVER_CAME_S: Final = 120.0
QUIET_S: Final = 0.7
"""A full look is made when nothing material has changed for so long."""
ASK_S: Final = 0.6
"""How often it is asked whether drive still runs."""
LET_GO_S: Final = float(RUNTIME_S + DRIVER_S)
"""How long memory that is still used when drive has ended is watched on: what runtime and driver may take to let go (facts 6)."""


class Terms(NamedTuple):
    """interval_s: between two looks. settle_s: watched on after drive has ended. limit_s: the end in any case.

    stopped: whether the run was stopped from outside. What drive does then is watched all the same.
    """

    interval_s: float
    settle_s: float
    limit_s: float
    stopped: Callable[[], bool]


def watch(glances: Glances, partner: Partner, portraits: Portraits, outside: ZombieOutside, terms: Terms) -> tuple[History, str]:
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
        since_s = None if driven_at is None else (now - driven_at).total_seconds() - ASK_S
        if since_s is not None and since_s >= terms.settle_s and (not history.left_over or since_s >= LET_GO_S or terms.stopped()):
            return history, "the run was stopped, and drive has ended" if terms.stopped() else "drive has ended"
        if driven_at is None and terms.stopped():
            return history, "the run was stopped before drive began"
        if driven_at is None and (now - began).total_seconds() >= NEVER_CAME_S:
            return history, f"drive never began within {NEVER_CAME_S:g} s"
        if (now - began).total_seconds() >= terms.limit_s:
            return history, f"the limit of {terms.limit_s:g} s was reached"
        outside.pace(max(0.0, terms.interval_s - (clock.now() - now).total_seconds()))
