"""`gpu-reclaim trace`: who has this node's GPUs, on the node itself and without a cluster."""

import argparse
import platform
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from steps.contracts.errors import BadInput, Exit, SourceUnavailable
from steps.contracts.ports import Outside

if TYPE_CHECKING:
    from steps.collect.look import Look
    from steps.contracts.cluster_facts import PodFacts
    from steps.node_view.picture import NodePicture

HELP = "show who has this node's GPUs: processes, their pods, devices given and not used, memory without a process"
DESCRIPTION = (
    f"{HELP}. Run it as root on the node, or in a pod with hostPID. Exit code: 0 nothing wrong, 3 problems found (something holds"
    " a GPU that should not), 1 could not judge."
)
NODE_VARIABLE: Final = "GPU_RECLAIM_NODE"
MAX_LOOKS: Final = 60
MIN_INTERVAL_S: Final = 0.5
MAX_INTERVAL_S: Final = 3600.0
WATCH_INTERVAL_S: Final = 10.0
"""NVML's process lists hold a global lock of the driver: a few a minute harm nobody, forty a second stalled a game (facts 3.9)."""
LEAST_WATCH_INTERVAL_S: Final = 2.0
WATCH_WINDOW: Final = 13
"""Looks that --watch keeps together: two minutes at its own pace, which is enough for every class that needs to last."""
API_LISTS: Final = 2
"""With --api: one before the looks, one after them."""
CLEAR: Final = "\x1b[H\x1b[2J"


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", outside: Callable[[], Outside]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser("trace", help=HELP, description=DESCRIPTION, allow_abbrev=False)
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "wide", "json", "yaml"),
        default="table",
        help="form of the answer (default: table); wide: one row a process and GPU, with class and evidence",
    )
    parser.add_argument(
        "-w", "--watch", action="store_true", help="look again and again until Ctrl-C, keeping the last looks together"
    )
    parser.add_argument("--samples", type=_count, default=2, metavar="N", help="looks to put together (default: 2)")
    parser.add_argument(
        "--interval-s",
        type=_seconds,
        metavar="S",
        help=f"seconds between two looks (default: 1; with --watch {WATCH_INTERVAL_S:g}, at least {LEAST_WATCH_INTERVAL_S:g})",
    )
    parser.add_argument(
        "--api", action="store_true", help="ask the API server for this node's pods, with your kubeconfig or account"
    )
    parser.add_argument("--node", metavar="NAME", help="the node's name in the cluster (default: this machine's name)")
    parser.set_defaults(handler=lambda arguments: _trace(arguments, outside()))


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= MAX_LOOKS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of looks; give 1 to {MAX_LOOKS}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not MIN_INTERVAL_S <= seconds <= MAX_INTERVAL_S:
        raise argparse.ArgumentTypeError(f"{text!r} is no interval; give {MIN_INTERVAL_S:g} to {MAX_INTERVAL_S:g} seconds")
    return seconds


def _trace(arguments: argparse.Namespace, outside: Outside) -> Exit:
    """Exit code by the last picture. Raises BadInput for a node that the API server does not have."""
    node = arguments.node or outside.environment.get(NODE_VARIABLE) or platform.node()
    pods = _pods_by_api(node, outside) if arguments.api else _no_pods
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a terminal that cannot show a letter gets its code
    if arguments.watch:
        return _watch(arguments, node, outside, pods)
    from steps.collect.look import look  # noqa: PLC0415 - the CLI loads what a command needs, when it runs
    from steps.node_view.picture import picture_of  # noqa: PLC0415

    interval_s = 1.0 if arguments.interval_s is None else arguments.interval_s
    facts = look(node, outside, arguments.samples, interval_s, made_by="trace")
    picture = picture_of(facts, pods(), now=outside.clock.now(), lists=API_LISTS)
    print(_rendered(picture, arguments.output), end="", flush=True)
    return _leave(picture, arguments.output)


