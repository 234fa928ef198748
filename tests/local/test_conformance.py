"""The local runner gives the committed expectations, which the cluster tests hold the real controller to as well."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from steps.contracts.run_record import RunRecord
from tests.conformance import compare
from workflows.local import Setting, run_locally
from workflows.local.manifest import Manifest, checked

QUICK = {"timeout: 60s": "timeout: 1s"}
"""On a cluster the image must start within the timeout; here a process does."""


def conformance(name: str) -> Manifest:
    text = compare.template_path(name).read_text(encoding="utf-8")
    for slow, quick in QUICK.items():
        text = text.replace(slow, quick)
    return checked(yaml.safe_load(text), name)


def run(manifest: Manifest, folder: Path, **parameters: str) -> RunRecord:
    setting = Setting(
        runs_folder=folder, claims={}, config_maps={}, environment=dict(os.environ), now=lambda: datetime.now(UTC), processes=2
    )
    return run_locally(manifest, parameters, setting, run=f"{manifest.name}-x1", uid="u1")


@pytest.mark.parametrize("name", compare.names())
def test_a_conformance_template_comes_to_its_committed_phases_and_outputs(name: str, tmp_path: Path) -> None:
    assert compare.shape_of_record(run(conformance(name), tmp_path)) == compare.expected(name)


def test_every_expectation_has_a_template() -> None:
    assert {path.stem for path in (compare.FOLDER / "expected").glob("*.yaml")} == set(compare.names())


def test_a_workflow_of_the_real_controller_is_compared_by_paths_phases_and_outputs_alone() -> None:
    pod = {
        "name": "on-exit-7h2k.onExit",
        "phase": "Succeeded",
        "outputs": {"exitCode": "0", "parameters": [{"name": "summary", "value": "Failed true"}, {"name": "unset"}]},
    }
    root = {"name": "on-exit-7h2k", "phase": "Failed", "message": "main: Error (exit code 1)", "outputs": {"exitCode": "1"}}
    workflow = {"metadata": {"name": "on-exit-7h2k"}, "status": {"phase": "Failed", "nodes": {"a": pod, "b": root}}}
    assert compare.shape_of_workflow(workflow) == compare.expected("on-exit")


def test_the_record_is_on_disk_with_a_log_for_each_container_and_no_pod_folder_is_left(tmp_path: Path) -> None:
    record = run(conformance("container-set"), tmp_path)
    pod = next(node.pod for node in record.nodes if node.kind == "Pod")
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"container-set-x1.json", *(f"container-set-x1/{pod}.{one}.log" for one in ("survey", "trace", "main"))}


def test_the_record_says_running_while_the_exit_handler_runs(tmp_path: Path) -> None:
    seen: list[str] = []
    manifest = conformance("on-exit")
    setting = Setting(tmp_path, {}, {}, dict(os.environ), lambda: datetime.now(UTC))

    def look(node: object) -> None:
        seen.append((tmp_path / "r1.json").read_text(encoding="utf-8"))

    run_locally(manifest, {}, setting, run="r1", uid="u1", on_node=look)
    assert all('"phase":"Running"' in text for text in seen)


@pytest.mark.parametrize(
    ("node", "phase"),
    [
        ({"type": "Container", "phase": "Error", "message": "Error (exit code 64)"}, "Error"),
        ({"type": "Container", "phase": "Failed", "message": "Error (exit code 143): "}, "Error"),
        ({"type": "Container", "phase": "Failed", "message": "Error (exit code 3): "}, "Failed"),
        ({"type": "Pod", "phase": "Failed", "message": "Error (exit code 143)"}, "Failed"),
    ],
)
def test_a_container_that_never_began_is_told_alike_however_its_wait_ended(node: dict[str, str], phase: str) -> None:
    workflow = {"metadata": {"name": "a"}, "status": {"phase": "Failed", "nodes": {"n": {"name": "a.main", **node}}}}
    assert compare.shape_of_workflow(workflow)["main"]["phase"] == phase
