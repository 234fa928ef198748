"""What a person sees in the Argo UI's form: a title, what the whole and every field means, and a choice where there is one."""

from enum import Enum
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from experiments.registry import STEPS as EXPERIMENTS
from experiments.zombie.drive.declaration import STEP as DRIVE
from experiments.zombie.recording import Ending, Kind, Shape
from experiments.zombie.scenarios import SCENARIOS
from steps.cli import main
from steps.contracts.declaration import Form
from steps.contracts.errors import Exit
from steps.contracts.node_facts import Scan
from steps.registry import STEPS
from workflows import MANIFESTS
from workflows.render import TEMPLATES

Object = dict[str, Any]
WRITTEN: Final = {name: yaml.safe_load((MANIFESTS / f"{name}.yaml").read_text(encoding="utf-8")) for name in sorted(TEMPLATES)}
PARAMETERS: Final = {
    (name, one["name"]): one for name, content in WRITTEN.items() for one in content["spec"]["arguments"]["parameters"]
}
SWITCHES: Final = {one.name for step in (*STEPS.values(), *EXPERIMENTS.values()) for one in step.inputs if one.form is Form.SWITCH}


def words(kind: type[Enum]) -> set[str]:
    return {str(one.value) for one in kind}


CLOSED: Final = {
    ("zombie", "scenarios"): {"all", *(f"s{one.number}" for one in SCENARIOS.values())},
    ("zombie", "shell-start"): {"both", "stays", "execs"},
    ("zombie", "repetitions"): {"1", "2", "3", "4", "5"},
    ("zombie", "ending"): words(Ending),
    ("zombie", "worker"): words(Shape),
    ("zombie", "session"): words(Kind),
    ("zombie", "backend"): {"cuda", "simulated"},
    ("zombie", "pull"): {"Always", "IfNotPresent"},
    ("sweep", "dry-run"): {"true", "false"},
    ("sweep", "scan"): words(Scan),
}
"""What may be chosen where nothing else is understood."""


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_a_template_has_a_title_and_says_what_it_does(name: str) -> None:
    notes = WRITTEN[name]["metadata"]["annotations"]
    title, text = notes["workflows.argoproj.io/title"], notes["workflows.argoproj.io/description"]
    assert 0 < len(title) <= 60
    assert len(text) > len(title)


@pytest.mark.parametrize(("template", "name"), sorted(PARAMETERS))
def test_every_field_says_what_it_means(template: str, name: str) -> None:
    assert len(PARAMETERS[template, name].get("description", "")) >= 15


@pytest.mark.parametrize(("template", "name"), sorted(CLOSED))
def test_a_field_with_few_answers_offers_exactly_these(template: str, name: str) -> None:
    offered = PARAMETERS[template, name]["enum"]
    assert (set(offered), len(offered)) == (CLOSED[template, name], len(CLOSED[template, name]))


def test_every_choice_is_listed_above_and_every_switch_is_one() -> None:
    chosen = {place for place, one in PARAMETERS.items() if "enum" in one}
    switches = {place for place, one in PARAMETERS.items() if place[1] in SWITCHES}
    assert (chosen, switches - chosen) == (set(CLOSED), set())


@pytest.mark.parametrize(("template", "name"), sorted(PARAMETERS))
def test_a_default_is_one_of_the_choices(template: str, name: str) -> None:
    one = PARAMETERS[template, name]
    assert "enum" not in one or one["value"] in one["enum"]


def test_only_what_nobody_can_guess_has_no_default() -> None:
    assert {place for place, one in PARAMETERS.items() if "value" not in one} == {("zombie", "node"), ("release-check", "uid")}


@pytest.mark.parametrize("name", ["ending", "worker", "session", "backend", "pull"])
def test_what_the_form_does_not_offer_the_step_refuses_with_a_sentence(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Argo compares a submitted value with no choice of the template's (seen on 4.0.5: tests/cluster/test_form.py)."""
    given = {"run": "r", "node": "node-a", "scenario": "s2", name: "reboot"}
    assert main(DRIVE.argv(given, {"record": str(tmp_path / "record")})) == Exit.BAD_INPUT
    told = capsys.readouterr().err
    assert f"--{name}" in told
    assert all(word in told for word in CLOSED["zombie", name])
