"""What a run came to, in a form that is the same for the local runner and the real controller.

`{node path: {"phase": ..., "outputs": {...}}}`; the path is the node's name with the run's own name left out. Kinds of node,
messages, times and pod names are not compared.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from steps.contracts.run_record import RunRecord

FOLDER: Final = Path(__file__).parent
Shape = dict[str, dict[str, Any]]


def names() -> list[str]:
    """All conformance templates, by name."""
    return sorted(path.stem for path in (FOLDER / "templates").glob("*.yaml"))


def template_path(name: str) -> Path:
    return FOLDER / "templates" / f"{name}.yaml"


def expected(name: str) -> Shape:
    """The committed expectation of one template, workflow phase under the key `workflow`."""
    content: Shape = yaml.safe_load((FOLDER / "expected" / f"{name}.yaml").read_text(encoding="utf-8"))
    return content


def shape_of_record(record: RunRecord) -> Shape:
    """The shape of a local run."""
    nodes = ((node.name, node.phase, node.outputs) for node in record.nodes)
    return _shape(record.run, record.phase, nodes)


def shape_of_workflow(workflow: Mapping[str, Any]) -> Shape:
    """The shape of a Workflow object as the API gives it, nodes uncompressed."""
    nodes = ((node["name"], _phase(node), _outputs(node)) for node in workflow["status"].get("nodes", {}).values())
    return _shape(workflow["metadata"]["name"], workflow["status"]["phase"], nodes)


def _phase(node: Mapping[str, Any]) -> str:
    """The node's phase. A container of a set that waits for one that failed ends itself (exit code 64, Error), unless a
    SIGTERM to the rest of the failed pod comes first (143, Failed): both were seen on Argo Workflows 4.0.5."""
    ended = node.get("type") == "Container" and node["phase"] == "Failed" and "(exit code 143)" in node.get("message", "")
    return "Error" if ended else str(node["phase"])


def _outputs(node: Mapping[str, Any]) -> dict[str, str]:
    """The output parameters that have a value; exit codes and logs are left out."""
    parameters = node.get("outputs", {}).get("parameters", [])
    return {one["name"]: str(one["value"]) for one in parameters if "value" in one}


def _shape(run: str, phase: str, nodes: "Iterator[tuple[str, str, Mapping[str, str]]]") -> Shape:
    shape: Shape = {"workflow": {"phase": phase, "outputs": {}}}
    for name, node_phase, outputs in nodes:
        shape[name.removeprefix(run).removeprefix(".") or "."] = {"phase": node_phase, "outputs": dict(outputs)}
    return shape
