"""Whether every reference of a manifest resolves, and whether an output that is named is surely there when it is needed.

The second is a proof over `depends`: 4.0.5 waits for ever for the output of a task that failed (and for the list of one output
of a fan-out whose children all failed, though not for `outputs.parameters`, the list of all), and gives an empty string for
that of a skipped one, where 4.1.2 gives the consumer's default or an error. So a task may name an output only where its
`depends` admits no state of the producer without that output, or admits Skipped and has a default to fall back to.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from steps.contracts.errors import BadInput
from workflows.local.expression import Atom, Node, atoms, holds, parse_depends
from workflows.local.tags import only_tag, tags_in

GLOBALS: Final = ("workflow.name", "workflow.uid", "workflow.namespace")
_WHOLE_LIST_DOTS: Final = "tasks.X.outputs.parameters".count(".")
AT_EXIT: Final = ("workflow.status", "workflow.failures")


@dataclass(frozen=True)
class State:
    """One way a task may have ended. results: the words of `depends` that are true of it. has_output: each of its outputs, or
    the list of each, is there."""

    results: frozenset[str]
    has_output: bool
    skipped: bool = False

    @property
    def has_list(self) -> bool:
        """Whether `outputs.parameters` of a fan-out is there: with any children, whatever became of them."""
        return not self.results & {"Skipped", "Omitted"}


def _state(*results: str, has_output: bool = False) -> State:
    return State(frozenset(results), has_output, skipped="Skipped" in results)


_NOT_RUN: Final = (_state("Skipped"), _state("Omitted"))
_ONE: Final = (_state("Succeeded", has_output=True), _state("Failed"), _state("Errored"), *_NOT_RUN)
_MANY: Final = (
    _state("Succeeded", "AnySucceeded", has_output=True),
    _state("Failed", "AnySucceeded", has_output=True),
    _state("Errored", "AnySucceeded", has_output=True),
    _state("Failed", "AllFailed"),
    _state("Failed"),
    _state("Errored"),
    *_NOT_RUN,
)
_ALL_CHILDREN_SKIPPED: Final = _state("Succeeded")


def check_references(spec: Mapping[str, Any], templates: Mapping[str, Any], where: str) -> None:
    """Raise BadInput that names the first reference which does not, or not surely, resolve."""
    known = {*GLOBALS, *(f"workflow.parameters.{one['name']}" for one in spec.get("arguments", {}).get("parameters", []))}
    for name, template in templates.items():
        at = f"{where}: template {name}"
        scope = known | {f"inputs.parameters.{one['name']}" for one in template.get("inputs", {}).get("parameters", [])}
        if "dag" in template:
            _check_dependencies(template["dag"]["tasks"], at)
            for task in template["dag"]["tasks"]:
                _check_task(task, template["dag"]["tasks"], templates, scope, f"{at}, task {task['name']}")
        else:
            at_exit = set(AT_EXIT) if name == spec.get("onExit") else set()
            for text in _texts(template):
                _refuse_unknown_tags(text, scope | at_exit, at)


def _check_dependencies(tasks: list[Any], at: str) -> None:
    names = {task["name"] for task in tasks}
    for task in tasks:
        for dependency in dependencies_of(task):
            if dependency not in names:
                raise BadInput(f"{at}, task {task['name']} depends on {dependency!r}, which is no task of the DAG")
    for name in names:
        ancestors(name, {task["name"]: task for task in tasks})


def _check_task(task: Any, tasks: list[Any], templates: Mapping[str, Any], scope: set[str], at: str) -> None:
    by_name = {one["name"]: one for one in tasks}
    if task["template"] not in templates:
        raise BadInput(f"{at}: there is no template {task['template']!r}")
    inputs = {one["name"]: one.get("default") for one in templates[task["template"]].get("inputs", {}).get("parameters", [])}
    arguments = {one["name"]: str(one["value"]) for one in task.get("arguments", {}).get("parameters", [])}
    missing = [name for name, default in inputs.items() if default is None and name not in arguments]
    if unknown := sorted(set(arguments) - set(inputs)):
        raise BadInput(f"{at} gives {unknown[0]!r}, which template {task['template']!r} does not take")
    if missing:
        raise BadInput(f"{at} does not give {missing[0]!r}, which template {task['template']!r} needs")
    items = {"item"} if is_fan_out(task) else set()
    reach = ancestors(task["name"], by_name)
    outputs = {
        f"tasks.{name}.outputs.parameters.{one['name']}"
        for name in reach
        for one in templates[by_name[name]["template"]].get("outputs", {}).get("parameters", [])
    }
    outputs |= {f"tasks.{name}.outputs.parameters" for name in reach if is_fan_out(by_name[name])}
    for text in _texts({key: value for key, value in task.items() if key not in ("name", "template", "depends")}):
        _refuse_unknown_tags(text, scope | items | outputs, at, items=bool(items))
    for text, fallback in [
        *((value, inputs[name] is not None) for name, value in arguments.items()),
        (str(task.get("when", "")), False),
        (str(task.get("withParam", "")), False),
    ]:
        for tag in tags_in(text):
            if tag.startswith("tasks."):
                _check_present(task["name"], tag, by_name, at, fallback=fallback and only_tag(text) == tag)


def _check_present(task: str, tag: str, by_name: Mapping[str, Any], at: str, *, fallback: bool) -> None:
    producer = tag.split(".")[1]
    for state in admitted(task, producer, by_name):
        there = state.has_output if tag.count(".") > _WHOLE_LIST_DOTS else state.has_list
        if there or (state.skipped and fallback):
            continue
        words = " and ".join(sorted(state.results))
        raise BadInput(
            f"{at}: {{{{{tag}}}}} is not there when {producer} is {words}, which `depends` admits; narrow it, "
            "or, for Skipped, pass the reference alone to an input with a default"
        )


def admitted(task: str, producer: str, by_name: Mapping[str, Any]) -> set[State]:
    """The states in which `producer`, a task before `task`, can be when `task` runs."""
    direct = dependencies_of(by_name[task])
    combinations = _true_combinations(by_name[task], by_name)
    if producer in direct:
        return {combination[producer] for combination in combinations}
    found: list[set[State]] = []
    for middle in direct:
        if producer in ancestors(middle, by_name):
            reached = all("Omitted" not in combination[middle].results for combination in combinations)  # its depends held
            found.append(admitted(middle, producer, by_name) if reached else set(states_of(by_name[producer])))
    return min(found, key=len)


def _true_combinations(task: Any, by_name: Mapping[str, Any]) -> list[dict[str, State]]:
    names = dependencies_of(task)
    condition = _condition(task)
    combinations = (dict(zip(names, states, strict=True)) for states in product(*(states_of(by_name[name]) for name in names)))

    def true_of(combination: Mapping[str, State]) -> bool:
        def atom(one: Atom) -> bool:
            return one.right in combination[one.left].results

        return condition is None or holds(condition, atom)

    return [combination for combination in combinations if true_of(combination)]


def states_of(task: Any) -> tuple[State, ...]:
    """All ways in which a task may end; a fan-out with a `when` may succeed with every child skipped."""
    if not is_fan_out(task):
        return _ONE
    return (*_MANY, _ALL_CHILDREN_SKIPPED) if "when" in task else _MANY


def is_fan_out(task: Any) -> bool:
    return "withParam" in task or "withItems" in task


def dependencies_of(task: Any) -> list[str]:
    condition = _condition(task)
    return [] if condition is None else list(dict.fromkeys(atom.left for atom in atoms(condition)))


def ancestors(name: str, by_name: Mapping[str, Any]) -> set[str]:
    """All tasks before this one. Raises BadInput if it is before itself."""
    found: set[str] = set()
    open_names = dependencies_of(by_name[name])
    while open_names:
        one = open_names.pop()
        if one == name:
            raise BadInput(f"task {name} depends on itself, through others")
        if one not in found:
            found.add(one)
            open_names += dependencies_of(by_name[one])
    return found


def _condition(task: Any) -> Node | Atom | None:
    return parse_depends(task["depends"]) if task.get("depends") else None


def _refuse_unknown_tags(text: str, scope: set[str], at: str, *, items: bool = False) -> None:
    for tag in tags_in(text):
        if tag not in scope and not (items and tag.startswith("item.")):
            raise BadInput(
                f"{at}: {{{{{tag}}}}} does not resolve; name an input, an output of a task before, or a workflow parameter"
            )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
