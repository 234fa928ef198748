"""An installation of gpu-reclaim as the API server shows it. Read for `gpu-reclaim doctor`, with the person's own rights."""

from typing import Literal

from steps.contracts.document import Document, Sample, Stamp
from steps.contracts.ports import GpuNode


class Grant(Document, frozen=True, kw_only=True):
    """Somebody may do something. subject: "ServiceAccount gpu-reclaim/stopper", "Group developers"; right: "create pods"."""

    subject: str
    right: str
    through: str


class Admission(Document, frozen=True, kw_only=True):
    """The policy for Workflows. denies: a binding of it has the action Deny; chosen: that binding selects our namespace. gaps: in
    which ways the policy admits more than the one that is shipped."""

    present: bool
    denies: bool
    chosen: bool
    gaps: tuple[str, ...] = ()


class Hook(Document, frozen=True, kw_only=True):
    """A way in from outside. source: event source and event, "tags/pushed". secret_bytes: 0 means that no signature is verified."""

    source: str
    secret_bytes: int


class Installation(Document, frozen=True, kw_only=True):
    """What could not be read, mostly for lack of rights, is unknown with its reason.

    controllers: images of Argo's controllers that run as Deployments. pod_makers: who may bring a pod into the namespace, one way
    or another, beyond the cluster's own controllers. probe_grants: what is bound to the probe's account. enforced: the namespace's
    pod security level, empty if it names none. clocks: what starts sweeps by itself. hooks: of git forges. claim: phase of the
    evidence's volume claim. namespaces: all of the cluster.
    """

    document: Literal["Installation/1"] = "Installation/1"
    stamp: Stamp
    namespace: str
    kubernetes: Sample[str]
    kinds: Sample[tuple[str, ...]]
    controllers: Sample[tuple[str, ...]]
    admission: Sample[Admission]
    enforced: Sample[str]
    accounts: Sample[tuple[str, ...]]
    executor_token: Sample[bool]
    pod_makers: Sample[tuple[Grant, ...]]
    probe_grants: Sample[tuple[Grant, ...]]
    nodes: Sample[tuple[GpuNode, ...]]
    runtime_class: Sample[bool]
    templates: Sample[tuple[str, ...]]
    clocks: Sample[tuple[str, ...]]
    hooks: Sample[tuple[Hook, ...]]
    claim: Sample[str]
    policy: Sample[str]
    namespaces: Sample[tuple[str, ...]]
