"""The real cluster for the tests: built once, started once a session, ended with it. A missing part fails by name."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import scene, tags_scene
from tests.cluster.lab.debian import install_missing, require_root_on_debian
from tests.cluster.lab.gobuild import build
from tests.cluster.lab.images import make_images
from tests.cluster.lab.lab import Lab, choose
from tests.cluster.lab.network import DEFAULT_NAME, NAME_VARIABLE, NetworkNamespace
from tests.cluster.lab.places import places
from tests.cluster.lab.starting import started
from tests.cluster.tags_scene import Story

KUBECONFIG_VARIABLE = "GPU_RECLAIM_TEST_KUBECONFIG"
"""Names the kubeconfig of another cluster to test on, which must bear the mark; the shell's KUBECONFIG is never used."""


TEST_S = 120
"""For a test itself. What its fixtures do (build, start, a whole story) has deadlines of its own."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The time limit of a cluster test is for the test alone: the first one's fixtures may build Kubernetes."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(TEST_S, func_only=True))


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """The cluster: this session's own, or the one that GPU_RECLAIM_TEST_KUBECONFIG names."""
    where, given = places(), os.environ.get(KUBECONFIG_VARIABLE)
    if given:
        yield choose(where, Path(given))
        return
    require_root_on_debian()
    install_missing()
    build(where)
    network = NetworkNamespace(os.environ.get(NAME_VARIABLE, DEFAULT_NAME))
    with started(where, network, make_images(where)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def installed(lab: Lab) -> Lab:
    """The cluster with gpu-reclaim in it, as shipped, and one team's namespace that opted in."""
    scene.install(lab)
    return lab


@pytest.fixture(scope="session")
def started_by_tag(installed: Lab) -> Story:
    """The termination experiment, started by a git tag after everything that must not start it; it goes on running."""
    scene.make_room(installed)
    return tags_scene.tell(installed)
