"""What a stop was asked to do, and the checks that need nothing but the decision. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from steps.contracts.decision import Decision, Decisions
from steps.contracts.document import Origin
from steps.contracts.policy import Mode, Policy
from steps.contracts.stop_receipt import Refusal
from steps.decide.policy import policy_hash

MAX_AGE: Final = timedelta(minutes=15)
"""A decision older than this is about another world."""
MAX_AHEAD: Final = timedelta(minutes=1)
"""A decision from further in the future than this means that two clocks disagree, so its age is not known."""


@dataclass(frozen=True, slots=True)
class Order:
    """now: when this stop began; every age is judged against it."""

    run: str
    shard: int
    decision_id: str
    dry_run: bool
    policy: Policy
    now: datetime
    origin: Origin


@dataclass(frozen=True, slots=True)
class Refused:
    """Why nothing was done. detail: a clause for a person."""

    refusal: Refusal
    detail: str


def find(order: Order, kept: Decisions | None) -> Decision | None:
    """The decision of that id, if it was kept for this run and shard; a foreign or made-up id finds nothing."""
    if kept is None or (kept.run, kept.shard) != (order.run, order.shard):
        return None
    return next((d for d in kept.decisions if d.decision_id == order.decision_id and d.run == order.run), None)


def order_forbids(order: Order, decided: Decision) -> Refused | None:
    """The first reason not even to look at the session: age, the decision itself, the run, the policy; None: go on."""
    age = order.now - decided.decided_at
    if not -MAX_AHEAD <= age <= MAX_AGE:
        limit_min = MAX_AGE.total_seconds() / 60
        return Refused(
            Refusal.DECISION_TOO_OLD, f"it was decided {age.total_seconds():.0f} s ago, the limit is {limit_min:.0f} min"
        )
    if not decided.acts:
        return Refused(Refusal.DECISION_DOES_NOT_ACT, f"the decision is to {decided.verdict.value} ({decided.reason.value})")
    if order.dry_run:
        return Refused(Refusal.DRY_RUN, "this is a dry run; submit with dry-run=false to act")
    if order.policy.mode is not Mode.ACT:
        return Refused(Refusal.OBSERVE_ONLY, f"the policy's mode is {order.policy.mode.value}; set it to act")
    if policy_hash(order.policy) != decided.policy_hash:
        return Refused(Refusal.POLICY_CHANGED, "the policy is not the one it was decided by")
    return None
