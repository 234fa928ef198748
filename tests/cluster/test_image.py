"""The steps' image: what is in it, who it runs as, and that it needs to write nothing."""

import pytest

from tests.cluster.lab.lab import Lab
from tests.cluster.scene import STEPS_IMAGE
from tests.cluster.steps_pod import output

pytestmark = pytest.mark.cluster

LARGEST_BYTES = 85_000_000
"""Measured: 66 MB."""
LOOK = """
id -u
for module in hera sim workflows pip pytest grpc; do python3 -c "import $module" 2>/dev/null && echo "has $module"; done
touch /anywhere 2>/dev/null && echo "root is writable"
gpu-reclaim --version
gpu-reclaim step decide --help > /dev/null && echo "steps start"
"""


def test_the_image_holds_the_steps_and_neither_hera_nor_simulator_nor_installer(installed: Lab) -> None:
    said = output(installed, "reader", LOOK).split("\n")
    assert [line for line in said if line.startswith("has ")] == []
    assert "steps start" in said


def test_it_runs_unprivileged_with_a_read_only_root(installed: Lab) -> None:
    said = output(installed, "reader", LOOK).split("\n")
    assert said[0] == "65532"
    assert "root is writable" not in said


def test_it_is_small(lab: Lab) -> None:
    """Compressed, as a registry would store it; the API client is more than half of what lies on top of the base."""
    node = lab.kubectl.get("node", lab.node)
    assert node is not None
    (size_bytes,) = [image["sizeBytes"] for image in node["status"]["images"] if STEPS_IMAGE in (image["names"] or ())]
    print(f"{STEPS_IMAGE}: {size_bytes / 1e6:.0f} MB compressed")
    assert size_bytes < LARGEST_BYTES
