"""`depends`, `when`, items and aggregates: the small languages of a manifest, as the controller reads them."""

import json
from typing import Any

import pytest

from steps.contracts.errors import BadInput
from workflows.local.expression import Atom, atoms, holds, parse_depends, when_holds
from workflows.local.fanout import aggregate, child_name, item_values, items_of
from workflows.local.leaf import seconds_of
from workflows.local.outcome import Outcome, group_of
from workflows.local.tags import fill, only_tag


@pytest.mark.parametrize(
    ("text", "true_results", "expected"),
    [
        ("a", {"Succeeded"}, True),
        ("a", {"Skipped"}, True),
        ("a", {"Failed"}, False),
        ("a", {"Omitted"}, False),
        ("a.AnySucceeded || a.Skipped", {"Failed", "AnySucceeded"}, True),
        ("!(a.AnySucceeded || a.Skipped)", {"Failed", "AllFailed"}, True),
        ("!(a.AnySucceeded || a.Skipped)", {"Skipped"}, False),
        ("a.Succeeded && !a.AnySucceeded", {"Succeeded"}, True),
        ("a.Failed && a.AnySucceeded || a.Succeeded", {"Succeeded"}, True),
        ("a.Failed && (a.AnySucceeded || a.Succeeded)", {"Succeeded"}, False),
    ],
)
def test_depends_is_true_of_these_results(text: str, true_results: set[str], expected: bool) -> None:
    assert holds(parse_depends(text), lambda atom: atom.right in true_results) is expected


def test_depends_names_every_task_with_its_dashes() -> None:
    found = atoms(parse_depends("one-node.Succeeded && (b2 || !c.AllFailed)"))
    assert {atom.left for atom in found} == {"one-node", "b2", "c"}
    assert Atom("c", "AllFailed") in found


@pytest.mark.parametrize("text", ["a.Suceeded", "a &&", "a b", "(a", "a == b", "", "a.succeeded"])
def test_a_depends_that_is_not_one_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="not one that the local runner knows"):
        parse_depends(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"yes" == "yes"', True),
        ("yes == 'yes'", True),
        ('"no" == "yes"', False),
        ('"a.b-c d" != "x"', True),
        ('"" == "yes"', False),
        ('!("a" == "b") && "c" == "c"', True),
    ],
)
def test_when_compares_words(text: str, expected: bool) -> None:
    assert when_holds(text) is expected


@pytest.mark.parametrize("text", ["a-b == c", "true == true", "1 == 1", '"a"', '"a" == "b" == "c"', '"it"s" == "x"'])
def test_a_when_that_the_controller_reads_otherwise_or_not_at_all_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        when_holds(text)


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ("node-a", "t(0:node-a)"),
        (3, "t(0:3)"),
        (True, "t(0:true)"),
        ("a (b)", "t(0:a b)"),
        (["a", "b"], "t(0:[a b])"),
        ({"shard": 0, "nodes": ["a", "b"]}, 't(0:nodes:["a","b"],shard:0)'),
    ],
)
def test_a_child_is_named_as_the_controller_names_it(item: Any, name: str) -> None:
    assert child_name("t", 0, item) == name


def test_an_object_gives_a_tag_for_each_field_and_lists_stay_json() -> None:
    values = item_values({"shard": 0, "nodes": ["a", "b"]})
    assert (values["item.shard"], values["item.nodes"], values["item"]) == ("0", '["a","b"]', '{"nodes":["a","b"],"shard":0}')


def test_a_null_item_is_refused() -> None:
    with pytest.raises(BadInput, match="null"):
        item_values(None)


@pytest.mark.parametrize("text", ["", "nothing", '{"a": 1}', "3"])
def test_what_is_no_json_list_has_no_items(text: str) -> None:
    assert items_of(text) is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (['{"b": 1, "a": "x"}', "[2]"], '[{"a":"x","b":1},[2]]'),
        (['{"a": 1}', "2"], '["{\\"a\\": 1}","2"]'),  # one number turns the whole list into strings
        (['{"a": 1}', "{broken"], '["{\\"a\\": 1}","{broken"]'),
        (['{"a": 1.0, "b": 0.5}'], '[{"a":1,"b":0.5}]'),  # Go keeps numbers as float64
        (['{"a": "<&>"}'], '[{"a":"\\u003c\\u0026\\u003e"}]'),
    ],
)
def test_an_aggregate_holds_objects_only_if_every_value_is_one(values: list[str], expected: str) -> None:
    assert aggregate(values) == expected


def test_an_aggregated_number_that_the_controller_would_change_is_refused() -> None:
    with pytest.raises(BadInput, match="exactly"):
        aggregate([json.dumps({"bytes": 2**53 + 1})])


@pytest.mark.parametrize(
    ("phases", "phase", "words"),
    [
        (("Succeeded", "Failed"), "Failed", {"Failed", "AnySucceeded"}),
        (("Failed", "Failed"), "Failed", {"Failed", "AllFailed"}),
        (("Error", "Failed"), "Failed", {"Failed"}),  # AllFailed counts Failed children, not those in Error
        (("Failed", "Error"), "Error", {"Errored"}),
        (("Skipped", "Skipped"), "Succeeded", {"Succeeded"}),
    ],
)
def test_a_fan_out_ends_as_its_children_did(phases: tuple[str, ...], phase: str, words: set[str]) -> None:
    group = group_of(tuple(Outcome(one) for one in phases))
    assert (group.phase, group.results) == (phase, words)


@pytest.mark.parametrize(("text", "seconds"), [("120s", 120), ("1h30m", 5400), ("500ms", 0.5), ("1.5m", 90)])
def test_a_timeout_is_a_go_duration(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["120", "2 minutes", "", "10sx"])
def test_a_timeout_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="no duration"):
        seconds_of(text)


def test_a_tag_without_a_value_is_refused_and_not_left_in() -> None:
    assert fill("a {{ x }} b", {"x": "1"}, "there") == "a 1 b"
    with pytest.raises(BadInput, match=r"there: \{\{y\}\} has no value"):
        fill("{{x}} {{y}}", {"x": "1"}, "there")


def test_a_value_is_never_read_as_a_tag_again() -> None:
    assert fill("{{x}}", {"x": "{{y}}", "y": "no"}, "there") == "{{y}}"


@pytest.mark.parametrize(("text", "tag"), [("{{a.b}}", "a.b"), ("x-{{a.b}}", None), ("{{a}}{{b}}", None), ("plain", None)])
def test_only_a_reference_and_nothing_more_can_fall_back_to_a_default(text: str, tag: str | None) -> None:
    assert only_tag(text) == tag
