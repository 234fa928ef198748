"""Builders of raw Kubernetes objects in an ApiDouble: a team's namespace, Deployments with their ReplicaSet and pods."""

from typing import Any

from steps.adapters.kubernetes.api import Json
from steps.contracts.cluster_facts import OwnerRef
from steps.contracts.policy import Mode, Policy
from tests.unit.api_double import ApiDouble, not_installed

TEAM = "team"
POLICY = Policy(mode=Mode.ACT, namespaces=(TEAM,))
DEPLOYMENT = f"/apis/apps/v1/namespaces/{TEAM}/deployments/a"
SCALE = f"{DEPLOYMENT}/scale"
KEDA = "/apis/keda.sh/v1alpha1/.*"
ARGO_CD = "/apis/argoproj.io/v1alpha1/applications"


def cluster(*, keda: bool = False, argo_cd: bool = False) -> ApiDouble:
    """A cluster with the team's namespace; KEDA and Argo CD are not installed unless asked for."""
    api = ApiDouble()
    api.put(f"/api/v1/namespaces/{TEAM}", {})
    api.faults += [] if keda else [not_installed(KEDA)]
    api.faults += [] if argo_cd else [not_installed(ARGO_CD)]
    return api


def pod_spec(gpus: int = 1) -> Json:
    return {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": str(gpus)} if gpus else {}}}]}


def controlled_by(raw: Json, kind: str, api_version: str = "apps/v1") -> Json:
    metadata = raw["metadata"]
    return {"apiVersion": api_version, "kind": kind, "name": metadata["name"], "uid": metadata["uid"], "controller": True}


def deploy(
    api: ApiDouble, name: str = "a", *, replicas: int = 1, gpus: int = 1, namespace: str = TEAM, **metadata: Any
) -> OwnerRef:
    """A Deployment as the API holds it, with a ReplicaSet and its running pods `<name>-0`... on node `n1`."""
    labels = {"app": name}
    made = api.put(
        f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}",
        {
            "metadata": metadata,
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod_spec(gpus)},
            },
        },
    )
    middle = api.put(
        f"/apis/apps/v1/namespaces/{namespace}/replicasets/{name}-7d9",
        {"metadata": {"ownerReferences": [controlled_by(made, "Deployment")]}, "spec": {"replicas": replicas}},
    )
    for number in range(replicas):
        pod(
            api,
            f"{name}-{number}",
            gpus=gpus,
            namespace=namespace,
            labels=labels,
            ownerReferences=[controlled_by(middle, "ReplicaSet")],
        )
    return OwnerRef(api_version="apps/v1", kind="Deployment", namespace=namespace, name=name, uid=made["metadata"]["uid"])


def pod(
    api: ApiDouble,
    name: str,
    *,
    gpus: int = 1,
    namespace: str = TEAM,
    node: str | None = "n1",
    phase: str = "Running",
    **metadata: Any,
) -> Json:
    status = {"phase": phase, "startTime": "2026-11-30T09:00:10Z"}
    spec = {**pod_spec(gpus), **({"nodeName": node} if node else {}), "terminationGracePeriodSeconds": 20}
    return api.put(f"/api/v1/namespaces/{namespace}/pods/{name}", {"metadata": metadata, "spec": spec, "status": status})
