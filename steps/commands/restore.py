"""`gpu-reclaim restore`: show, then put back, what a stop changed. Uses the person's own rights; a dry run without --yes."""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from steps.contracts.errors import BadInput, Exit
from steps.contracts.ports import Outside

if TYPE_CHECKING:
    from steps.contracts.stop_receipt import Intent
    from steps.stop.undo import Undone

HELP = "show, then put back, what a stop changed"


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", outside: Callable[[], Outside]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser(
        "restore",
        help=HELP,
        description=f"{HELP}. Without --yes nothing is written; without SESSION all stopped sessions are meant.",
        allow_abbrev=False,
    )
    parser.add_argument("session", nargs="?", metavar="SESSION", help="the stopped session, for example deployment/notebook")
    parser.add_argument("-n", "--namespace", metavar="NS", help="only sessions of this namespace")
    parser.add_argument("--yes", action="store_true", help="put back what is shown")
    parser.add_argument("-o", "--output", choices=("wide", "json"), default="wide", help="form of the answer (default: wide)")
    parser.set_defaults(handler=lambda arguments: _restore(arguments, outside()))


def _restore(arguments: argparse.Namespace, outside: Outside) -> Exit:
    """Exit 1 if a session that was meant could not be put back; 2 if the one that was named was not stopped by gpu-reclaim."""
    from steps.stop.undo import Outcome, Undo  # noqa: PLC0415 - the CLI loads what a command needs, when it runs

    intents = outside.intents()
    undo = Undo(outside.owners(), intents, act=arguments.yes)
    chosen = _chosen(intents.list(), arguments.session, arguments.namespace)
    undone = [undo.of(intent) for intent in chosen]
    for intent, one in zip(chosen, undone, strict=True):
        if one.outcome is Outcome.RESTORED:
            _tell_the_owner(intent, one, outside)
    _show(undone, arguments.output)
    failed = any(one.outcome in (Outcome.REFUSED, Outcome.UNKNOWN) for one in undone)
    return Exit.COULD_NOT if failed else Exit.DONE


def _chosen(intents: Sequence["Intent"], session: str | None, namespace: str | None) -> Sequence["Intent"]:
    """Those that are meant. A name is one session: where two namespaces have it, say which."""
    from steps.stop.undo import session_name  # noqa: PLC0415

    found = [intent for intent in intents if namespace in (None, intent.owner.namespace)]
    if session is None:
        return found
    kind, _, name = session.partition("/")
    named = [intent for intent in found if session_name(intent) == f"{kind.lower()}/{name}"]
    where = f" in namespace {namespace}" if namespace else ""
    if not named:
        raise BadInput(f"no record of a stop of {session!r}{where}; `gpu-reclaim restore` lists those there are, as KIND/NAME")
    if len({intent.owner.namespace for intent in named}) > 1:
        places = ", ".join(sorted(intent.owner.namespace for intent in named))
        raise BadInput(f"{session!r} was stopped in several namespaces ({places}); name one with -n")
    return named


def _tell_the_owner(intent: "Intent", one: "Undone", outside: Outside) -> None:
    """An Event on the owner. The count is back whatever becomes of it, so trouble with it is only said."""
    from steps.contracts.errors import SourceUnavailable  # noqa: PLC0415

    try:
        rejected = outside.events().record(intent.owner, "Restored", "Restore", one.sentence)
        problem = rejected.detail if rejected else None
    except SourceUnavailable as error:
        problem = str(error)
    if problem is not None:
        print(f"gpu-reclaim: no Event was written for {one.session}: {problem}", file=sys.stderr)


def _show(undone: Sequence["Undone"], form: str) -> None:
    import msgspec  # noqa: PLC0415

    from steps.stop.undo import Outcome  # noqa: PLC0415

    if form == "json":
        print(msgspec.json.format(msgspec.json.encode(undone), indent=2).decode())
        return
    if not undone:
        print("No session that gpu-reclaim stopped waits to be put back.")
        return
    rows = [("SESSION", "NAMESPACE", "STOPPED", "BEFORE", "NOW", "OUTCOME"), *(_row(one) for one in undone)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for one in undone:
        print(_printable(one.sentence))
    if any(one.outcome in (Outcome.WOULD_RESTORE, Outcome.WOULD_FORGET) for one in undone):
        print("Nothing was changed; run this again with --yes.")


def _row(one: "Undone") -> tuple[str, ...]:
    now = "unknown" if one.replicas_now is None else str(one.replicas_now)
    cells = (one.session, one.namespace, f"{one.stopped_at:%Y-%m-%dT%H:%M:%SZ}", str(one.replicas_before), now, one.outcome.value)
    return tuple(_printable(cell) for cell in cells)


def _printable(text: str) -> str:
    """Foreign text for a terminal: what does not print, escape sequences above all, is shown as its code."""
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)
