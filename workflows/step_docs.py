"""The page docs/steps.md, from the steps' declarations and the workflows' templates: what nobody writes cannot become untrue."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from steps.contracts.declaration import In, Out, Step
from steps.contracts.errors import Exit

HEAD: Final = """\
<!-- Rendered from the steps' declarations by `python -m workflows.render`. Do not edit. -->
# The steps: what each takes, gives and ends with

Each runs in a container as `gpu-reclaim step NAME --input=VALUE ... --output-to=PATH ...`. The flags below are the template's
inputs and outputs as well: an input is a parameter of the same name unless its template gives it a fixed value (a mounted file,
the run's name); a file that another pod handed over is a raw artifact of that name. A *parcel* is a document compressed into one
JSON object, because it crosses from pod to pod as a parameter.

| exit code | means |
|---|---|
"""
EXIT_WORDS: Final[Mapping[Exit, str]] = {
    Exit.DONE: "done",
    Exit.COULD_NOT: "could not: something outside did not answer; run it again",
    Exit.BAD_INPUT: "bad input; the sentence says what to give",
    Exit.FOUND_PROBLEMS: "done, and found what needs attention",
    Exit.MEMORY_NOT_BACK: "acted or watched, and the memory is not proven back",
}


def page(steps: Sequence[Step], manifests: Sequence[Mapping[str, Any]]) -> str:
    """The whole page as Markdown. manifests: the WorkflowTemplates that run the steps, as plain data."""
    codes = "".join(f"| {int(code)} | {words} |\n" for code, words in EXIT_WORDS.items())
    return HEAD + codes + "".join(_section(step, tuple(_places(step, manifests))) for step in steps)


def _section(step: Step, places: Sequence[str]) -> str:
    runs_in = ", ".join(places) if places else "no workflow"
    rows = "".join((*map(_input_row, step.inputs), *map(_output_row, step.outputs)))
    codes = ", ".join(str(int(code)) for code in step.exits)
    return (
        f"\n## {step.name}\n\n{_cell(step.help)[:1].upper()}{_cell(step.help)[1:]}. Runs in: {runs_in}. Exit codes: {codes}.\n\n"
        f"| flag | what | value | default |\n|---|---|---|---|\n{rows}"
    )


def _input_row(declared: In) -> str:
    value = declared.words + (", handed over by another pod" if declared.artifact else "")
    default = "(required)" if declared.default is None else f"`{_cell(declared.default)}`" if declared.default else "nothing"
    return f"| `--{declared.name}` | {_cell(declared.help)} | {_cell(value)} | {default} |\n"


def _output_row(declared: Out) -> str:
    how = "where to write it, as a parcel" if declared.parcel else "where to write it"
    return f"| `--{declared.name}-to` | {_cell(declared.help)} | {how} | |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _places(step: Step, manifests: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """`workflow/template` of every container that runs the step, each once, in the manifests' order."""
    found = (
        f"`{manifest['metadata']['name']}/{template['name']}`"
        for manifest in manifests
        for template in manifest["spec"]["templates"]
        for container in containers(template)
        if container["args"][:2] == ["step", step.name]
    )
    yield from dict.fromkeys(found)


def containers(template: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The containers of one template that run a step: none, its only one, or those of its set."""
    single = [template["container"]] if "container" in template else []
    several = template.get("containerSet", {}).get("containers", [])
    return [one for one in (*single, *several) if one.get("args", [])[:1] == ["step"]]