def _watch(arguments: argparse.Namespace, node: str, outside: Outside, pods: "Callable[[], tuple[PodFacts, ...] | None]") -> Exit:
    """Until Ctrl-C, which is how it is meant to end: then the last picture's exit code counts."""
    from steps.collect.look import facts_of, glance  # noqa: PLC0415
    from steps.node_view.picture import picture_of  # noqa: PLC0415

    interval_s = max(arguments.interval_s or WATCH_INTERVAL_S, LEAST_WATCH_INTERVAL_S)
    looks: list[Look] = []
    picture: NodePicture | None = None
    try:
        while True:
            looks = [*looks, glance(outside)][-WATCH_WINDOW:]
            picture = picture_of(facts_of(node, looks, outside, made_by="trace"), pods(), now=outside.clock.now(), lists=API_LISTS)
            head = (
                f"{picture.facts.stamp.made_at:%Y-%m-%d %H:%M:%S} UTC, {_looks(len(looks))} over {picture.facts.span_s:.0f} s\n\n"
            )
            form = arguments.output
            text = _line(picture) if form == "json" else _rendered(picture, form)
            start = (
                (CLEAR if sys.stdout.isatty() else "") + head if form in ("table", "wide") else "---\n" if form == "yaml" else ""
            )
            print(start + text, end="" if form != "table" else "\n", flush=True)
            outside.clock.sleep(interval_s)
    except KeyboardInterrupt:
        print(file=sys.stderr)
    return Exit.COULD_NOT if picture is None else _leave(picture, arguments.output)


def _looks(count: int) -> str:
    return "1 look" if count == 1 else f"{count} looks"


def _leave(picture: "NodePicture", form: str) -> Exit:
    """The answer: on stdout below the table, on stderr beside a document, and on stderr whatever could not be judged."""
    from steps.commands.answer import say  # noqa: PLC0415

    return say(picture.answer, beside_document=form in ("json", "yaml"))


def _rendered(picture: "NodePicture", form: str) -> str:
    import msgspec  # noqa: PLC0415

    from steps.commands.answer import width_of  # noqa: PLC0415
    from steps.node_view.trace_text import trace_text  # noqa: PLC0415
    from steps.node_view.words import harmless_json  # noqa: PLC0415

    if form == "json":
        return harmless_json(msgspec.json.format(msgspec.json.encode(picture), indent=2).decode()) + "\n"
    if form == "yaml":
        import yaml  # noqa: PLC0415

        return str(yaml.safe_dump(msgspec.to_builtins(picture), sort_keys=False, allow_unicode=False))
    return trace_text(picture, wide=form == "wide", width=width_of(sys.stdout))


def _line(picture: "NodePicture") -> str:
    """One document a line, so that a reader of the stream knows where each ends."""
    import msgspec  # noqa: PLC0415

    from steps.node_view.words import harmless_json  # noqa: PLC0415

    return harmless_json(msgspec.json.encode(picture).decode()) + "\n"


def _no_pods() -> "tuple[PodFacts, ...] | None":
    return None


def _pods_by_api(node: str, outside: Outside) -> "Callable[[], tuple[PodFacts, ...] | None]":
    """Pods of the node, asked anew for each picture. A wrong name would make every pod look gone, so it is checked first.

    Missing once is not yet gone: a pod that the list before still had counts as there. The first list is taken here, before
    any look, so a pod that is deleted while we look is not called gone.
    """
    from steps.survey.missing import together  # noqa: PLC0415

    cluster = outside.cluster()
    try:
        names = [one.name for one in cluster.gpu_nodes()]
        if node not in names:
            known = ", ".join(names) or "none"
            raise BadInput(f"the API server has no GPU node {node!r}; name this one with --node: {known}")
    except SourceUnavailable as error:
        raise SourceUnavailable(f"{error}; without --api the kubelet's folders name the pods") from error
    seen = [cluster.pods_on([node])]

    def both() -> "tuple[PodFacts, ...]":
        before, now = seen[0], cluster.pods_on([node])
        seen[0] = now
        return together(before, now)

    return both
