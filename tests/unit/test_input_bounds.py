"""Counts and seconds have bounds where a value beyond them could only fail later, or never end. One sentence, exit 2."""

from pathlib import Path

import pytest

from steps.capture.declaration import STEP as CAPTURE
from steps.cli import main
from steps.collect.declaration import STEP as COLLECT
from steps.contracts.declaration import Form, In, Inputs, Step
from steps.contracts.errors import BadInput
from steps.release_check.declaration import STEP as RELEASE_CHECK
from steps.verify.declaration import STEP as VERIFY

BOUNDED = Step(
    name="bounded",
    help="a step",
    inputs=(In("looks", "looks to take", Form.COUNT, default="3", least=2, most=5),),
    outputs=(),
)


@pytest.mark.parametrize(
    ("given", "admitted"), [("1", False), ("2", True), ("5", True), ("6", False), ("002", True), ("-3", False)]
)
def test_a_count_is_taken_from_its_least_to_its_most(given: str, admitted: bool) -> None:
    if admitted:
        assert Inputs(BOUNDED, {"looks": given}, {}).count("looks") == int(given)
        return
    with pytest.raises(BadInput) as refused:
        Inputs(BOUNDED, {"looks": given}, {})
    assert str(refused.value) == f"--looks got {given!r}; give a whole number, from 2 to 5: looks to take"


def test_an_input_says_what_it_takes_with_bounds_and_without() -> None:
    assert In("n", "", Form.COUNT).words == "a whole number"
    assert In("n", "", Form.COUNT, least=1).words == "a whole number, 1 or more"
    assert In("n", "", Form.SECONDS, least=0.1, most=60).words == "seconds, for example 10 or 0.5, from 0.1 to 60"


@pytest.mark.parametrize("step", [COLLECT, CAPTURE, VERIFY, RELEASE_CHECK], ids=lambda step: step.name)
@pytest.mark.parametrize(("value", "admitted"), [("0.099", False), ("0.1", True), ("60", True), ("60.001", False)])
def test_looks_are_a_tenth_of_a_second_to_a_minute_apart(step: Step, value: str, admitted: bool) -> None:
    (interval,) = (one for one in step.inputs if one.name == "interval-s")
    assert interval.admits(value) is admitted


@pytest.mark.parametrize(
    ("step", "pace", "words"),
    [
        ("collect", ("0", "10"), "--samples got '0'; give a whole number, from 1 to 12"),
        ("collect", ("13", "1"), "--samples got '13'"),
        ("collect", ("2", "86400"), "--interval-s got '86400'; give seconds"),
        ("collect", ("4", "30.001"), "take 90.003 s, a node's pod has 90 s for them"),
        ("capture", ("4", "41"), "take 123 s, a node's pod has 120 s for them"),
        ("capture", ("13", "1"), "--samples got '13'"),
    ],
)
def test_looks_that_outlast_their_pod_are_refused_before_the_first(
    step: str, pace: tuple[str, str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The pod would be killed at its time limit, and the node read as silent: every session on it unknown."""
    samples, interval_s = pace
    argv = ["step", step, "--node=a", f"--samples={samples}", f"--interval-s={interval_s}", f"--facts-to={tmp_path / 'facts'}"]
    assert main(argv) == 2
    shown = capsys.readouterr().err
    assert words in shown
    assert shown.count("\n") == 1
    assert not (tmp_path / "facts").exists()
