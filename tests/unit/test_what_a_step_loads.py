"""A step loads what it needs: the Kubernetes client costs 0.5 s and 40 MiB, in every pod of every sweep."""

import subprocess
import sys
from pathlib import Path

import pytest

from steps.contracts.cluster_facts import ClusterFacts
from steps.contracts.document import Origin, Stamp, encode
from steps.contracts.parcel import pack
from steps.registry import STEPS
from tests.unit.trace_world import NOON, facts, pod

CLIENTS = ("kubernetes", "urllib3", "pynvml")
PEOPLE_ONLY = ("hera", "grpc", "workflows", "sim")
"""rich is not among them: structlog loads it wherever it is installed, which it is not in the image."""
LOADED = """
import sys
{first}
print(*sorted({{name.partition(".")[0] for name in sys.modules}}))
"""


def loaded_after(first: str) -> set[str]:
    """Top modules of a fresh interpreter after these lines, on the real outside and without any kubeconfig."""
    ran = subprocess.run(
        [sys.executable, "-c", LOADED.format(first=first)],
        check=False,
        timeout=60,
        capture_output=True,
        text=True,
        env={"HOME": "/nonexistent", "PATH": "/usr/bin:/bin"},
        cwd=Path(__file__).parents[2],
    )
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.split())


def running(*argv: str) -> str:
    return f"from steps.cli import main\nassert main({list(argv)!r}) == 0"


def test_no_steps_code_loads_a_client_or_what_only_people_need_before_it_runs() -> None:
    functions = "from steps.registry import STEPS, function_of\nfor step in STEPS.values(): function_of(step)"
    assert loaded_after(functions) & {*CLIENTS, *PEOPLE_ONLY} == set()


@pytest.mark.parametrize("name", sorted(STEPS))
def test_the_help_of_a_step_loads_no_client(name: str) -> None:
    ask = f"from steps.cli import main\ntry: main(['step', {name!r}, '--help'])\nexcept SystemExit: pass"
    assert loaded_after(ask) & {*CLIENTS, *PEOPLE_ONLY} == set()


@pytest.mark.parametrize("name", ["collect", "capture"])
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at this machine's /proc")
def test_a_whole_look_at_this_machine_never_loads_the_kubernetes_client(name: str, tmp_path: Path) -> None:
    argv = ("step", name, "--node=here", "--samples=1", "--interval-s=0.1", f"--facts-to={tmp_path / 'facts.json'}")
    assert "kubernetes" not in loaded_after(running(*argv))
    assert (tmp_path / "facts.json").stat().st_size > 0


def test_joining_documents_never_loads_the_kubernetes_client(tmp_path: Path) -> None:
    stamp = Stamp(made_by="survey", made_at=NOON, origin=Origin.SIMULATED)
    cluster = ClusterFacts(stamp=stamp, nodes=("node-a",), pods=(pod(),), sessions=(), waiters=())
    (tmp_path / "cluster.json").write_bytes(encode(cluster))
    (tmp_path / "facts.json").write_bytes(b"[" + pack(facts(())) + b"]")
    argv = (
        "step",
        "trace",
        '--nodes=["node-a"]',
        f"--facts={tmp_path / 'facts.json'}",
        f"--cluster={tmp_path / 'cluster.json'}",
        f"--traced-to={tmp_path / 'traced.json'}",
    )
    assert "kubernetes" not in loaded_after(running(*argv))
    assert (tmp_path / "traced.json").exists()


def test_a_step_that_asks_the_api_does_load_the_client_so_that_the_tests_above_can_fail() -> None:
    api = "from steps.adapters.kubernetes.client import RealApi\nfrom steps.contracts.errors import BadInput\n"
    assert "kubernetes" in loaded_after(f"{api}try: RealApi({{}})\nexcept BadInput: pass")
