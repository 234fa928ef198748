"""Whether the memory of a stopped or deleted session came back, proven on the node. Made by verify."""

import enum
from typing import Literal

from steps.contracts.document import Document, Instant, Sample, Stamp
from steps.contracts.traced import GpuClass, TracedHolder


class ReleaseVerdict(enum.Enum):
    """pending: too early for the class rule, with `pending_until`. not stopped: there was nothing to verify."""

    RETURNED = "returned"
    TAKEN_OVER = "taken over"
    LEAKED = "leaked"
    PENDING = "pending"
    UNKNOWN = "unknown"


class DeviceRelease(Document, frozen=True, kw_only=True):
    """One device of the session. taken_over_by: pod uid whose processes or allocation hold it now.

    last_seen_held, first_seen_free: the interval in which the memory came back; no single instant is claimed.
    """

    device: str
    verdict: ReleaseVerdict
    gpu_class: GpuClass
    sentence: str
    used_before_bytes: Sample[int]
    used_after_bytes: Sample[int]
    last_seen_held: Instant | None
    first_seen_free: Instant | None
    taken_over_by: str | None
    holders: tuple[TracedHolder, ...]
    remedy: str | None
    pending_until: Instant | None = None


class Release(Document, frozen=True, kw_only=True):
    """verdict: the gravest of the devices (leaked, unknown, pending, then taken over, returned)."""

    document: Literal["Release/1"] = "Release/1"
    stamp: Stamp
    node: str
    decision_id: str | None
    pod_uids: tuple[str, ...]
    verdict: ReleaseVerdict
    sentence: str
    devices: tuple[DeviceRelease, ...]
    watched_from: Instant
    watched_until: Instant
