"""How nodes end, and what that means for what comes after: the words of `depends`, the tags of outputs, the phase of a DAG."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from workflows.local.expression import Atom, holds, parse_depends
from workflows.local.fanout import aggregate, aggregate_all
from workflows.local.references import ancestors, dependencies_of

COMPLETED: Final = ("Succeeded", "Failed", "Error")
FAILING: Final = ("Failed", "Error")
_WORD: Final = {"Error": "Errored"}


@dataclass(frozen=True)
class Outcome:
    """phase: as the controller names it. children: of a fan-out, in the order of its items; None for anything else."""

    phase: str
    message: str | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)
    children: tuple["Outcome", ...] | None = None

    @property
    def results(self) -> set[str]:
        """The words of `depends` that are true of it. AllFailed counts Failed children, not those in Error."""
        words = {_WORD.get(self.phase, self.phase)}
        if self.children and any(child.phase == "Succeeded" for child in self.children):
            words.add("AnySucceeded")
        if self.children and all(child.phase == "Failed" for child in self.children):
            words.add("AllFailed")
        return words


def group_of(children: tuple[Outcome, ...]) -> Outcome:
    """A fan-out: succeeded unless a child failed or erred; the last such child gives the phase."""
    failing = [child.phase for child in children if child.phase in FAILING]
    return Outcome(failing[-1] if failing else "Succeeded", children=children)


def may_run(task: Mapping[str, Any], before: Mapping[str, Outcome]) -> bool:
    """Whether the task's `depends` holds, all of its dependencies having ended."""

    def true_of(atom: Atom) -> bool:
        return atom.right in before[atom.left].results

    return not task.get("depends") or holds(parse_depends(task["depends"]), true_of)


def output_values(name: str, by_name: Mapping[str, Any], ended: Mapping[str, Outcome]) -> dict[str, str]:
    """The tags `tasks.X.outputs.parameters` (of a fan-out) and `...parameters.Y` that a task may use: of every task before it."""
    values: dict[str, str] = {}
    for before in ancestors(name, by_name):
        outcome = ended[before]
        prefix = f"tasks.{before}.outputs.parameters"
        if outcome.children is not None:
            succeeded = [child.outputs for child in outcome.children if child.phase == "Succeeded"]
            values[prefix] = aggregate_all(succeeded)
        for output, value in _outputs(outcome).items():
            values[f"{prefix}.{output}"] = value
    return values


def _outputs(outcome: Outcome) -> Mapping[str, str]:
    if outcome.children is None:
        return outcome.outputs
    succeeded = [child.outputs for child in outcome.children if child.phase == "Succeeded"]
    names = {name for outputs in succeeded for name in outputs}
    return {name: aggregate([outputs[name] for outputs in succeeded if name in outputs]) for name in names}


def dag_phase(by_name: Mapping[str, Any], ended: Mapping[str, Outcome]) -> str:
    """The phase of a DAG with failFast off: that of its last failing leaf, in order of names. A leaf that did not run takes
    after what came before it, failure first (dag.go: assessDAGPhase)."""
    needed = {dependency for task in by_name.values() for dependency in dependencies_of(task)}
    leaves = [_branch(name, by_name, ended) for name in sorted(set(by_name) - needed)]
    failing = [phase for phase in leaves if phase in FAILING]
    return failing[-1] if failing else "Succeeded"


def _branch(name: str, by_name: Mapping[str, Any], ended: Mapping[str, Outcome]) -> str:
    if ended[name].phase in COMPLETED:
        return ended[name].phase
    before = [phase for dependency in dependencies_of(by_name[name]) for phase in _outbound(dependency, by_name, ended)]
    return next((phase for phase in before if phase in FAILING), "Succeeded")


def _outbound(name: str, by_name: Mapping[str, Any], ended: Mapping[str, Outcome]) -> list[str]:
    outcome = ended[name]
    if outcome.children:
        return [child.phase if child.phase in COMPLETED else outcome.phase for child in outcome.children]
    return [_branch(name, by_name, ended)]
