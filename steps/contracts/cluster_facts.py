"""What the API server says: sessions, their owners and guards, and the pods that wait for a GPU. Made by survey."""

import enum
from typing import Annotated, Final, Literal

import msgspec

from steps.contracts.document import Document, Instant, Sample, Stamp

LONGEST_GRACE_S: Final = 365 * 24 * 3600
"""What a longer grace counts as: the API takes any 64-bit number, and the end of a larger one is no date."""

Grace = Annotated[int, msgspec.Meta(ge=0, le=LONGEST_GRACE_S)]
"""Seconds that a pod may take to end."""


def grace_as_kept(written_s: int) -> int:
    """A termination grace as it counts: of a negative one Kubernetes makes 1 s (registry/core/pod/strategy.go)."""
    return 1 if written_s < 0 else min(written_s, LONGEST_GRACE_S)


class OwnerRef(Document, frozen=True, kw_only=True):
    """An object that owns pods, by identity."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class ContainerFacts(Document, frozen=True, kw_only=True):
    """container_ids: current and last state's, without the runtime prefix, newest first."""

    name: str
    container_ids: tuple[str, ...]


class Phase(enum.Enum):
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class PodFacts(Document, frozen=True, kw_only=True):
    """One pod as the API knows it. config_hash: a static pod's manifest hash, which is its uid on the node."""

    uid: str
    name: str
    namespace: str
    node: str | None
    phase: Phase
    created_at: Instant
    started_at: Instant | None
    deletion_requested_at: Instant | None
    grace_s: Grace
    gpus_requested: int
    containers: tuple[ContainerFacts, ...]
    config_hash: str | None = None
    owner_uid: str | None = None
    """uid of the top owner (the session), None where the chain could not be climbed."""
    sandbox_ids: tuple[str, ...] = ()
    """As the runtime names them, where it was asked: the API server does not know them."""


class Guard(enum.Enum):
    """Why a session must not be stopped, whatever its GPUs do."""

    OPTED_OUT = "OptedOut"
    AUTOSCALED = "AutoscalerOwnsCount"
    GITOPS_MANAGED = "GitOpsOwnsCount"
    VOLUMES_DELETED = "VolumesDeletedOnScaleDown"
    OWNER_UNKNOWN = "OwnerUnknown"
    OWNER_UNSUPPORTED = "OwnerKindUnsupported"
    DISRUPTION_BUDGET = "DisruptionBudget"
    FINALIZER = "PodFinalizer"
    NOT_READABLE = "GuardNotReadable"


class GuardMet(Document, frozen=True, kw_only=True):
    """detail: a sentence for a person, with the object that guards."""

    guard: Guard
    detail: str


class Session(Document, frozen=True, kw_only=True):
    """A workload at its top owner, with all its pods.

    replicas: what spec asks for now. judged_digest: hex digest of what is judged of the owner (replicas, pod template,
    our and the opt-out annotations and labels); neither status nor foreign annotations move it.
    pod_uids: all pods that have not ended, on any node, also those that are terminating. gpus_requested: of one replica.
    """

    owner: OwnerRef
    replicas: int
    judged_digest: str
    gpus_requested: int
    created_at: Instant
    pod_uids: tuple[str, ...]
    guards: tuple[GuardMet, ...]


class Waiter(Document, frozen=True, kw_only=True):
    """A pod that is Pending because no GPU is free. message: the scheduler's own words."""

    pod_uid: str
    name: str
    namespace: str
    gpus_requested: int
    pending_since: Instant
    message: Sample[str]


class ClusterFacts(Document, frozen=True, kw_only=True):
    """All pods of the surveyed nodes, all sessions of the policy's namespaces that ask for a GPU, all waiters.

    absent_namespaces: those that the policy names and the cluster does not have; nothing in them was judged.
    pod_lists: how many lists, some seconds apart, `pods` puts together. What one list alone lacks is not yet gone.
    """

    document: Literal["ClusterFacts/1"] = "ClusterFacts/1"
    stamp: Stamp
    nodes: tuple[str, ...]
    pods: tuple[PodFacts, ...]
    sessions: tuple[Session, ...]
    waiters: tuple[Waiter, ...]
    pod_lists: int = 1
    absent_namespaces: tuple[str, ...] = ()
