"""Argo's JSON schema, closed: wherever it names properties and says nothing of others, others are refused."""

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft7Validator

_SCHEMA: Final = Path(__file__).parents[1] / "schemas/argo-workflows-v4.1.2/jsonschema.json"
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"


@cache
def validator(kind: str = "WorkflowTemplate") -> Draft7Validator:
    """A validator for one kind of Argo Workflows object. The API takes integers where the schema says IntOrString."""
    schema = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    _close(schema)
    schema["definitions"][_INT_OR_STRING] = {"type": ["string", "integer"]}
    return Draft7Validator({"$ref": f"#/definitions/io.argoproj.workflow.v1alpha1.{kind}", "definitions": schema["definitions"]})


def problems(content: Any) -> list[str]:
    """What the closed schema says against a WorkflowTemplate, each with its path."""
    return [f"{error.json_path}: {error.message}" for error in validator().iter_errors(content)]


def _close(node: Any) -> None:
    if isinstance(node, dict):
        if isinstance(node.get("properties"), dict):
            node.setdefault("additionalProperties", False)
        for inner in node.values():
            _close(inner)
    elif isinstance(node, list):
        for inner in node:
            _close(inner)
