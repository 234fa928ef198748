"""`gpu-reclaim experiment`: run an experiment on the simulator and show expected beside measured."""

import argparse
from collections.abc import Callable
from pathlib import Path

from steps.contracts.errors import BadInput, Exit
from steps.contracts.ports import Outside

WORDS = "run an experiment on the simulator and show expected beside measured"


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", outside: Callable[[], Outside]) -> None:
    """Declare the command and its flags. It brings its own outside."""
    parser = commands.add_parser("experiment", help=WORDS, description=f"{WORDS}; nothing real is touched", allow_abbrev=False)
    names = parser.add_subparsers(dest="experiment", required=True, metavar="EXPERIMENT")
    zombie = names.add_parser(
        "zombie", help="which of init, preStop hook and handler lets a GPU pod leave nothing behind", allow_abbrev=False
    )
    zombie.add_argument("--local", action="store_true", help="run here, on the simulator; without it nothing runs")
    zombie.add_argument("-p", dest="parameters", action="append", default=[], metavar="NAME=VALUE", help="a workflow parameter")
    zombie.add_argument(
        "--inject",
        choices=("none", "all", "ghost", "stuck"),
        default="none",
        help="then put in faults that cannot be provoked: ghost memory, state D (default: none)",
    )
    folder = Path("build/experiment-zombie")
    zombie.add_argument("--folder", type=Path, default=folder, help=f"where to work; made afresh (default: {folder})")
    zombie.add_argument("--no-color", action="store_true", help="plain text")
    zombie.set_defaults(handler=_zombie)


def _zombie(arguments: argparse.Namespace) -> Exit:
    if not arguments.local:
        raise BadInput(
            "experiment zombie runs here with --local only; on a cluster use "
            "`argo submit -n gpu-reclaim --from workflowtemplate/zombie-experiment -p node=NODE`, or the Argo UI"
        )
    parameters = {}
    for one in arguments.parameters:
        name, equals, value = one.partition("=")
        if not equals:
            raise BadInput(f"-p {one!r} is no NAME=VALUE; give for example -p repetitions=3")
        parameters[name] = value
    try:
        from steps.commands.experiment_run import run_zombie  # noqa: PLC0415 - needs the simulator, the local runner and rich
    except ModuleNotFoundError as error:
        raise BadInput(
            f"the local experiment needs the module {error.name}, which is not installed here; "
            "run it from a checkout with `make demo-experiment`, or install gpu-reclaim[people,workflows]"
        ) from error
    faults = {"none": (), "all": ("ghost", "stuck")}.get(arguments.inject, (arguments.inject,))
    return run_zombie(arguments.folder, parameters, faults, color=not arguments.no_color)
