"""Text that somebody may give in the hope that it is more than text, for each parameter of each template, one at a time.

Parameters are read from the rendered templates, so that a new one is tried as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from workflows import MANIFESTS
from workflows.render import TEMPLATES
from workflows.step_docs import containers

EVALUATED: Final[Mapping[str, str]] = {
    "workflow-name": "{{workflow.name}}",
    "expression": "{{=1+41}}",
    "repeated": "v{{=sprig.repeat(3,'ab')}}",
    "open-braces": "{{",
}
"""What Argo would evaluate, or try to, inside its controller: refused before a Workflow exists."""
PLAIN: Final[Mapping[str, str]] = {
    "quotes": "\"'`$(id)`;\\",
    "newlines": "a\nb\n--node=other",
    "ten-kilobytes": "x" * 10_000,
}
"""What must stay the text that it is, on its way and where it arrives."""
VALUES: Final[Mapping[str, str]] = {**EVALUATED, **PLAIN}

UID: Final = "00000000-0000-4000-8000-000000000000"
WRITTEN: Final[Mapping[str, Mapping[str, Any]]] = {
    content["metadata"]["name"]: content
    for content in (yaml.safe_load((MANIFESTS / f"{name}.yaml").read_text(encoding="utf-8")) for name in sorted(TEMPLATES))
}
"""The rendered templates, by the name that a Workflow refers to."""
PARAMETERS: Final = tuple(
    (template, one["name"]) for template, content in WRITTEN.items() for one in content["spec"]["arguments"]["parameters"]
)
"""(template, parameter) of everything that a person, a form or a Sensor may fill in."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of VALUES in one parameter, all else as it should be."""

    template: str
    parameter: str
    kind: str

    @property
    def value(self) -> str:
        return VALUES[self.kind]

    @property
    def place(self) -> str:
        return f"{self.template}-{self.parameter}"

    @property
    def name(self) -> str:
        """Good as the name of an object in the cluster."""
        return f"{self.place}-{self.kind}"

    def arguments(self, node: str) -> dict[str, str]:
        """What the Workflow is given. node: of the cluster."""
        return {**right(self.template, node), self.parameter: self.value}


CELLS: Final = tuple(Cell(template, parameter, kind) for template, parameter in PARAMETERS for kind in VALUES)


def cells_of(template: str, parameter: str) -> tuple[Cell, ...]:
    return tuple(one for one in CELLS if (one.template, one.parameter) == (template, parameter))


def right(template: str, node: str) -> dict[str, str]:
    """Arguments with which a Workflow of this template starts its steps; of the experiment only the scenario that each of its
    parameters has a say in."""
    of_template = {
        "release-check": {"uid": UID, "node": node},
        "sweep": {},
        "zombie-experiment": {"node": node, "scenarios": "s1"},
    }
    return of_template[template]


HANDED_ON: Final = (".args", ".arguments.parameters.value")
"""Fields of a template from which a text goes on, to a step or to another template."""


@dataclass(frozen=True, slots=True)
class Flag:
    """Of a step: where its own check of values takes over."""

    step: str
    name: str


def goes_to(template: str, parameter: str) -> tuple[frozenset[Flag], frozenset[str]]:
    """Where a parameter's text ends up: in these flags of steps, and in these other fields, such as `dag.tasks.when`."""
    spec = WRITTEN[template]["spec"]
    text = f"{{{{workflow.parameters.{parameter}}}}}"
    rest = {key: value for key, value in spec.items() if key not in ("templates", "arguments")}
    around = (field for field, written in _strings(rest) if text in written)
    ends: list[Flag | str] = [*around, *_followed(spec["templates"], spec["templates"], text)]
    return (
        frozenset(one for one in ends if isinstance(one, Flag)),
        frozenset(one for one in ends if isinstance(one, str)),
    )


def _followed(within: Sequence[Any], templates: Sequence[Any], text: str) -> Iterator[Flag | str]:
    """From task to template for as long as it is handed on."""
    for one in within:
        for container in containers(one):
            yield from (Flag(container["args"][1], arg[2:].partition("=")[0]) for arg in container["args"] if text in arg)
        for task in one.get("dag", {}).get("tasks", ()):
            for given in task.get("arguments", {}).get("parameters", ()):
                if text in given["value"]:
                    called = [other for other in templates if other["name"] == task["template"]]
                    yield from _followed(called, templates, f"{{{{inputs.parameters.{given['name']}}}}}")
        yield from (field for field, written in _strings(one) if text in written and not field.endswith(HANDED_ON))


def _strings(node: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """(where it stands, as in `dag.tasks.when`; text) of every text below."""
    if isinstance(node, str):
        yield field, node
    elif isinstance(node, Mapping):
        for key, value in node.items():
            yield from _strings(value, f"{field}.{key}".lstrip("."))
    elif isinstance(node, list):
        for value in node:
            yield from _strings(value, field)
