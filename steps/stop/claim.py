"""The claim: an Intent is created before the act, one an owner uid, so that of two stops one acts and restore knows what was.

A stale Intent (its owner's count is above 0) is one whose stop never came, or was undone by hand. It is removed only once it is
older than any decision that stop accepts plus the time a stop may take. Its own decision, and with it every retry that would
call it *ours*, is refused by then, so nobody can be between that Intent and the write it announces. Younger ones are somebody
else's claim, even if they look abandoned. Two stops that heal the same Intent at once: the removal is guarded by the uid of the
record that was read, so only one new Intent comes to be, and the other stop is refused.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from steps.contracts.decision import Decision
from steps.contracts.errors import OutcomeUnknown
from steps.contracts.ports import IntentStore, OwnerState
from steps.contracts.stop_receipt import Intent, Refusal
from steps.stop.order import MAX_AGE, Order, Refused
from steps.stop.receipts import SWITCH, say, stamp_of

LONGEST_STOP: Final = timedelta(minutes=5)
"""Above the timeout of the stop's pod, with room for clocks that disagree."""
STALE_AFTER: Final = MAX_AGE + LONGEST_STOP
TARGET: Final = 0


@dataclass(frozen=True, slots=True)
class Claim:
    """intent: ours, from this try or an earlier one of the same decision. remark: a clause about what was healed."""

    intent: Intent
    remark: str = ""


def claim(order: Order, decided: Decision, seen: OwnerState, intents: IntentStore) -> Claim | Refused:
    """Create the Intent, or find it created by an earlier try of this decision. Raises SourceUnavailable."""
    wanted = _intent(order, decided, seen)
    found = _create(wanted, intents)
    if found.decision_id == decided.decision_id:
        return Claim(found)
    if not _is_stale(found, order):
        return _claimed_by_another(found)
    intents.delete(decided.owner.uid, decision_id=found.decision_id)
    again = _create(wanted, intents)
    if again.decision_id != decided.decision_id:
        return _claimed_by_another(again)
    return Claim(again, f"; a stale claim of decision {found.decision_id} was removed, its owner was running again")


def _intent(order: Order, decided: Decision, seen: OwnerState) -> Intent:
    return Intent(
        stamp=stamp_of(order),
        decision_id=decided.decision_id,
        owner=decided.owner,
        switch=SWITCH,
        replicas_before=seen.replicas,
        replicas_after=TARGET,
        resource_version_seen=seen.resource_version,
    )


def _create(wanted: Intent, intents: IntentStore) -> Intent:
    """The Intent that stands after the attempt, ours or another's; an attempt without an answer is looked up, not repeated."""
    try:
        return intents.create(wanted) or wanted
    except OutcomeUnknown:
        found = intents.load(wanted.owner.uid)
        if found is None:
            raise
        return found


def _is_stale(found: Intent, order: Order) -> bool:
    """The owner's count is above 0 whenever this is asked: digest and decision agreed on it."""
    return order.now - found.stamp.made_at > STALE_AFTER


def _claimed_by_another(found: Intent) -> Refused:
    return Refused(
        Refusal.CLAIMED_BY_ANOTHER,
        f"decision {found.decision_id} claimed {say(found.owner)} at {found.stamp.made_at:%Y-%m-%d %H:%M:%S} UTC; "
        f"that claim ends {STALE_AFTER.total_seconds() / 60:.0f} min later, or by `gpu-reclaim restore`",
    )
