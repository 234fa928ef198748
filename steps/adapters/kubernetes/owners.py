"""The owner's own switch: read it afresh with its guards, look at its count, write its count once.

`/scale` has optimistic locking: the version of the Scale is its parent's, so one read guards the write (facts/kubernetes 1).
"""

from typing import Final

from steps.adapters.kubernetes.answers import rejected
from steps.adapters.kubernetes.api import Answer, Api, Json
from steps.adapters.kubernetes.digest import judged_digest
from steps.adapters.kubernetes.fields import count_at, list_at, mapping_at, path_of, text_at, texts_at, uid_of
from steps.adapters.kubernetes.guard_lists import PODS, GuardLists
from steps.adapters.kubernetes.guards import guards_of
from steps.adapters.kubernetes.kinds import KINDS, switch_of
from steps.adapters.kubernetes.pods import is_over
from steps.adapters.kubernetes.selectors import matches
from steps.contracts.cluster_facts import Guard, GuardMet, OwnerRef
from steps.contracts.policy import Policy
from steps.contracts.ports import Count, OwnerState, Rejected, Rejection


class KubernetesOwners:
    """Fits ports.OwnerSwitch."""

    def __init__(self, api: Api) -> None:
        self._api: Final = api

    def read(self, owner: OwnerRef, policy: Policy) -> OwnerState | Rejected:
        """Fits the port. Nothing is kept: every call reads the owner, its pods and all guards again."""
        raw = self._owner(owner)
        if isinstance(raw, Rejected):
            return raw
        lists = GuardLists(self._api)
        pods = lists.of(PODS, owner.namespace)
        unreadable = () if pods.refused is None else (_pods_unreadable(owner, pods.refused),)
        own = [pod for pod in pods.items if not is_over(pod) and _belongs(pod, raw)]
        return OwnerState(
            owner=owner,
            replicas=count_at(raw, "spec", "replicas"),
            judged_digest=judged_digest(raw, policy.opt_out),
            resource_version=text_at(raw, "metadata", "resourceVersion") or "",
            guards=(*guards_of(owner, raw, own, policy.opt_out, lists), *unreadable),
            placed_pods=tuple(sorted(uid_of(pod) for pod in own if _is_placed(pod))),
        )

    def count(self, owner: OwnerRef) -> Count | Rejected:
        """Fits the port."""
        raw = self._owner(owner)
        return raw if isinstance(raw, Rejected) else _count(raw)

    def scale(self, owner: OwnerRef, replicas: int, *, if_version: str) -> Count | Rejected:
        """Fits the port. A merge patch of the Scale; the version in its body makes the server answer 409 to a stale one."""
        path = _path(owner, "scale")
        if path is None:
            return _no_switch(owner)
        answer = self._api.patch(path, {"metadata": {"resourceVersion": if_version}, "spec": {"replicas": replicas}})
        return _count(answer.body) if answer.ok else rejected(answer, "patch", path)

    def _owner(self, owner: OwnerRef) -> Json | Rejected:
        path = _path(owner)
        if path is None:
            return _no_switch(owner)
        answer = self._api.get(path)
        if not answer.ok:
            return rejected(answer, "get", path)
        return _the_same(owner, answer)


def _path(owner: OwnerRef, below: str | None = None) -> str | None:
    """The path of an owner that has a switch of ours, else None."""
    if switch_of(owner) is None:
        return None
    kind = KINDS[owner.kind]
    return path_of(kind.prefix, owner.namespace, kind.plural, owner.name, below)


def _the_same(owner: OwnerRef, answer: Answer) -> Json | Rejected:
    if uid_of(answer.body) != owner.uid:
        return Rejected(rejection=Rejection.GONE, detail=f"{owner.kind} {owner.name} now bears another uid: it was made anew")
    if text_at(answer.body, "metadata", "deletionTimestamp"):
        return Rejected(rejection=Rejection.GONE, detail=f"{owner.kind} {owner.name} is being deleted")
    return answer.body


def _count(raw: Json) -> Count:
    return Count(replicas=count_at(raw, "spec", "replicas"), resource_version=text_at(raw, "metadata", "resourceVersion") or "")


def _no_switch(owner: OwnerRef) -> Rejected:
    return Rejected(rejection=Rejection.INVALID, detail=f"{owner.kind} ({owner.api_version}) has no switch that gpu-reclaim knows")


def _belongs(pod: Json, owner: Json) -> bool:
    return matches(mapping_at(owner, "spec").get("selector"), texts_at(pod, "metadata", "labels"))


def _is_placed(pod: Json) -> bool:
    """A replica that has a node. Pods of a Job or nobody that merely bear the same labels are not the owner's."""
    makers = (one for one in list_at(pod, "metadata", "ownerReferences") if one.get("controller") is True)
    return text_at(pod, "spec", "nodeName") is not None and any(text_at(one, "kind") == "ReplicaSet" for one in makers)


def _pods_unreadable(owner: OwnerRef, words: str) -> GuardMet:
    return GuardMet(guard=Guard.NOT_READABLE, detail=f"pods in {owner.namespace} cannot be read, so a guard may be missed: {words}")
