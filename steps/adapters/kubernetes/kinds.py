"""The built-in kinds that own pods: where each lives, and which is supported as the top of a session."""

from typing import Final

import msgspec

from steps.contracts.cluster_facts import OwnerRef


class Kind(msgspec.Struct, frozen=True):
    """group: without the version, so that an old and a new version of one kind are the same."""

    group: str
    prefix: str
    plural: str


KINDS: Final = {
    "ReplicaSet": Kind("apps", "/apis/apps/v1", "replicasets"),
    "Deployment": Kind("apps", "/apis/apps/v1", "deployments"),
    "StatefulSet": Kind("apps", "/apis/apps/v1", "statefulsets"),
    "DaemonSet": Kind("apps", "/apis/apps/v1", "daemonsets"),
    "Job": Kind("batch", "/apis/batch/v1", "jobs"),
    "CronJob": Kind("batch", "/apis/batch/v1", "cronjobs"),
}

SWITCHES: Final = {"Deployment": "deployments/scale"}
"""Kinds that can be stopped, with the switch. A kind is supported when a test stops and restores it, not before."""


def group_of(api_version: str) -> str:
    """`apps/v1` -> `apps`, `v1` -> the core group, which has no name."""
    return api_version.rpartition("/")[0]


def known_kind(api_version: str, kind: str) -> Kind | None:
    """The built-in kind; None for every other, also for a custom kind that bears a built-in's name."""
    known = KINDS.get(kind)
    return known if known is not None and known.group == group_of(api_version) else None


def switch_of(owner: OwnerRef) -> str | None:
    return SWITCHES.get(owner.kind) if known_kind(owner.api_version, owner.kind) else None
