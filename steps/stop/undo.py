"""Undo: put back what an Intent recorded, under the same guards as a stop, then forget the Intent. One write a session.

The count that is put back is the one that was, never a constant (facts/field-reports section 7); an owner that runs again is
left as it is, since whoever raised its count meant it.
"""

import enum
from datetime import datetime
from typing import Final

from steps.contracts.document import Document
from steps.contracts.errors import OutcomeUnknown, SourceUnavailable
from steps.contracts.ports import Count, IntentStore, OwnerSwitch, Rejected, Rejection
from steps.contracts.stop_receipt import Intent
from steps.stop.receipts import say


class Outcome(enum.Enum):
    WOULD_RESTORE = "would restore"
    WOULD_FORGET = "would forget"
    RESTORED = "restored"
    FORGOTTEN = "forgotten"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Undone(Document, frozen=True, kw_only=True):
    """One session. replicas_now: as read before anything was written, None if it is not known."""

    session: str
    namespace: str
    decision_id: str
    stopped_at: datetime
    replicas_before: int
    replicas_now: int | None
    outcome: Outcome
    sentence: str


class Undo:
    """act: False shows what would be done and writes nothing."""

    def __init__(self, owners: OwnerSwitch, intents: IntentStore, *, act: bool) -> None:
        self._owners: Final = owners
        self._intents: Final = intents
        self._act: Final = act

    def of(self, intent: Intent) -> Undone:
        """Undo one stop. Trouble with it is in the outcome, so that others are still undone."""
        try:
            seen = self._owners.count(intent.owner)
        except SourceUnavailable as error:
            return _undone(intent, None, Outcome.REFUSED, f"cannot be read: {error}")
        if isinstance(seen, Rejected):
            if seen.rejection is Rejection.GONE:
                return self._forget(intent, None, f"is gone ({seen.detail}), so there is nothing to put back")
            return _undone(intent, None, Outcome.REFUSED, f"cannot be read: {seen.detail}")
        if seen.replicas > 0:
            return self._forget(intent, seen.replicas, f"already runs with {seen.replicas}, so its count is left as it is")
        if not self._act:
            return _undone(intent, seen.replicas, Outcome.WOULD_RESTORE, f"would go from 0 to {intent.replicas_before}")
        return self._put_back(intent, seen)

    def _put_back(self, intent: Intent, seen: Count) -> Undone:
        answer: Count | Rejected
        try:
            answer = self._owners.scale(intent.owner, intent.replicas_before, if_version=seen.resource_version)
        except OutcomeUnknown as error:
            return self._look_again(intent, seen, str(error))
        except SourceUnavailable as error:
            return _undone(intent, seen.replicas, Outcome.REFUSED, f"was not scaled: {error}")
        if isinstance(answer, Rejected):
            hint = "; it changed just now, run this again" if answer.rejection is Rejection.CONFLICT else ""
            return _undone(intent, seen.replicas, Outcome.REFUSED, f"was not scaled: {answer.detail}{hint}")
        return self._restored(intent, seen, answer.replicas)

    def _look_again(self, intent: Intent, seen: Count, error: str) -> Undone:
        """After a write without an answer; the write is never repeated."""
        try:
            count = self._owners.count(intent.owner)
        except SourceUnavailable as second:
            error = f"{error}; and then: {second}"
        else:
            if isinstance(count, Count) and count.replicas == intent.replicas_before:
                return self._restored(intent, seen, count.replicas)
        return _undone(intent, seen.replicas, Outcome.UNKNOWN, f"was asked to scale, and whether it did is not known: {error}")

    def _restored(self, intent: Intent, seen: Count, replicas: int) -> Undone:
        words = f"was scaled from {seen.replicas} back to {replicas}{self._removed(intent)}"
        return _undone(intent, seen.replicas, Outcome.RESTORED, words)

    def _forget(self, intent: Intent, replicas_now: int | None, why: str) -> Undone:
        if not self._act:
            return _undone(intent, replicas_now, Outcome.WOULD_FORGET, f"{why}; only the record of the stop would be removed")
        return _undone(intent, replicas_now, Outcome.FORGOTTEN, f"{why}{self._removed(intent)}")

    def _removed(self, intent: Intent) -> str:
        """Remove the Intent; the words that say whether that worked. What is left over is harmless: a later stop removes it."""
        try:
            self._intents.delete(intent.owner.uid, decision_id=intent.decision_id)
        except SourceUnavailable as error:
            return f"; the record of the stop is still there: {error}"
        return "; the record of the stop is removed"


def session_name(intent: Intent) -> str:
    """`deployment/name`, as people write it."""
    return f"{intent.owner.kind.lower()}/{intent.owner.name}"


def _undone(intent: Intent, replicas_now: int | None, outcome: Outcome, words: str) -> Undone:
    return Undone(
        session=session_name(intent),
        namespace=intent.owner.namespace,
        decision_id=intent.decision_id,
        stopped_at=intent.stamp.made_at,
        replicas_before=intent.replicas_before,
        replicas_now=replicas_now,
        outcome=outcome,
        sentence=f"{say(intent.owner)} {words}.",
    )
