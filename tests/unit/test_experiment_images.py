"""The scenario images: three of them, built by one matrix, and files that say what they do."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from experiments.zombie.observation import Observation
from experiments.zombie.scenarios import SCENARIOS
from sensors.tags import TAG
from steps.contracts.document import decode

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "images" / "scenarios"
DOCKERFILE = (IMAGES / "Dockerfile").read_text(encoding="utf-8")
FORGES = (ROOT / ".github/workflows/images.yaml", ROOT / ".gitea/workflows/images.yaml")


def matrix(path: Path) -> list[str]:
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    variants: list[str] = content["jobs"]["image"]["strategy"]["matrix"]["variant"]
    return variants


def stage(name: str) -> str:
    """What the Dockerfile says in one stage."""
    found = re.search(rf"^FROM \S+ AS {name}\n(.*?)(?=^FROM |\Z)", DOCKERFILE, re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return found[1]


@pytest.mark.parametrize("path", FORGES, ids=lambda path: path.parts[-3])
def test_the_matrix_builds_the_three_images_that_the_scenarios_use(path: Path) -> None:
    assert matrix(path) == ["nofix", "tini", "fullfix"]
    assert {one.image for one in SCENARIOS.values()} == set(matrix(path))


def test_both_forges_build_alike() -> None:
    assert FORGES[0].read_bytes() == FORGES[1].read_bytes()


@pytest.mark.parametrize("path", FORGES, ids=lambda path: path.parts[-3])
def test_no_foreign_text_becomes_part_of_a_script(path: Path) -> None:
    steps = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]["image"]["steps"]
    assert [step["run"] for step in steps if "${{" in step.get("run", "")] == []


@pytest.mark.parametrize("path", FORGES, ids=lambda path: path.parts[-3])
def test_a_tag_builds_images_if_and_only_if_it_starts_the_experiment(path: Path) -> None:
    steps = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]["image"]["steps"]
    checks = [check for step in steps for check in re.findall(r"grep -Eqx '([^']*)'", step.get("run", ""))]
    assert checks == [TAG]


def test_scenario_three_is_the_tini_image_with_the_hook_on() -> None:
    two, three = (next(one for one in SCENARIOS.values() if one.number == number) for number in (2, 3))
    assert (two.image, two.prestop, three.image, three.prestop) == ("tini", False, "tini", True)


def test_the_hook_is_in_the_images_with_tini_and_not_in_the_other() -> None:
    assert "prestop.sh" in stage("with-tini")
    assert "prestop.sh" not in stage("nofix") + stage("common")
    assert "ENTRYPOINT" not in stage("nofix") + stage("common"), "an entrypoint would be PID 1 instead of the pod's command"


@pytest.fixture
def box(tmp_path: Path) -> dict[str, str]:
    """An image's folder, and a simulated driver with one GPU."""
    for name in ("parent.py", "worker.py", "gpu_memory.py", "gpu_worker.py", "gpu_worker_fixed.py", "observe.py"):
        (tmp_path / name).write_bytes((IMAGES / name).read_bytes())
    (tmp_path / "workload.py").write_bytes((ROOT / "sim/node/workload.py").read_bytes())
    (tmp_path / "sim" / "memory" / "GPU-1").mkdir(parents=True)
    return {**os.environ, "GPU_BACKEND": "simulated", "GPU_SIM_DIR": str(tmp_path / "sim"), "NVIDIA_VISIBLE_DEVICES": "GPU-1"}


def worker(box: dict[str, str], name: str, *arguments: str) -> subprocess.Popen[str]:
    folder = Path(box["GPU_SIM_DIR"]).parent
    return subprocess.Popen([sys.executable, folder / name, *arguments], env=box, stdout=subprocess.PIPE, text=True)


def said(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line: dict[str, Any] = json.loads(process.stdout.readline())
    return line


def held(box: dict[str, str]) -> list[str]:
    return [path.name.split(".")[0] for path in Path(box["GPU_SIM_DIR"], "memory/GPU-1").iterdir()]


def test_a_worker_without_a_chosen_backend_refuses_and_says_what_to_set(box: dict[str, str]) -> None:
    with worker({**box, "GPU_BACKEND": ""}, "gpu_worker.py") as process:
        assert "set it to cuda or simulated" in said(process)["problem"]
    assert process.returncode == 2


def test_the_plain_worker_holds_what_it_was_told_to_and_ignores_sigterm(box: dict[str, str]) -> None:
    with worker(box, "gpu_worker.py", "--mib=64") as process:
        try:
            assert said(process)["event"] == "gpu_worker.holding"
            assert held(box) == [str(64 << 20)]
            process.send_signal(signal.SIGTERM)
            assert said(process)["event"] == "gpu_worker.sigterm_ignored"
            time.sleep(0.05)
            assert process.poll() is None
        finally:
            process.kill()


def test_the_fixed_worker_gives_its_memory_back_before_it_leaves(box: dict[str, str]) -> None:
    with worker(box, "gpu_worker_fixed.py", "--mib=64") as process:
        said(process)
        process.send_signal(signal.SIGTERM)
        assert [said(process)["event"] for _ in range(2)] == ["gpu_worker_fixed.cleanup_began", "gpu_worker_fixed.cleanup_done"]
    assert process.returncode == 0
    assert held(box) == []


def test_the_eight_checks_are_one_document(box: dict[str, str]) -> None:
    folder = Path(box["GPU_SIM_DIR"]).parent
    printed = subprocess.run([sys.executable, folder / "observe.py"], env=box, capture_output=True, check=True).stdout
    seen = decode(printed, Observation, "observe.py")
    assert seen.pid1 is not None
    assert {one.pid for one in seen.tree} >= {1}
