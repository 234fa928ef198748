"""Paths of the API and the kinds this API serves. A path of another kind is 404, as without its CRD."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Kind:
    """prefix: `/api/v1` or `/apis/GROUP/VERSION`."""

    prefix: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return self.prefix.removeprefix("/apis/").removeprefix("/api/")

    def path(self, namespace: str | None, name: str) -> str:
        return f"{self.collection(namespace)}/{name}"

    def collection(self, namespace: str | None) -> str:
        return f"{self.prefix}/namespaces/{namespace}/{self.plural}" if namespace else f"{self.prefix}/{self.plural}"


CORE: Final = "/api/v1"
NODE: Final = Kind(CORE, "nodes", "Node", namespaced=False)
NAMESPACE: Final = Kind(CORE, "namespaces", "Namespace", namespaced=False)
POD: Final = Kind(CORE, "pods", "Pod")
CONFIG_MAP: Final = Kind(CORE, "configmaps", "ConfigMap")
CORE_EVENT: Final = Kind(CORE, "events", "Event")
EVENT: Final = Kind("/apis/events.k8s.io/v1", "events", "Event")
DEPLOYMENT: Final = Kind("/apis/apps/v1", "deployments", "Deployment")
REPLICA_SET: Final = Kind("/apis/apps/v1", "replicasets", "ReplicaSet")

KINDS: Final[dict[tuple[str, str], Kind]] = {
    (kind.prefix, kind.plural): kind
    for kind in (
        NODE,
        NAMESPACE,
        POD,
        CONFIG_MAP,
        CORE_EVENT,
        EVENT,
        DEPLOYMENT,
        REPLICA_SET,
        Kind("/apis/apps/v1", "statefulsets", "StatefulSet"),
        Kind("/apis/apps/v1", "daemonsets", "DaemonSet"),
        Kind("/apis/batch/v1", "jobs", "Job"),
        Kind("/apis/autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
        Kind("/apis/policy/v1", "poddisruptionbudgets", "PodDisruptionBudget"),
        Kind(CORE, "persistentvolumeclaims", "PersistentVolumeClaim"),
        Kind(CORE, "services", "Service"),
        Kind("/apis/argoproj.io/v1alpha1", "workflows", "Workflow"),
    )
}


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names. name None: the collection; namespace None: cluster scope, or all namespaces."""

    kind: Kind
    namespace: str | None
    name: str | None
    subresource: str | None

    @property
    def object_path(self) -> str:
        return self.kind.path(self.namespace, self.name or "")


def target_of(path: str) -> Target | None:
    """None: the server could not find the requested resource."""
    parts = path.strip("/").split("/")
    head = 2 if parts[:1] == ["api"] else 3
    prefix, rest = "/" + "/".join(parts[:head]), parts[head:]
    namespace: str | None = None
    if len(rest) >= 3 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    if not 1 <= len(rest) <= 3 or not all(rest):
        return None
    kind = KINDS.get((prefix, rest[0]))
    if kind is None or (namespace is not None and not kind.namespaced):
        return None
    name, subresource = (rest[1] if len(rest) > 1 else None), (rest[2] if len(rest) > 2 else None)
    if kind.namespaced and namespace is None and name is not None:
        return None
    return Target(kind, namespace, name, subresource)
