"""Texts for a terminal: foreign text harmless, unknown said as unknown, tables that fit. Pure."""

import textwrap
from collections.abc import Sequence
from typing import Any, Final

from steps.contracts.document import Sample

MIB: Final = 1024 * 1024
UNKNOWN: Final = "unknown"
NOT_APPLICABLE: Final = "-"
GAP: Final = "  "
LEAST_CELL: Final = 8
"""No cell is shortened below this: three characters of a pod's name tell nothing."""


def printable(text: str) -> str:
    """Foreign text for one line of a terminal: what does not print, escape sequences above all, is shown as its code."""
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in text)


def harmless_json(text: str) -> str:
    """The same JSON, with what does not print escaped: outside of strings there is only white space of that kind."""
    return "".join(letter if letter.isprintable() or letter in "\n" else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))


def mib(sample: Sample[int]) -> str:
    """`4096 MiB`; unknown is never 0."""
    known = sample.known()
    return UNKNOWN if known is None else f"{known / MIB:.0f} MiB"


def why(sample: Sample[Any]) -> str:
    """Why a reading is not known."""
    return sample.reason or sample.state.value


def table(rows: Sequence[Sequence[str]], *, width: int | None, may_shrink: Sequence[int]) -> list[str]:
    """Lines of a table, the first row its header. width: of the terminal; None (a pipe, a file): nothing is shortened.

    may_shrink: columns that give up room where the table is too wide, the widest first.
    """
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    if width is not None:
        _shrink(widths, width, may_shrink)
    return [GAP.join(_fitted(cell, size).ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows]


def _shrink(widths: list[int], width: int, may_shrink: Sequence[int]) -> None:
    over = sum(widths) + len(GAP) * (len(widths) - 1) - width
    while over > 0:
        widest = max(may_shrink, key=lambda column: widths[column])
        if widths[widest] <= LEAST_CELL:
            return
        widths[widest] -= 1
        over -= 1


def _fitted(cell: str, size: int) -> str:
    """Shortened in the middle: the beginning of a pod's name says whose it is, the end tells two of them apart."""
    if len(cell) <= size:
        return cell
    head = size // 2
    return cell[:head] + "…" + cell[len(cell) - (size - 1 - head) :]


def paragraph(text: str, *, width: int | None, first: str = "", rest: str = "") -> list[str]:
    """Text in lines that fit; first, rest: what the first and the further lines begin with."""
    if width is None:
        return [first + text]
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)
