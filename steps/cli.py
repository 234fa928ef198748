"""`gpu-reclaim`: one entry for people and for containers, and the only place that wires adapters to steps.

Importing this module loads no adapter and no API client: each command loads what it needs.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from experiments import registry as experiments
from steps import __version__
from steps.contracts.declaration import Inputs, Step, flags_of
from steps.contracts.errors import BadInput, Exit, ReclaimError
from steps.contracts.ports import Outside
from steps.registry import STEPS, function_of

SIMULATOR_VARIABLE = "GPU_RECLAIM_SIMULATOR"
"""Path of a simulator's state file; set by the local runner. Unset means the real outside; empty is refused."""


DESCRIPTION = (
    "Who holds each GPU of a cluster, whether it is still used, and how an idle session gives it back. "
    "Nothing is stopped unless a policy and a run both say so."
)
EPILOG = (
    "Try it without a cluster: gpu-reclaim demo. Exit codes: 0 done, 1 could not, 2 bad input, 3 found problems, 4 memory not back."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code; a traceback means a bug of ours, never a user's mistake."""
    try:
        arguments = _parser().parse_args(argv)
        return int(arguments.handler(arguments))
    except ReclaimError as error:
        print(f"gpu-reclaim: {_printable(str(error))}", file=sys.stderr)
        return int(error.exit_code)
    except KeyboardInterrupt:
        print("gpu-reclaim: interrupted; nothing half written is left, run it again", file=sys.stderr)
        return int(Exit.COULD_NOT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(Exit.COULD_NOT)


def _printable(sentence: str) -> str:
    """One line for a terminal or a log. It may quote foreign text, so what does not print is shown as its code."""
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in sentence)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gpu-reclaim", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"gpu-reclaim {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_steps(commands)
    _add_people_commands(commands)
    return parser


def _add_steps(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    step_parser = commands.add_parser("step", help="run one step of a workflow, as the containers do", allow_abbrev=False)
    names = step_parser.add_subparsers(dest="step", required=True, metavar="STEP")
    for step in (*STEPS.values(), *experiments.STEPS.values()):
        one = names.add_parser(step.name, help=step.help, description=step.help, allow_abbrev=False)
        for flag, words in flags_of(step):
            one.add_argument(flag, help=words, metavar="VALUE", required=flag.endswith("-to"))
        one.set_defaults(handler=_run_step, declared=step)


def _run_step(arguments: argparse.Namespace) -> Exit:
    step: Step = arguments.declared
    given = {i.name: getattr(arguments, i.name.replace("-", "_")) for i in step.inputs}
    targets = {o.name: getattr(arguments, f"{o.name}-to".replace("-", "_")) for o in step.outputs}
    inputs = Inputs(step, {name: value for name, value in given.items() if value is not None}, targets)
    function = experiments.function_of(step) if step.name in experiments.STEPS else function_of(step)
    return function(inputs, outside())


def _add_people_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Commands for people stand in `steps.commands`; each declares its flags and loads the rest when it runs."""
    from steps import commands as people  # noqa: PLC0415 - light: declares flags only

    people.add_to(commands, outside)


def outside() -> Outside:
    """The real outside, or the simulated one where the simulator's variable names a state file."""
    state = os.environ.get(SIMULATOR_VARIABLE)
    if state is None:
        from steps.adapters.outside import RealOutside  # noqa: PLC0415

        return RealOutside(os.environ)
    if not state:
        raise BadInput(f"{SIMULATOR_VARIABLE} is empty; a local run needs --simulator STATE and never touches a real cluster")
    try:
        from sim.outside import SimulatedOutside  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise BadInput(
            f"{SIMULATOR_VARIABLE} is set but this installation holds no simulator; unset it, or run from a checkout"
        ) from error
    return SimulatedOutside(state, os.environ)


if __name__ == "__main__":
    sys.exit(main())
