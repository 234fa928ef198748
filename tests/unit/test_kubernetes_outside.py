"""The real outside is made piece by piece: the API client is loaded only by who asks for an API adapter."""

import subprocess
import sys
from pathlib import Path

import pytest

from steps.adapters.outside import RealOutside
from steps.contracts.errors import BadInput

PROBE = """
import sys
from steps.adapters.outside import RealOutside
outside = RealOutside({})
outside.clock.now()
outside.processes()
outside.allocations()
sys.exit("kubernetes" in sys.modules)
"""


def test_a_step_without_api_calls_never_loads_the_api_client() -> None:
    assert subprocess.run([sys.executable, "-c", PROBE], check=False, timeout=60).returncode == 0


def test_each_api_adapter_needs_a_configuration_and_says_so(tmp_path: Path) -> None:
    outside = RealOutside({"HOME": str(tmp_path)})
    for ask in (outside.cluster, outside.owners, outside.decisions, outside.memory, outside.intents, outside.events, outside.runs):
        with pytest.raises(BadInput, match="kubeconfig"):
            ask()
