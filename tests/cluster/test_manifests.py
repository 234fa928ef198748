"""The rendered manifests before the tools and the server that will read them."""

import pytest

from tests.cluster.lab.lab import Lab, lint
from tests.cluster.lab.places import CHECKOUT

pytestmark = pytest.mark.cluster

WORKFLOWS = CHECKOUT / "workflows" / "manifests"


def test_argo_lint_finds_no_fault(lab: Lab) -> None:
    assert "no linting errors found" in lint(
        lab, [path for path in sorted(WORKFLOWS.glob("*.yaml")) if path.stem != "kustomization"]
    )


def test_the_api_server_admits_everything_that_is_shipped(installed: Lab) -> None:
    """With the full CRDs, whose rules only the server runs."""
    installed.kubectl(
        "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--kustomize", str(CHECKOUT / "deploy" / "base")
    )
