"""Flags, Argo templates and declarations say the same: asked of the committed manifests, with the command's own parser."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from experiments import registry as experiments
from steps.capture.declaration import LONGEST_S as CAPTURE_S
from steps.cli import main
from steps.collect.declaration import LONGEST_S as COLLECT_S
from steps.contracts.declaration import Step, flags_of
from steps.registry import STEPS, function_of
from workflows import MANIFESTS
from workflows.render import DOCUMENTED, TEMPLATES
from workflows.step_docs import EXIT_WORDS, containers

ALL = {**STEPS, **experiments.STEPS}
PARAMETER = re.compile(r"\{\{inputs\.parameters\.([a-z0-9-]+)\}\}")


@dataclass(frozen=True)
class Place:
    """One container that runs a step, and the template it stands in."""

    template: Mapping[str, Any]
    container: Mapping[str, Any]

    @property
    def step(self) -> Step:
        return ALL[self.container["args"][1]]

    @property
    def flags(self) -> dict[str, str]:
        return dict(arg.removeprefix("--").split("=", 1) for arg in self.container["args"][2:])

    def named(self, side: str, kind: str) -> set[str]:
        return {one["name"] for one in self.template.get(side, {}).get(kind, [])}


def _places() -> Iterator[Any]:
    for name in sorted(TEMPLATES):
        manifest = yaml.safe_load((MANIFESTS / f"{name}.yaml").read_text(encoding="utf-8"))
        for template in manifest["spec"]["templates"]:
            for container in containers(template):
                yield pytest.param(Place(template, container), id=f"{name}/{template['name']}/{container['args'][1]}")


PARAMS = list(_places())
PLACES: list[Place] = [one.values[0] for one in PARAMS]
SAVED = [one for one in PARAMS if one.values[0].container.get("name", "main") == "main"]
"""Of several containers in one pod only `main` saves outputs."""


@pytest.mark.parametrize("place", PARAMS)
def test_a_container_gives_its_step_every_required_input_and_every_output_and_nothing_else(place: Place) -> None:
    required = {i.name for i in place.step.inputs if i.default is None}
    outputs = {f"{o.name}-to" for o in place.step.outputs}
    assert required | outputs <= set(place.flags)
    assert set(place.flags) <= {flag.removeprefix("--") for flag, _ in flags_of(place.step)}


@pytest.mark.parametrize("place", PARAMS)
def test_each_flag_and_its_value_are_one_element_so_that_no_value_becomes_a_flag(place: Place) -> None:
    assert all(re.match(r"--[a-z0-9-]+=", arg) for arg in place.container["args"][2:])


@pytest.mark.parametrize("place", PARAMS)
def test_a_parameter_in_the_arguments_is_an_input_of_the_template_under_the_flags_own_name(place: Place) -> None:
    passed = {flag: PARAMETER.findall(value) for flag, value in place.flags.items()}
    assert all(names in ([], [flag]) for flag, names in passed.items()), passed
    assert {flag for flag, names in passed.items() if names} <= place.named("inputs", "parameters")


@pytest.mark.parametrize("place", PARAMS)
def test_a_declared_artifact_is_one_of_the_template_at_the_path_the_step_reads(place: Place) -> None:
    laid = {one["name"]: one["path"] for one in place.template.get("inputs", {}).get("artifacts", [])}
    assert {i.name: laid.get(i.name) for i in place.step.inputs if i.artifact} == {
        i.name: place.flags[i.name] for i in place.step.inputs if i.artifact
    }


@pytest.mark.parametrize("place", SAVED)
def test_the_outputs_of_the_template_are_those_declared_read_where_the_step_writes(place: Place) -> None:
    saved = {one["name"]: one["valueFrom"]["path"] for one in place.template.get("outputs", {}).get("parameters", [])}
    assert saved == {o.name: place.flags[f"{o.name}-to"] for o in place.step.outputs}


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_step_is_run_by_a_workflow_and_stands_in_the_docs(name: str) -> None:
    assert any(place.step.name == name for place in PLACES)
    assert ALL[name] in DOCUMENTED


@pytest.mark.parametrize("name", sorted(ALL))
def test_the_help_of_a_step_names_every_declared_flag(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["step", name, "--help"])
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert [flag for flag, _ in flags_of(ALL[name]) if flag not in shown] == []


@pytest.mark.parametrize("name", sorted(STEPS))
def test_every_declaration_has_its_function(name: str) -> None:
    assert callable(function_of(STEPS[name]))


def test_every_exit_code_that_a_step_declares_has_its_words() -> None:
    assert {code for step in ALL.values() for code in step.exits} <= set(EXIT_WORDS)


@pytest.mark.parametrize(("step", "longest_s"), [("collect", COLLECT_S), ("capture", CAPTURE_S)])
def test_a_node_pod_lives_longer_than_the_looks_it_may_be_asked_for(step: str, longest_s: float) -> None:
    """Half a minute is for the pod to be scheduled and started, and for what a look itself takes."""
    limits = [float(place.template["timeout"].removesuffix("s")) for place in PLACES if place.step.name == step]
    assert limits
    assert all(limit >= longest_s + 30 for limit in limits)
