"""How a command for people on a node ends: its answer in sentences, and the exit code that goes with it."""

import shutil
import sys
from typing import TextIO

from steps.contracts.errors import Exit
from steps.node_view.picture import Answer
from steps.node_view.words import paragraph


def width_of(stream: TextIO) -> int | None:
    """Columns of the terminal behind it; None for a pipe or a file, where nothing is wrapped or shortened."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def say(answer: Answer, *, beside_document: bool) -> Exit:
    """On stdout below a text; on stderr beside a document, and on stderr whatever could not be judged."""
    for sentence in answer.sentences:
        aside = beside_document or sentence.startswith("could not")
        stream = sys.stderr if aside else sys.stdout
        lines = paragraph(sentence, width=width_of(stream), first="gpu-reclaim: " if aside else "", rest="  ")
        print("\n".join(lines), file=stream)
    return Exit(answer.exit)
