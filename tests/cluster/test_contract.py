"""The contract suite once more, over the real API server: what the simulated API promises is what the real one does."""

import os
import sys

import pytest

from tests.cluster.lab.commands import ran
from tests.cluster.lab.lab import Lab
from tests.cluster.lab.places import CHECKOUT

pytestmark = pytest.mark.cluster


def test_the_real_api_passes_the_suite_that_the_simulated_one_passes(installed: Lab) -> None:
    """In a process of its own inside the cluster's network, because this one stands outside of it. Only the real half: if none of
    it were selected, pytest would end with 5, and this test with it."""
    suite = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--no-header",
        "-k",
        "real and not simulated",
        str(CHECKOUT / "tests" / "contract"),
    ]
    environment = ["env", f"GPU_RECLAIM_TEST_API={installed.kubeconfig}", f"PATH={os.environ['PATH']}"]
    told = ran(installed.inside(*environment, *suite), timeout_s=110)
    assert told.returncode == 0, told.stdout[-6000:]
