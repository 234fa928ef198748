"""The local runner against the real controller: the same templates, equal phases and outputs."""

import pytest

from tests.cluster import scene
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab
from tests.conformance.compare import expected, names, shape_of_workflow, template_path

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def workflows(installed: Lab) -> dict[str, Json]:
    """Every conformance template, submitted at once and finished."""
    installed.kubectl.apply(*(template_path(name) for name in names()), namespace=installed.namespace)
    submitted = {name: scene.submit(installed, name, {}) for name in names()}
    return {name: scene.finish(installed, run, within_s=150) for name, run in submitted.items()}


@pytest.mark.parametrize("name", names())
def test_the_controller_comes_to_what_the_local_runner_comes_to(workflows: dict[str, Json], name: str) -> None:
    assert shape_of_workflow(workflows[name]) == expected(name), scene.phases(workflows[name])
