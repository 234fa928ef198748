"""`gpu-reclaim run`: run a rendered workflow on this machine, steps as subprocesses, against the simulator."""

import argparse
from collections.abc import Callable

from steps.contracts.errors import Exit, ReclaimError
from steps.contracts.ports import Outside


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", outside: Callable[[], Outside]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser(
        "run", help="run a rendered workflow on this machine, steps as subprocesses, against the simulator", allow_abbrev=False
    )
    parser.set_defaults(handler=lambda arguments: _run(arguments, outside))


def _run(arguments: argparse.Namespace, outside: Callable[[], Outside]) -> Exit:
    raise ReclaimError("run is not built yet")
