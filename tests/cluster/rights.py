"""What each shipped account may do and what not, by hand: the roles are held to it without a cluster, the API server on one.

(account, verb, resource, namespace); None: in every namespace.
"""

from collections.abc import Iterator

from tests.cluster.scene import TEAM

OWN = "gpu-reclaim"
OTHER = "team-elsewhere"
"""A namespace that opted in to nothing; RBAC answers for it whether it exists or not."""

Right = tuple[str, str, str, str | None]


def rights(account: str, namespace: str | None, **verbs: str) -> Iterator[Right]:
    """Each verb with each of its resources, which are separated by blanks."""
    return ((account, verb, resource, namespace) for verb, resources in verbs.items() for resource in resources.split())


SESSIONS_AND_GUARDS = (
    "pods nodes namespaces deployments.apps replicasets.apps statefulsets.apps daemonsets.apps jobs.batch cronjobs.batch "
    "horizontalpodautoscalers.autoscaling poddisruptionbudgets.policy scaledobjects.keda.sh applications.argoproj.io"
)
GUARDS = "horizontalpodautoscalers.autoscaling poddisruptionbudgets.policy scaledobjects.keda.sh"
WORKFLOWS, TEMPLATES = "workflows.argoproj.io", "workflowtemplates.argoproj.io"

MAY: list[Right] = [
    *rights("reader", None, get=SESSIONS_AND_GUARDS, list=SESSIONS_AND_GUARDS),
    *rights("reader", OWN, get="configmaps", create="configmaps", patch="configmaps"),
    *rights("stopper", OWN, get="configmaps", create="configmaps", delete="configmaps"),
    *rights("stopper", TEAM, get="deployments.apps deployments.apps/scale namespaces", patch="deployments.apps/scale"),
    *rights("stopper", TEAM, list=f"pods {GUARDS}", create="events.events.k8s.io"),
    *rights("stopper", None, list="applications.argoproj.io"),
    *rights("archivist", None, get="pods", list="pods"),
    *rights("archivist", OWN, get=f"{WORKFLOWS} pods/log"),
    *rights("archivist", TEAM, create="events.events.k8s.io"),
    *rights("executor", OWN, create="workflowtaskresults.argoproj.io", patch="workflowtaskresults.argoproj.io"),
    *rights("submitter", OWN, create=WORKFLOWS, get=f"{WORKFLOWS} {TEMPLATES}"),
    *rights("submitter", OWN, list=f"{WORKFLOWS} {TEMPLATES}", watch=f"{WORKFLOWS} {TEMPLATES}"),
]
"""All that is granted, no more."""

MAY_NOT: list[Right] = [
    ("reader", "patch", "deployments.apps/scale", TEAM),
    ("reader", "delete", "pods", TEAM),
    ("reader", "get", "secrets", OWN),
    ("reader", "create", "pods", OWN),
    ("reader", "create", "workflows.argoproj.io", OWN),
    ("stopper", "patch", "deployments.apps", TEAM),
    ("stopper", "update", "deployments.apps", TEAM),
    ("stopper", "update", "deployments.apps/scale", TEAM),
    ("stopper", "delete", "pods", TEAM),
    ("stopper", "delete", "deployments.apps", TEAM),
    ("stopper", "get", "secrets", TEAM),
    ("stopper", "patch", "statefulsets.apps/scale", TEAM),
    ("stopper", "patch", "applications.argoproj.io", TEAM),
    ("stopper", "get", "deployments.apps", OTHER),
    ("stopper", "list", "pods", OTHER),
    ("stopper", "patch", "deployments.apps/scale", OTHER),
    ("stopper", "patch", "configmaps", OWN),
    ("archivist", "patch", "deployments.apps/scale", TEAM),
    ("archivist", "get", "configmaps", OWN),
    ("archivist", "get", "pods/log", TEAM),
    ("executor", "get", "pods", OWN),
    ("executor", "create", "pods", OWN),
    ("submitter", "create", "pods", OWN),
    ("submitter", "create", "workflowtemplates.argoproj.io", OWN),
    ("submitter", "update", "workflowtemplates.argoproj.io", OWN),
    ("submitter", "get", "secrets", OWN),
    ("submitter", "patch", "deployments.apps/scale", TEAM),
    *(
        ("probe", verb, resource, namespace)
        for verb in ("get", "list", "create", "patch", "delete")
        for resource in ("pods", "configmaps", "secrets")
        for namespace in (OWN, TEAM)
    ),
]
