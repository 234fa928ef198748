"""Each hostile value in each parameter, one at a time, where it arrives: in a step's flag, or in another field of the template.

What holds `{{` is refused before, by the admission policy (tests/cluster/test_admission.py); here the step must stand alone.
"""

from pathlib import Path
from typing import Final

import pytest

from experiments.registry import STEPS as EXPERIMENTS
from steps.cli import main
from steps.contracts.declaration import Form, In, Inputs, Step
from steps.contracts.errors import Exit
from steps.registry import STEPS
from tests import hostile
from tests.hostile import Cell, Flag

ALL: Final[dict[str, Step]] = {**STEPS, **EXPERIMENTS}
ORDINARY: Final = {
    Form.NAME: "a",
    Form.ID: "a",
    Form.PATH: "/nowhere",
    Form.NAMES: "[]",
    Form.SWITCH: "true",
    Form.COUNT: "1",
    Form.SECONDS: "1",
}
NODE: Final = "nodeSelector.kubernetes.io/hostname"
CONDITION: Final = "dag.tasks.when"
BESIDE_A_STEP: Final = {
    ("release-check", "node"): {CONDITION, NODE},
    ("zombie-experiment", "node"): {"synchronization.mutexes.name", NODE},
    ("zombie-experiment", "scenarios"): {CONDITION},
    ("zombie-experiment", "shell-start"): {CONDITION},
}
"""What Argo makes of hostile text in these fields of a template is tried on the cluster."""
FREE_TEXT: Final = {Flag("drive", "image"), Flag("zombie-report", "tag"), Flag("zombie-report", "commit")}
"""Any text of up to 4096 characters on one line."""
ARRIVALS: Final = [
    pytest.param(cell, flag, id=f"{cell.name}-{flag.step}-{flag.name}")
    for cell in hostile.CELLS
    for flag in sorted(hostile.goes_to(cell.template, cell.parameter)[0], key=str)
]


@pytest.mark.parametrize(("template", "parameter"), hostile.PARAMETERS)
def test_every_parameter_is_known_to_arrive_somewhere(template: str, parameter: str) -> None:
    flags, fields = hostile.goes_to(template, parameter)
    assert fields == BESIDE_A_STEP.get((template, parameter), set())
    assert flags or fields == {CONDITION}


def test_arguments_that_are_right_are_all_that_a_template_asks_for() -> None:
    for template, content in hostile.WRITTEN.items():
        asked = {one["name"] for one in content["spec"]["arguments"]["parameters"] if "value" not in one}
        assert asked <= set(hostile.right(template, "node-a"))


@pytest.mark.parametrize(("cell", "flag"), ARRIVALS)
def test_a_step_refuses_it_with_one_sentence_or_takes_it_as_the_text_that_it_is(
    cell: Cell, flag: Flag, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step = ALL[flag.step]
    given = {one.name: ORDINARY[one.form] for one in step.inputs if one.default is None} | {flag.name: cell.value}
    targets = {one.name: str(tmp_path / one.name) for one in step.outputs}
    taken = flag in FREE_TEXT and cell.kind in {"quotes", *hostile.EVALUATED}
    assert _declared(step, flag).admits(cell.value) is taken
    if taken:
        assert Inputs(step, given, targets).text(flag.name) == cell.value
        return
    assert main(step.argv(given, targets)) == Exit.BAD_INPUT
    told = capsys.readouterr()
    assert told.err.startswith(f"gpu-reclaim: --{flag.name} got ")
    assert "; give " in told.err
    assert (told.err.count("\n"), len(told.err) < 600, told.out, list(tmp_path.iterdir())) == (1, True, "", [])


def _declared(step: Step, flag: Flag) -> In:
    return next(one for one in step.inputs if one.name == flag.name)
