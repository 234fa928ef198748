"""`gpu-reclaim observe`: the eight checks of what lives, what is dead and who holds a GPU, in a container or on a node."""

import argparse
import platform
import sys
from collections.abc import Callable

from steps.contracts.errors import Exit
from steps.contracts.ports import Outside

HELP = "make the eight checks: PID 1, process tree, zombies, orphans, GPU memory, compute processes, device holders, verdict"
DESCRIPTION = (
    f"{HELP}. Inside a container it says what it cannot see from there. Exit code: 0 nothing wrong was seen, 3 problems found,"
    " 1 no GPU could be read."
)


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", outside: Callable[[], Outside]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser("observe", help=HELP, description=DESCRIPTION, allow_abbrev=False)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="form of the answer (default: text)")
    parser.set_defaults(handler=lambda arguments: _observe(arguments, outside()))


def _observe(arguments: argparse.Namespace, outside: Outside) -> Exit:
    import msgspec  # noqa: PLC0415 - the CLI loads what a command needs, when it runs

    from steps.collect.look import look  # noqa: PLC0415
    from steps.commands.answer import say, width_of  # noqa: PLC0415
    from steps.node_view.eight_checks import observe  # noqa: PLC0415
    from steps.node_view.observe_text import observe_text  # noqa: PLC0415
    from steps.node_view.words import harmless_json  # noqa: PLC0415
    from steps.trace.node import trace_node  # noqa: PLC0415

    facts = look(platform.node(), outside, 1, 0.0, made_by="observe")
    observation = observe(facts, outside.process_tree().read(), trace_node(facts, None, now=outside.clock.now()))
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a terminal that cannot show a letter gets its code
    if arguments.output == "json":
        print(harmless_json(msgspec.json.format(msgspec.json.encode(observation), indent=2).decode()))
    else:
        print(observe_text(observation, width=width_of(sys.stdout)), end="")
    return say(observation.answer, beside_document=arguments.output == "json")
