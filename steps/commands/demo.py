"""`gpu-reclaim demo`: run the sweep on a simulated cluster and show what it found."""

import argparse
from collections.abc import Callable

from steps.contracts.errors import Exit, ReclaimError
from steps.contracts.ports import Outside


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", outside: Callable[[], Outside]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser("demo", help="run the sweep on a simulated cluster and show what it found", allow_abbrev=False)
    parser.set_defaults(handler=lambda arguments: _demo(arguments, outside))


def _demo(arguments: argparse.Namespace, outside: Callable[[], Outside]) -> Exit:
    raise ReclaimError("demo is not built yet")
