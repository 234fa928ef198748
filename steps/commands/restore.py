"""`gpu-reclaim restore`: show, then put back, what a stop changed."""

import argparse
from collections.abc import Callable

from steps.contracts.errors import Exit, ReclaimError
from steps.contracts.ports import Outside


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", outside: Callable[[], Outside]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser("restore", help="show, then put back, what a stop changed", allow_abbrev=False)
    parser.set_defaults(handler=lambda arguments: _restore(arguments, outside))


def _restore(arguments: argparse.Namespace, outside: Callable[[], Outside]) -> Exit:
    raise ReclaimError("restore is not built yet")
