"""What the local runner does not honour it refuses, by name and before anything runs."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from steps.contracts.errors import BadInput
from tests.conformance import compare
from workflows import MANIFESTS
from workflows.local.manifest import checked

Content = dict[str, Any]
SWEEP: Content = yaml.safe_load((MANIFESTS / "sweep.yaml").read_text(encoding="utf-8"))
FANOUT: Content = yaml.safe_load(compare.template_path("fanout-with-failure").read_text(encoding="utf-8"))


def template(content: Content, name: str) -> Content:
    return next(one for one in content["spec"]["templates"] if one["name"] == name)


def task(content: Content, name: str) -> Content:
    return next(one for one in template(content, "main")["dag"]["tasks"] if one["name"] == name)


UNKNOWN_FIELDS: dict[str, Callable[[Content], Any]] = {
    "spec.hooks": lambda c: c["spec"].update(hooks={}),
    "spec.workflowMetadata": lambda c: c["spec"].update(workflowMetadata={}),
    "spec.templates[0].memoize": lambda c: c["spec"]["templates"][0].update(memoize={}),
    "spec.templates[0].dag.target": lambda c: c["spec"]["templates"][0]["dag"].update(target="join"),
    "spec.templates[0].dag.tasks[1].withSequence": lambda c: task(c, "work").update(withSequence={"count": 2}),
    "spec.templates[0].dag.tasks[1].templateRef": lambda c: task(c, "work").update(templateRef={}),
    "spec.templates[1].container.workingDir": lambda c: template(c, "list")["container"].update(workingDir="/"),
    "spec.templates[1].outputs.artifacts": lambda c: template(c, "list")["outputs"].update(artifacts=[]),
    "spec.templates[1].outputs.parameters[0].valueFrom.expression": lambda c: template(c, "list")["outputs"]["parameters"][0][
        "valueFrom"
    ].update(expression="1"),
    "spec.templates[2].retryStrategy.backoff": lambda c: template(c, "work").update(retryStrategy={"limit": 1, "backoff": {}}),
    "spec.templates[2].script": lambda c: template(c, "work").update(script={}),
    "spec.templates[2].suspend": lambda c: template(c, "work").update(suspend={}),
}


@pytest.mark.parametrize("path", UNKNOWN_FIELDS)
def test_a_field_that_is_not_known_is_refused_by_its_path(path: str) -> None:
    content = copy.deepcopy(FANOUT)
    UNKNOWN_FIELDS[path](content)
    with pytest.raises(BadInput, match=path.replace("[", r"\[").replace("]", r"\]")):
        checked(content, "m")


DIFFERENT: dict[str, tuple[str, Callable[[Content], Any]]] = {
    "a DAG that stops at its first failure": ("failFast", lambda c: template(c, "main")["dag"].pop("failFast")),
    "a timeout that a retry node hides": (
        "timeout",
        lambda c: template(c, "work").update(timeout="1m", retryStrategy={"limit": 1}),
    ),
    "a retry policy about cluster errors": (
        "policy",
        lambda c: template(c, "work").update(retryStrategy={"limit": 1, "retryPolicy": "OnTransientError"}),
    ),
    "a retry without end": ("limit", lambda c: template(c, "work").update(retryStrategy={"retryPolicy": "Always"})),
    "an exit handler that is a DAG": ("onExit", lambda c: c["spec"].update(onExit="main")),
    "an output outside an emptyDir": ("emptyDir", lambda c: template(c, "work")["container"].pop("volumeMounts")),
    "two types in one template": ("exactly one", lambda c: template(c, "work").update(dag={"failFast": False, "tasks": []})),
    "two tasks that depends cannot tell apart": (
        "share a name",
        lambda c: template(c, "main")["dag"]["tasks"].extend({"name": name, "template": "list"} for name in ("a-b", "a_b")),
    ),
    "a condition on an item": ("before there are items", lambda c: task(c, "work").update(when='"{{item}}" == "a"')),
    "an expression tag": ("expression", lambda c: task(c, "join")["arguments"]["parameters"][0].update(value="{{=1+41}}")),
    "no entrypoint": ("entrypoint", lambda c: c["spec"].update(entrypoint="mian")),
    "an entrypoint without its input": (
        "needs the input",
        lambda c: c["spec"].update(entrypoint="work"),
    ),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_a_construct_that_has_no_one_meaning_is_refused(what: str) -> None:
    words, change = DIFFERENT[what]
    content = copy.deepcopy(FANOUT)
    change(content)
    with pytest.raises(BadInput, match=words):
        checked(content, "m")


def test_the_sweep_itself_is_not_refused() -> None:
    assert checked(SWEEP, "sweep").name == "sweep"


WRONG_REFERENCES: dict[str, tuple[str, Callable[[Content], Any]]] = {
    "of an argument": (
        "does not resolve",
        lambda c: task(c, "join")["arguments"]["parameters"][0].update(value="{{tasks.wrok.outputs.parameters.found}}"),
    ),
    "of an undeclared output": (
        "does not resolve",
        lambda c: task(c, "join")["arguments"]["parameters"][0].update(value="{{tasks.work.outputs.parameters.fuond}}"),
    ),
    "of a task that is not before": (
        "does not resolve",
        lambda c: task(c, "list").update(when='"{{tasks.work.outputs.parameters.found}}" == "a"'),
    ),
    "of an item without a fan-out": (
        "does not resolve",
        lambda c: task(c, "join")["arguments"]["parameters"][0].update(value="{{item}}"),
    ),
    "of a container": ("does not resolve", lambda c: template(c, "list")["container"].update(args=["{{inputs.parameters.word}}"])),
    "to a template": ("no template", lambda c: task(c, "join").update(template="jion")),
    "to an input": ("does not take", lambda c: task(c, "join")["arguments"]["parameters"][0].update(name="al")),
    "to a missing input": ("does not give", lambda c: task(c, "work").pop("arguments")),
    "in depends": ("no task", lambda c: task(c, "join").update(depends="wrok.AnySucceeded")),
    "in a circle": ("depends on itself", lambda c: task(c, "list").update(depends="join.Succeeded")),
}


@pytest.mark.parametrize("where", WRONG_REFERENCES)
def test_a_reference_that_does_not_resolve_is_refused(where: str) -> None:
    words, change = WRONG_REFERENCES[where]
    content = copy.deepcopy(FANOUT)
    change(content)
    with pytest.raises(BadInput, match=words):
        checked(content, "m")


@pytest.mark.parametrize(
    ("depends", "has_default", "allowed"),
    [
        ("work.AnySucceeded", False, True),
        ("work.Succeeded", False, True),
        ("work.AnySucceeded || work.Skipped", True, True),
        ("work.AnySucceeded || work.Skipped", False, False),  # 4.0.5: empty text; 4.1.2: an error
        ("work", False, False),  # a bare name admits Skipped
        ("work", True, True),
        ("work.AnySucceeded || work.AllFailed", True, False),  # 4.0.5 waits for ever
        ("work.Succeeded || work.Errored", True, False),
        ("!work.Failed", True, False),
        ("work.Failed", True, False),  # some may have failed, or all
        ("work.AnySucceeded && list.Succeeded", False, True),
        ("work.Omitted || work.AnySucceeded", True, False),
    ],
)
def test_an_output_may_be_named_only_where_it_is_surely_there_or_has_a_default(
    depends: str, has_default: bool, allowed: bool
) -> None:
    content = copy.deepcopy(FANOUT)
    task(content, "join")["depends"] = depends
    if not has_default:
        del template(content, "join")["inputs"]["parameters"][0]["default"]
    if allowed:
        checked(content, "m")
    else:
        with pytest.raises(BadInput, match="is not there when work is"):
            checked(content, "m")


@pytest.mark.parametrize(
    ("depends", "allowed"),
    [
        ("work.Succeeded || work.Failed || work.Errored", True),
        ("work.AllFailed", True),  # every child failed: the list is there, and empty
        ("work", False),
        ("!work.Succeeded", False),
    ],
)
def test_the_list_of_all_outputs_is_there_whenever_the_fan_out_had_children(depends: str, allowed: bool) -> None:
    content = copy.deepcopy(FANOUT)
    task(content, "join-all")["depends"] = depends
    del template(content, "join")["inputs"]["parameters"][0]["default"]
    task(content, "join")["depends"] = "work.AnySucceeded"
    if allowed:
        checked(content, "m")
    else:
        with pytest.raises(BadInput, match="is not there when work is"):
            checked(content, "m")


def test_a_single_task_has_no_list_of_all_outputs() -> None:
    content = copy.deepcopy(FANOUT)
    task(content, "join")["arguments"]["parameters"][0]["value"] = "{{tasks.list.outputs.parameters}}"
    with pytest.raises(BadInput, match="does not resolve"):
        checked(content, "m")


def test_a_composite_of_an_output_that_may_be_skipped_has_no_default_to_fall_back_to() -> None:
    content = copy.deepcopy(FANOUT)
    task(content, "join")["arguments"]["parameters"][0]["value"] = "x-{{tasks.work.outputs.parameters.found}}"
    with pytest.raises(BadInput, match="is not there when work is Skipped"):
        checked(content, "m")


def test_an_output_of_a_task_further_back_is_there_if_the_one_between_ran() -> None:
    content = copy.deepcopy(FANOUT)
    last = {"name": "last", "template": "join", "depends": "join.Succeeded"}
    last["arguments"] = {"parameters": [{"name": "all", "value": "{{tasks.list.outputs.parameters.items}}"}]}  # type: ignore[assignment]
    template(content, "main")["dag"]["tasks"].append(last)
    checked(content, "m")
    last["depends"] = "join.Omitted"
    with pytest.raises(BadInput, match="is not there when list is"):
        checked(content, "m")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"dry-run": "maybe"}, "give one of true, false"),
        ({"dryrun": "true"}, "has no parameter 'dryrun'"),
        ({"shard-size": "{{=sprig.repeat(3,'ab')}}"}, "controller would evaluate"),
    ],
)
def test_a_wrong_parameter_is_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        checked(SWEEP, "sweep").parameters(given)


def test_a_parameter_that_is_not_given_has_the_value_of_the_manifest() -> None:
    assert checked(SWEEP, "sweep").parameters({"shard-size": "3"})["dry-run"] == "true"
