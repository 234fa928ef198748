"""The cluster as survey sees it: GPU nodes, pods, sessions at their top owner, and who waits for a GPU.

Cost of a survey: one paged list of all pods, one GET an owner, one list a guard kind and namespace; no write.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from steps.adapters.kubernetes.answers import body_of, unavailable
from steps.adapters.kubernetes.api import Api, Json
from steps.adapters.kubernetes.climb import Climber
from steps.adapters.kubernetes.fields import list_at, mapping_at, name_of, namespace_of, path_of, text_at, uid_of
from steps.adapters.kubernetes.guard_lists import GuardLists
from steps.adapters.kubernetes.pods import gpus_in, gpus_requested, is_over, pod_facts, waiter_of
from steps.adapters.kubernetes.sessions import Workload, session_of
from steps.contracts.cluster_facts import PodFacts, Session, Waiter
from steps.contracts.policy import Policy
from steps.contracts.ports import Clock, GpuNode

ALL_PODS: Final = "/api/v1/pods"
NODES: Final = "/api/v1/nodes"


class KubernetesCluster:
    """Fits ports.ClusterReader. Made for one survey: owners and guards are read once and kept as long as this object."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api: Final = api
        self._clock: Final = clock
        self._climber: Final = Climber(api)
        self._lists: Final = GuardLists(api)
        self._listed: list[Json] | None = None

    def gpu_nodes(self) -> tuple[GpuNode, ...]:
        """Nodes that offer GPUs or did (capacity left, nothing allocatable), by name; also those that are not ready."""
        raws = list_at(body_of(self._api.list(NODES), "list", NODES), "items")
        nodes = (GpuNode(name=name_of(raw), gpus=_gpus_of(raw), ready=_is_ready(raw)) for raw in raws)
        return tuple(sorted((node for node in nodes if node.gpus), key=lambda node: node.name))

    def pods_on(self, nodes: Sequence[str]) -> tuple[PodFacts, ...]:
        """Fits the port. owner_uid is looked up for pods that ask for a GPU only; other pods have no session."""
        self._listed = self._pods(ALL_PODS)
        wanted = set(nodes)
        return tuple(pod_facts(raw, self._owner_uid(raw)) for raw in self._listed if text_at(raw, "spec", "nodeName") in wanted)

    def sessions(self, policy: Policy, pods: Sequence[PodFacts]) -> tuple[Session, ...]:
        """Fits the port. Judged on the pods that `pods_on` listed just before, or on a fresh list without that."""
        surveyed = {pod.uid for pod in pods}
        found = [session for name in policy.namespaces for session in self._sessions_in(name, policy, surveyed)]
        return tuple(sorted(found, key=lambda session: (session.owner.namespace, session.owner.name, session.owner.uid)))

    def absent_namespaces(self, policy: Policy) -> tuple[str, ...]:
        """Fits the port."""
        return tuple(name for name in policy.namespaces if not self._exists(name))

    def waiters(self, namespaces: Sequence[str] | None) -> tuple[Waiter, ...]:
        """Fits the port; always a fresh list."""
        raws = self._pods(ALL_PODS, field_selector="status.phase=Pending")
        found = [waiter for raw in raws if (waiter := waiter_of(raw)) and (namespaces is None or waiter.namespace in namespaces)]
        now = self._clock.now()
        stamped = (msgspec.structs.replace(w, message=msgspec.structs.replace(w.message, taken_at=now)) for w in found)
        return tuple(sorted(stamped, key=lambda waiter: (waiter.pending_since, waiter.namespace, waiter.name)))

    def _pods(self, path: str, field_selector: str = "") -> list[Json]:
        return list_at(body_of(self._api.list(path, field_selector=field_selector), "list", path), "items")

    def _owner_uid(self, raw: Json) -> str | None:
        if not gpus_requested(mapping_at(raw, "spec")):
            return None
        top = self._climber.top(raw)
        return None if top.lost else top.owner.uid

    def _sessions_in(self, namespace: str, policy: Policy, surveyed: set[str]) -> Iterable[Session]:
        if not self._exists(namespace):
            return
        if self._listed is None:
            raws = self._pods(path_of("/api/v1", namespace, "pods"))
        else:
            raws = [raw for raw in self._listed if namespace_of(raw) == namespace]
        for workload in self._workloads(raws):
            if workload.asks_for_gpus and any(uid_of(pod) in surveyed or waiter_of(pod) for pod in workload.pods):
                yield session_of(workload, policy.opt_out, self._lists)

    def _workloads(self, raws: Iterable[Json]) -> list[Workload]:
        """Pods that have not ended, by their top owner: a finished one (evicted, completed) is no part of a session."""
        by_uid: dict[str, Workload] = {}
        for raw in raws:
            if not is_over(raw):
                top = self._climber.top(raw)
                by_uid.setdefault(top.owner.uid, Workload(top=top, pods=[])).pods.append(raw)
        return list(by_uid.values())

    def _exists(self, namespace: str) -> bool:
        """Whether the namespace is there; where it may not be read (403) it counts as there, and is a guard of its sessions."""
        answer = self._lists.namespace(namespace)
        if not answer.ok and answer.status not in {403, 404}:
            raise unavailable(answer, "get", f"/api/v1/namespaces/{namespace}")
        return answer.status != 404


def _gpus_of(raw: Json) -> int:
    """Allocatable, or the capacity where nothing is allocatable: such a node still has GPUs, and perhaps holders."""
    return gpus_in(mapping_at(raw, "status", "allocatable")) or gpus_in(mapping_at(raw, "status", "capacity"))


def _is_ready(raw: Json) -> bool:
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in list_at(raw, "status", "conditions"))
