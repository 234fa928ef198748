"""A stop is read, compare, judge again, remember, write once. A refusal is a result with a reason. Nothing here loops.

A crash anywhere is healed by the next try of the same decision: before the Intent nothing happened; between Intent and write the
Intent is found and counts as ours; after the write the Intent stands and the count is at its target. (So is it if a person scaled
to that very count in between; then the Intent is still what restore needs.)
"""

from collections.abc import Mapping
from typing import Final

from steps.contracts.decision import Decision, Decisions
from steps.contracts.errors import OutcomeUnknown, SourceUnavailable
from steps.contracts.ports import Clock, Count, IntentStore, OwnerState, OwnerSwitch, Rejected, Rejection
from steps.contracts.stop_receipt import Refusal, StopReceipt
from steps.contracts.traced import TracedNode
from steps.stop.claim import Claim, claim
from steps.stop.life import sign_of_life
from steps.stop.order import Order, Refused, find, order_forbids
from steps.stop.receipts import refused, stopped, unknown

MEANING: Final = {
    Rejection.CONFLICT: Refusal.CONFLICT,
    Rejection.FORBIDDEN: Refusal.FORBIDDEN,
    Rejection.INVALID: Refusal.INVALID,
    Rejection.GONE: Refusal.SESSION_GONE,
}


class Transaction:
    """One stop: the ports it may use and the order it carries out."""

    def __init__(self, order: Order, owners: OwnerSwitch, intents: IntentStore, clock: Clock) -> None:
        self._order: Final = order
        self._owners: Final = owners
        self._intents: Final = intents
        self._clock: Final = clock

    def run(self, kept: Decisions | None, nodes: Mapping[str, TracedNode]) -> StopReceipt:
        """kept: what decide kept for this run and shard. nodes: the captures, traced. Raises SourceUnavailable if the API
        fails before the write; after it the receipt says what is known."""
        decided = find(self._order, kept)
        if decided is None:
            return unknown(self._order)
        if why := order_forbids(self._order, decided):
            return refused(self._order, decided, why)
        seen = self._owners.read(decided.owner, self._order.policy)
        if isinstance(seen, Rejected):
            return refused(self._order, decided, _no(seen))
        return self._earlier(decided, seen) or self._stop(decided, seen, nodes)

    def _earlier(self, decided: Decision, seen: OwnerState) -> StopReceipt | None:
        """An earlier try of this decision already brought the count to its target."""
        intent = self._intents.load(decided.owner.uid)
        if intent is None or intent.decision_id != decided.decision_id or seen.replicas != intent.replicas_after:
            return None
        made_at = intent.stamp.made_at
        return stopped(
            self._order, decided, intent.replicas_before, intent.replicas_after, acted_at=made_at, remark=", in an earlier try"
        )

    def _stop(self, decided: Decision, seen: OwnerState, nodes: Mapping[str, TracedNode]) -> StopReceipt:
        why = _moved(decided, seen) or _new_pods(decided, seen) or _guarded(seen) or sign_of_life(decided, nodes, self._order.now)
        claimed = why or claim(self._order, decided, seen, self._intents)
        if isinstance(claimed, Refused):
            return refused(self._order, decided, claimed, seen.replicas)
        return self._act(decided, seen, claimed)

    def _act(self, decided: Decision, seen: OwnerState, claimed: Claim) -> StopReceipt:
        intent, acted_at = claimed.intent, self._clock.now()
        answer: Count | Rejected | Refused
        try:
            answer = self._owners.scale(decided.owner, intent.replicas_after, if_version=seen.resource_version)
        except OutcomeUnknown as error:
            answer = self._look_again(decided, intent.replicas_after, str(error))
        if isinstance(answer, Refused):
            return refused(self._order, decided, answer)
        if isinstance(answer, Rejected):
            return self._released(decided, answer, seen.replicas)
        return stopped(self._order, decided, seen.replicas, answer.replicas, acted_at=acted_at, remark=claimed.remark)

    def _look_again(self, decided: Decision, target: int, error: str) -> Count | Refused:
        """After a write without an answer; the write is never repeated. Unless the count is at its target the Intent stays: the
        write may still be under way, and then restore needs it."""
        try:
            count = self._owners.count(decided.owner)
        except SourceUnavailable as second:
            return Refused(Refusal.OUTCOME_UNKNOWN, f"whether the write was done is not known: {error}; and then: {second}")
        if isinstance(count, Count) and count.replicas == target:
            return count
        found = f"the count is {count.replicas}" if isinstance(count, Count) else count.detail
        return Refused(Refusal.OUTCOME_UNKNOWN, f"a write got no answer and has not shown yet ({found}): {error}")

    def _released(self, decided: Decision, answer: Rejected, replicas_seen: int) -> StopReceipt:
        """The server said no, so nothing changed, and the claim is given up. If that fails it ends by its age."""
        why = _no(answer)
        try:
            self._intents.delete(decided.owner.uid, decision_id=decided.decision_id)
        except SourceUnavailable as error:
            why = Refused(why.refusal, f"{why.detail}; the claim could not be removed: {error}")
        return refused(self._order, decided, why, replicas_seen)


def _moved(decided: Decision, seen: OwnerState) -> Refused | None:
    if seen.judged_digest == decided.judged_digest:
        return None
    counts = f"; its count went from {decided.replicas} to {seen.replicas}" if seen.replicas != decided.replicas else ""
    return Refused(Refusal.CHANGED_SINCE_DECIDED, f"count, pod template or our marks on it changed since it was judged{counts}")


def _new_pods(decided: Decision, seen: OwnerState) -> Refused | None:
    """A replica that got its node since it was judged was looked at by nobody; it may be at work already."""
    judged = {pod.uid for pod in decided.pods if pod.node is not None}
    strangers = [uid for uid in seen.placed_pods if uid not in judged]
    if not strangers:
        return None
    return Refused(
        Refusal.CHANGED_SINCE_DECIDED, f"pod {strangers[0]} got a node since it was judged, so nobody looked at its GPUs"
    )


def _guarded(seen: OwnerState) -> Refused | None:
    return Refused(Refusal.GUARDED, "; ".join(met.detail for met in seen.guards)) if seen.guards else None


def _no(answer: Rejected) -> Refused:
    return Refused(MEANING[answer.rejection], answer.detail)
