"""Commands for people, one module each. A module declares its flags in `add` and loads the rest when it runs."""

import argparse
from collections.abc import Callable

from steps.commands import demo, doctor, experiment, observe, restore, run, trace
from steps.contracts.ports import Outside


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", outside: Callable[[], Outside]) -> None:
    """Add all commands to the parser; `outside` is called when a command needs the outside."""
    for module in (run, restore, trace, observe, doctor, demo, experiment):
        module.add(commands, outside)
