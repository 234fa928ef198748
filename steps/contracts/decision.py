"""The verdict on a session, and what decide remembers between sweeps."""

import enum
from typing import Literal

from steps.contracts.cluster_facts import Grace, OwnerRef
from steps.contracts.document import Document, Instant, Sample, Stamp, State


class Verdict(enum.Enum):
    """unknown keeps the session as well, and is shown as what it is. deferred: would be stopped, but not by this run."""

    KEEP = "keep"
    UNKNOWN = "unknown"
    REFUSED = "refused"
    DEFERRED = "deferred"
    RECLAIM = "reclaim"


class Reason(enum.Enum):
    """One constant a rule; the sentence beside it is for people."""

    GUARDED = "Guarded"
    ALREADY_STOPPED = "AlreadyStopped"
    HOLDS_NOTHING = "HoldsNoDevice"
    TOO_YOUNG = "TooYoung"
    WORKING = "Working"
    PRESENT = "Present"
    SIGNAL_UNKNOWN = "SignalUnknown"
    IDLE_TOO_SHORT = "IdleTooShort"
    CAP_REACHED = "CapReached"
    OBSERVE_ONLY = "ObserveOnly"
    DRY_RUN = "DryRun"
    NEW_POLICY = "NewPolicy"
    IDLE = "IdleLongEnough"
    NO_RULE = "NoRuleApplied"


class Evidence(Document, frozen=True, kw_only=True):
    """One signal behind a verdict, in words: what was read, by whom, when. state: of the reading."""

    signal: str
    reading: str
    state: State
    source: str
    taken_at: Instant | None


class JudgedPod(Document, frozen=True, kw_only=True):
    """A pod of the judged session: where it runs, how long it may take to go, which devices it was given."""

    uid: str
    name: str
    node: str | None
    grace_s: Grace
    devices: Sample[tuple[str, ...]]


class Decision(Document, frozen=True, kw_only=True):
    """decision_id: made of run, session uid, digest and policy hash: the same judgement has the same id.

    acts: this decision may be handed to stop. eligible_at: when it would become reclaim if nothing changed.
    """

    decision_id: str
    run: str
    decided_at: Instant
    owner: OwnerRef
    judged_digest: str
    replicas: int
    pods: tuple[JudgedPod, ...]
    verdict: Verdict
    reason: Reason
    sentence: str
    evidence: tuple[Evidence, ...]
    idle_since: Instant | None
    eligible_at: Instant | None
    would_change: str
    policy_hash: str
    acts: bool


class Decisions(Document, frozen=True, kw_only=True):
    """All verdicts of one shard, in the order of judgement's gravity; also what the store holds for stop (acting ones only)."""

    document: Literal["Decisions/1"] = "Decisions/1"
    stamp: Stamp
    run: str
    shard: int
    dry_run: bool
    policy_hash: str
    decisions: tuple[Decision, ...]


class StopOrder(Document, frozen=True, kw_only=True):
    """What leaves the judge: an id and where to look. Never a decision."""

    decision: str
    shard: int
    session_uid: str
    nodes: tuple[str, ...]


class SessionMemory(Document, frozen=True, kw_only=True):
    """idle_since: since when every look found it idle. pod_uids: of the pods it is about; other pods restart the clock."""

    session_uid: str
    pod_uids: tuple[str, ...]
    idle_since: Instant
    last_seen_at: Instant


class SeenPod(Document, frozen=True, kw_only=True):
    """A pod with GPUs, as the last list that had it showed it. devices: uuids of its GPUs, empty if they were not all known.

    missed_at: the first list that lacked it, or in which it had ended; None while it is there.
    """

    uid: str
    namespace: str
    name: str
    grace_s: Grace
    devices: tuple[str, ...]
    seen_at: Instant
    missed_at: Instant | None = None


class SeenNode(Document, frozen=True, kw_only=True):
    """A node with the pods of it that must be answered for. told_at: when the shard that had the node last did so, run: in which
    run. looked_at: the node's own last look, which is older while it is silent; None: it never answered; looked_run: its run."""

    node: str
    run: str
    told_at: Instant
    looked_at: Instant | None
    looked_run: str | None
    pods: tuple[SeenPod, ...]


class Memory(Document, frozen=True, kw_only=True):
    """What decide alone remembers of one shard. Losing it restarts idle clocks, never advances them.

    quick_sweeps: how many sweeps in a row, up to the last, were quick at any node.
    first_run_under_policy: the run whose judgement was the first under this policy, so that a second try of that run is
    still the forced dry run.
    run, run_uid: that wrote this. nodes: what the next run answers for. before: what this run answered for, so that a second try
    of it says the same, after before_run; before_dropped: pods that `before` had no room for.
    """

    document: Literal["Memory/1"] = "Memory/1"
    policy_hash: str
    written_at: Instant
    sessions: tuple[SessionMemory, ...]
    first_run_under_policy: str | None = None
    quick_sweeps: int = 0
    run: str | None = None
    run_uid: str | None = None
    nodes: tuple[SeenNode, ...] = ()
    before: tuple[SeenNode, ...] = ()
    before_run: str | None = None
    before_dropped: int = 0
