"""The text of `gpu-reclaim observe`: the eight checks, one block each. Pure."""

from typing import Final

from steps.node_view.observation import Check, Observation, Outcome
from steps.node_view.words import paragraph

TREE: Final = 2
MARKS: Final = {Outcome.FINE: "ok", Outcome.PROBLEM: "PROBLEM", Outcome.NOT_SEEN: "NOT WHOLLY SEEN"}


def observe_text(observation: Observation, *, width: int | None) -> str:
    """width: of the terminal, None for a pipe or file."""
    lines = [f"Seen from {observation.place}.", ""]
    for check in observation.checks:
        lines += [f"{check.number}. {check.title}: {MARKS[check.outcome]}", *_body(check, width)]
    return "\n".join(lines) + "\n\n"


def _body(check: Check, width: int | None) -> list[str]:
    """A line of a tree is cut where it is too long: wrapped, it would look like another process."""
    if check.number == TREE:
        return [f"   {words}"[:width] for words in check.lines]
    return [line for words in check.lines for line in _one(words, width)]


def _one(words: str, width: int | None) -> list[str]:
    indent = " " * (3 + len(words) - len(words.lstrip(" ")))
    return paragraph(words.lstrip(" "), width=width, first=indent, rest=indent + "  ")
