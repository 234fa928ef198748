"""A workload at its top owner, judged for guards, as a Session."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from steps.adapters.kubernetes.api import Json
from steps.adapters.kubernetes.climb import Top
from steps.adapters.kubernetes.digest import judged_digest
from steps.adapters.kubernetes.fields import count_at, instant_at, list_at, mapping_at, uid_of
from steps.adapters.kubernetes.guard_lists import GuardLists
from steps.adapters.kubernetes.guards import guards_of, unsupported
from steps.adapters.kubernetes.pods import gpus_requested, pod_facts
from steps.contracts.cluster_facts import Guard, GuardMet, Session
from steps.contracts.policy import OptOut

COUNTED: Final = ("Deployment", "StatefulSet", "ReplicaSet")
"""Kinds whose spec has a count; of any other the pods are counted."""


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """pods: those that have not ended, never empty."""

    top: Top
    pods: list[Json]

    @property
    def asks_for_gpus(self) -> bool:
        return any(gpus_requested(mapping_at(pod, "spec")) for pod in self.pods)


def session_of(workload: Workload, opt_out: OptOut, lists: GuardLists) -> Session:
    """The session with all guards that speak. Raises SourceUnavailable if a guard's list fails otherwise than by 403 or 404."""
    top = workload.top
    raw = top.raw or {}
    return Session(
        owner=top.owner,
        replicas=count_at(raw, "spec", "replicas") if top.raw and top.owner.kind in COUNTED else len(workload.pods),
        judged_digest=judged_digest(raw, opt_out),
        gpus_requested=_gpus_of_one(raw, workload.pods),
        created_at=instant_at(raw, "metadata", "creationTimestamp") or _oldest(workload.pods),
        pod_uids=tuple(uid_of(pod) for pod in workload.pods),
        guards=_guards(top, workload.pods, opt_out, lists),
    )


def _guards(top: Top, pods: Sequence[Json], opt_out: OptOut, lists: GuardLists) -> tuple[GuardMet, ...]:
    if top.lost is not None:
        return (GuardMet(guard=Guard.OWNER_UNKNOWN, detail=top.lost),)
    if top.raw is None:
        return tuple(unsupported(top.owner))
    return guards_of(top.owner, top.raw, pods, opt_out, lists)


def _gpus_of_one(raw: Json, pods: Sequence[Json]) -> int:
    template = mapping_at(raw, "spec", "template", "spec")
    if list_at(template, "containers"):
        return gpus_requested(template)
    return max(gpus_requested(mapping_at(pod, "spec")) for pod in pods)


def _oldest(pods: Sequence[Json]) -> datetime:
    return min(pod_facts(pod, None).created_at for pod in pods)
