"""Argo's JSON schemas, closed: wherever they name properties and say nothing of others, others are refused."""

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft7Validator

_SCHEMAS: Final = Path(__file__).parents[1] / "schemas"
_WORKFLOWS: Final = _SCHEMAS / "argo-workflows-v4.1.2" / "jsonschema.json"
_EVENTS: Final = _SCHEMAS / "argo-events-v1.9.11" / "jsonschema.json"
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_ANY_OBJECT: Final = "io.argoproj.events.v1alpha1.K8SResource"
EVENT_KINDS: Final = ("EventBus", "EventSource", "Sensor")


@cache
def validator(kind: str = "WorkflowTemplate") -> Draft7Validator:
    """A validator for one kind of Argo Workflows object. The API takes integers where the schema says IntOrString."""
    schema = json.loads(_WORKFLOWS.read_text(encoding="utf-8"))
    _close(schema)
    schema["definitions"][_INT_OR_STRING] = {"type": ["string", "integer"]}
    return _of(schema, f"io.argoproj.workflow.v1alpha1.{kind}")


@cache
def event_validator(kind: str) -> Draft7Validator:
    """A validator for one kind of Argo Events object. The schema lists as required every field that Go always writes, so those are
    left out below spec; the object that a trigger creates stays open, to be checked by its own schema."""
    schema = json.loads(_EVENTS.read_text(encoding="utf-8"))
    _close(schema)
    for name, definition in schema["definitions"].items():
        if name.removeprefix("io.argoproj.events.v1alpha1.") not in EVENT_KINDS:
            definition.pop("required", None)
    schema["definitions"][_ANY_OBJECT] = {"type": "object"}
    return _of(schema, f"io.argoproj.events.v1alpha1.{kind}")


def problems(content: Any) -> list[str]:
    """What the closed schema of its kind says against an object, each with its path."""
    kind = content["kind"]
    chosen = event_validator(kind) if kind in EVENT_KINDS else validator(kind)
    return [f"{error.json_path}: {error.message}" for error in chosen.iter_errors(content)]


def _of(schema: dict[str, Any], definition: str) -> Draft7Validator:
    return Draft7Validator({"$ref": f"#/definitions/{definition}", "definitions": schema["definitions"]})


def _close(node: Any) -> None:
    if isinstance(node, dict):
        if isinstance(node.get("properties"), dict):
            node.setdefault("additionalProperties", False)
        for inner in node.values():
            _close(inner)
    elif isinstance(node, list):
        for inner in node:
            _close(inner)
