"""What became of the devices of a deleted pod, proven on its node. Made by release-check."""

import enum
from typing import Literal

from steps.contracts.document import Document, Stamp
from steps.contracts.release import Release


class Answer(enum.Enum):
    """The words of ReleaseVerdict, and one more: the event was no deletion, and the pod still holds its device."""

    RETURNED = "returned"
    TAKEN_OVER = "taken over"
    LEAKED = "leaked"
    PENDING = "pending"
    UNKNOWN = "unknown"
    STILL_LIVES = "still lives"


class CheckedPod(Document, frozen=True, kw_only=True):
    """The pod of the event. namespace, name: to show it; what is looked for is the uid. deletion_told: whether the event said that
    it was being deleted; None in documents that did not keep it."""

    uid: str
    namespace: str
    name: str
    node: str
    deletion_told: bool | None = None


class ReleaseCheck(Document, frozen=True, kw_only=True):
    """release: what was watched, device by device; None where the pod still lives and nothing had to be watched."""

    document: Literal["ReleaseCheck/1"] = "ReleaseCheck/1"
    stamp: Stamp
    pod: CheckedPod
    answer: Answer
    sentence: str
    release: Release | None
