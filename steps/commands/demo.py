"""`gpu-reclaim demo`: run the sweep on a simulated cluster and show what it found."""

import argparse
from collections.abc import Callable
from pathlib import Path

from steps.contracts.errors import BadInput, Exit
from steps.contracts.ports import Outside

WORDS = "run the sweep on a simulated cluster and show what it found"


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", outside: Callable[[], Outside]) -> None:
    """Declare the command and its flags. The demo brings its own outside."""
    parser = commands.add_parser("demo", help=WORDS, description=f"{WORDS}; nothing real is touched", allow_abbrev=False)
    parser.add_argument("--folder", type=Path, default=Path("build/demo"), help="where to work; made afresh (default: build/demo)")
    parser.add_argument("--no-color", action="store_true", help="plain text")
    parser.set_defaults(handler=_demo)


def _demo(arguments: argparse.Namespace) -> Exit:
    try:
        from steps.commands.demo_run import run_demo  # noqa: PLC0415 - needs the simulator, the local runner and rich
    except ModuleNotFoundError as error:
        raise BadInput(
            f"the demo needs the module {error.name}, which is not installed here; "
            "run it from a checkout with `make demo`, or install gpu-reclaim[people,workflows]"
        ) from error
    return run_demo(arguments.folder, color=not arguments.no_color)
