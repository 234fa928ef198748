"""Receipts: what a stop changed, or why it did not. Pure."""

from datetime import datetime
from typing import Final

from steps.contracts.cluster_facts import OwnerRef
from steps.contracts.decision import Decision
from steps.contracts.document import Stamp
from steps.contracts.stop_receipt import Refusal, StopReceipt
from steps.stop.order import Order, Refused

MADE_BY: Final = "stop"
SWITCH: Final = "deployments/scale"


def stamp_of(order: Order) -> Stamp:
    return Stamp(made_by=MADE_BY, made_at=order.now, origin=order.origin)


def say(owner: OwnerRef) -> str:
    return f"{owner.kind} {owner.namespace}/{owner.name}"


def unknown(order: Order) -> StopReceipt:
    """For an id that the run's decisions do not hold."""
    return StopReceipt(
        stamp=stamp_of(order),
        decision_id=order.decision_id,
        owner=None,
        acted=False,
        refusal=Refusal.UNKNOWN_DECISION,
        sentence=f"Nothing was stopped: run {order.run}, shard {order.shard} kept no decision {order.decision_id}.",
        switch=None,
        replicas_before=None,
        replicas_after=None,
        acted_at=None,
        pods=(),
    )


def refused(order: Order, decided: Decision, why: Refused, replicas_seen: int | None = None) -> StopReceipt:
    """replicas_seen: the count as just read, None where the owner was not read or its count is not known."""
    return StopReceipt(
        stamp=stamp_of(order),
        decision_id=decided.decision_id,
        owner=decided.owner,
        acted=False,
        refusal=why.refusal,
        sentence=f"{say(decided.owner)} was not stopped: {why.detail}.",
        switch=None,
        replicas_before=replicas_seen,
        replicas_after=replicas_seen,
        acted_at=None,
        pods=decided.pods,
    )


def stopped(order: Order, decided: Decision, before: int, after: int, *, acted_at: datetime, remark: str = "") -> StopReceipt:
    """acted_at: right before the write was sent, so that nothing the stop caused can lie before it."""
    return StopReceipt(
        stamp=stamp_of(order),
        decision_id=decided.decision_id,
        owner=decided.owner,
        acted=True,
        refusal=None,
        sentence=f"{say(decided.owner)} was scaled from {before} to {after} by decision {decided.decision_id}{remark}.",
        switch=SWITCH,
        replicas_before=before,
        replicas_after=after,
        acted_at=acted_at,
        pods=decided.pods,
    )
