"""`gpu-reclaim doctor`: is the installation as it should be, and what is to be done. Reads only, with the person's own rights."""

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from steps.contracts.errors import BadInput, Exit
from steps.contracts.ports import Outside

if TYPE_CHECKING:
    from steps.contracts.installation import Installation
    from steps.doctor.finding import Finding

HELP = "say whether this installation is as it should be, and what to do"


class InstallationReader(Protocol):
    def read(self) -> "Installation": ...


@runtime_checkable
class HasInstallation(Protocol):
    """An outside with an installation in it: a cluster, not the simulator."""

    def installation(self) -> InstallationReader: ...


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", outside: Callable[[], Outside]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser(
        "doctor",
        help=HELP,
        description=f"{HELP}. Exit 0: all is well; 3: there are problems; 1: something could not be read.",
        allow_abbrev=False,
    )
    parser.add_argument("-o", "--output", choices=("wide", "json"), default="wide", help="form of the answer (default: wide)")
    parser.set_defaults(handler=lambda arguments: _examine(arguments, outside()))


def _examine(arguments: argparse.Namespace, outside: Outside) -> Exit:
    from steps.doctor.checks import examine  # noqa: PLC0415 - the CLI loads what a command needs, when it runs
    from steps.doctor.finding import Standing  # noqa: PLC0415

    if not isinstance(outside, HasInstallation):
        raise BadInput("doctor examines an installation on a cluster, and the simulator holds none; unset GPU_RECLAIM_SIMULATOR")
    findings = examine(outside.installation().read())
    _show(findings, arguments.output)
    standings = {finding.standing for finding in findings}
    if Standing.PROBLEM in standings:
        return Exit.FOUND_PROBLEMS
    return Exit.COULD_NOT if Standing.UNKNOWN in standings else Exit.DONE


def _show(findings: "Sequence[Finding]", form: str) -> None:
    import msgspec  # noqa: PLC0415

    if form == "json":
        print(msgspec.json.format(msgspec.json.encode(findings), indent=2).decode())
        return
    for finding in findings:
        print(_printable(f"{finding.standing.value:8} {finding.subject}: {finding.sentence}"))
        if finding.remedy is not None:
            print(_printable(f"{'':8} -> {finding.remedy}"))


def _printable(text: str) -> str:
    """Names of others for a terminal: what does not print is shown as its code."""
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)
