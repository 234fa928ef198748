"""What each shipped account may do, and what not, asked of a real API server."""

import pytest

from tests.cluster.lab.lab import Lab
from tests.cluster.scene import TEAM

pytestmark = pytest.mark.cluster

OWN = "gpu-reclaim"
OTHER = "team-elsewhere"
"""A namespace that opted in to nothing; RBAC answers for it whether it exists or not."""

MAY = [
    ("reader", "list", "pods", None),
    ("reader", "list", "nodes", None),
    ("reader", "get", "deployments.apps", None),
    ("reader", "list", "horizontalpodautoscalers.autoscaling", None),
    ("reader", "create", "configmaps", OWN),
    ("stopper", "get", "deployments.apps", TEAM),
    ("stopper", "patch", "deployments.apps/scale", TEAM),
    ("stopper", "create", "events.events.k8s.io", TEAM),
    ("stopper", "create", "configmaps", OWN),
    ("archivist", "get", "workflows.argoproj.io", OWN),
    ("archivist", "get", "pods/log", OWN),
    ("archivist", "list", "pods", None),
    ("executor", "create", "workflowtaskresults.argoproj.io", OWN),
    ("submitter", "create", "workflows.argoproj.io", OWN),
]
MAY_NOT = [
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
    ("stopper", "get", "deployments.apps", OTHER),
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


@pytest.mark.parametrize(("account", "verb", "resource", "namespace"), MAY)
def test_an_account_may_do_what_its_steps_do(installed: Lab, account: str, verb: str, resource: str, namespace: str | None) -> None:
    assert installed.kubectl.may(f"{OWN}:{account}", verb, resource, namespace)


@pytest.mark.parametrize(("account", "verb", "resource", "namespace"), MAY_NOT)
def test_an_account_may_do_nothing_more(installed: Lab, account: str, verb: str, resource: str, namespace: str | None) -> None:
    assert not installed.kubectl.may(f"{OWN}:{account}", verb, resource, namespace)
