"""The claim before a stop and the receipt after it."""

import enum
from typing import Literal

from steps.contracts.cluster_facts import OwnerRef
from steps.contracts.decision import JudgedPod
from steps.contracts.document import Document, Instant, Stamp


class Intent(Document, frozen=True, kw_only=True):
    """Written before the act, one a session uid: the claim, and what restore needs. Kept until restored."""

    document: Literal["Intent/1"] = "Intent/1"
    stamp: Stamp
    decision_id: str
    owner: OwnerRef
    switch: str
    replicas_before: int
    replicas_after: int
    resource_version_seen: str


class Refusal(enum.Enum):
    """Why a stop did not happen. A refusal is a result, not an error."""

    UNKNOWN_DECISION = "UnknownDecision"
    DECISION_TOO_OLD = "DecisionTooOld"
    DECISION_DOES_NOT_ACT = "DecisionDoesNotAct"
    DRY_RUN = "DryRun"
    OBSERVE_ONLY = "ObserveOnly"
    POLICY_CHANGED = "PolicyChanged"
    SESSION_GONE = "SessionGone"
    CHANGED_SINCE_DECIDED = "ChangedSinceDecided"
    GUARDED = "Guarded"
    SIGN_OF_LIFE = "SignOfLife"
    SIGNAL_UNKNOWN = "SignalUnknown"
    CLAIMED_BY_ANOTHER = "ClaimedByAnother"
    CONFLICT = "ConflictOnWrite"
    FORBIDDEN = "Forbidden"
    INVALID = "RejectedAsInvalid"
    OUTCOME_UNKNOWN = "OutcomeUnknown"


class StopReceipt(Document, frozen=True, kw_only=True):
    """acted: the count was changed by this stop (now, or by an earlier try of the same decision)."""

    document: Literal["StopReceipt/1"] = "StopReceipt/1"
    stamp: Stamp
    decision_id: str
    owner: OwnerRef | None
    acted: bool
    refusal: Refusal | None
    sentence: str
    switch: str | None
    replicas_before: int | None
    replicas_after: int | None
    acted_at: Instant | None
    pods: tuple[JudgedPod, ...]
