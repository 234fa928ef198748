"""`python -m sim.node.gpusim`: install the simulated driver's folder on a node, and change what it shows while it runs."""

import argparse
import dataclasses
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from sim.node.devices import make_nodes
from sim.node.injection import LIBRARY, NODES
from sim.node.nvidia_runtime import PLACES_OF_RUNC
from sim.node.state import (
    GPU_IS_LOST,
    GPU_NUMBERS,
    NO_ACTIVITY,
    NOT_LOST,
    PROCESSES_REFUSED,
    RESET_REQUIRED,
    Fault,
    State,
    StateError,
    ordinary_node,
    render,
)
from sim.node.state_file import folder_from, number_of, read_state, remove_leftovers, write_state

LAUNCHER: Final = Path("bin") / "nvidia-container-runtime"
RUNTIME: Final = Path(__file__).with_name("nvidia_runtime.py")
LAUNCHER_TEXT: Final = f"""\
#!/bin/sh
# Only what has a bundle needs Python; a container's other commands, a dozen of them, start runc at once.
for word; do
  case "$word" in create|run) GPU_SIM_DIR={{folder}} exec {{python}} "$@" ;; esac
done
PATH="$PATH:{PLACES_OF_RUNC}" exec "${{{{GPU_SIM_RUNC:-runc}}}}" "$@"
"""
BUILT_LIBRARY: Final = Path(__file__).parents[2] / "build" / "sim" / "libnvidia-ml.so.1"
LOSSES: Final[Mapping[str, int]] = {"no": NOT_LOST, "lost": GPU_IS_LOST, "reset": RESET_REQUIRED}
BAD_USAGE: Final = 2


def install(folder: Path, gpus: int, library: Path) -> None:
    """Make the folder a node needs: state of `gpus` free GPUs, library, device nodes, folders for locks, runtime launcher.

    Again on an installed node: back to free GPUs; locks that are held stay held. Raises StateError.
    """
    if not library.is_file():
        raise StateError(f"{library} is missing; build it with sim/nvml/build.sh")
    state = ordinary_node(gpus)
    (folder / LIBRARY).parent.mkdir(parents=True, exist_ok=True)
    fresh = folder / LIBRARY.with_suffix(".new")
    shutil.copy(library, fresh)
    fresh.replace(folder / LIBRARY)  # processes that have the old one loaded keep it
    make_nodes(folder / NODES, [gpu.minor for gpu in state.gpus])
    write_state(folder, state)
    remove_leftovers(folder)
    _write_launcher(folder)


def _write_launcher(folder: Path) -> None:
    """The executable for containerd's BinaryName: this Python, our runtime, this folder, whatever containerd's environment is."""
    launcher = folder / LAUNCHER
    launcher.parent.mkdir(exist_ok=True)
    words = " ".join(shlex.quote(word) for word in (sys.executable, "-I", "-S", str(RUNTIME.resolve())))
    launcher.write_text(LAUNCHER_TEXT.format(folder=shlex.quote(str(folder.resolve())), python=words), encoding="utf-8")
    launcher.chmod(0o755)


def _set(state: State, options: argparse.Namespace) -> State:
    uuid = _chosen(state, options.gpu)
    changes = {}
    for word in options.changes:
        name, _, value = word.partition("=")
        if name not in GPU_NUMBERS:
            raise StateError(f"`{name}` is no figure of a GPU; there are {', '.join(sorted(GPU_NUMBERS))}")
        try:
            changes[name] = number_of(name, value)
        except ValueError as error:
            raise StateError(f"`{word}`: give a whole number, as in {name}=1 (-1: none)") from error
    return state.with_gpu(uuid, **changes)


def _fault(state: State, options: argparse.Namespace) -> State:
    if options.error is None and options.delay_ms is None:
        raise StateError("a fault needs --error, --delay-ms or both")
    fault = Fault(function=options.function, error=options.error, delay_ms=options.delay_ms, times=options.times)
    if options.gpu is None:
        return dataclasses.replace(state, faults=(*state.faults, fault))
    uuid = _chosen(state, options.gpu)
    return state.with_gpu(uuid, faults=(*state.gpu(uuid).faults, fault))


def _no_metrics(state: State, options: argparse.Namespace) -> State:
    uuid = _chosen(state, options.gpu)
    return state.with_gpu(uuid, faults=(*state.gpu(uuid).faults, *NO_ACTIVITY))


def _no_permission(state: State, options: argparse.Namespace) -> State:
    uuid = _chosen(state, options.gpu)
    return state.with_gpu(uuid, faults=(*state.gpu(uuid).faults, *PROCESSES_REFUSED))


def _lose(state: State, options: argparse.Namespace) -> State:
    return state.with_gpu(_chosen(state, options.gpu), lost=LOSSES[options.how])


def _clear(state: State, _options: argparse.Namespace) -> State:
    return ordinary_node(len(state.gpus))


def _chosen(state: State, gpu: str | None) -> str:
    """A GPU by UUID or by index; None: the first."""
    wanted = "0" if gpu is None else gpu
    if not wanted.isdigit():
        return state.gpu(wanted).uuid
    if int(wanted) >= len(state.gpus):
        raise StateError(f"no simulated GPU with index {wanted}; there are {len(state.gpus)}")
    return state.gpus[int(wanted)].uuid


CHANGES: Final[Mapping[str, Callable[[State, argparse.Namespace], State]]] = {
    "set": _set,
    "fault": _fault,
    "no-metrics": _no_metrics,
    "no-permission": _no_permission,
    "lose": _lose,
    "clear": _clear,
}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="gpusim", description=__doc__)
    made.add_argument("--folder", type=Path, default=folder_from(os.environ), help="default: GPU_SIM_DIR or /var/lib/gpu-sim")
    orders = made.add_subparsers(dest="order", required=True)
    make = orders.add_parser("install", help="make the folder: state, library, device nodes (root)")
    make.add_argument("--gpus", type=int, default=1)
    make.add_argument("--library", type=Path, default=BUILT_LIBRARY)
    orders.add_parser("show", help="print the state file")
    change = orders.add_parser("set", help="change figures of a GPU: set ghost_bytes=1073741824 latched_utilisation=100")
    change.add_argument("changes", nargs="+", metavar="FIGURE=NUMBER")
    fault = orders.add_parser("fault", help="let a function fail or hang")
    fault.add_argument("function", help="exported name, or its beginning and *")
    fault.add_argument("--error", type=int, help="NVML error code")
    fault.add_argument("--delay-ms", type=int)
    fault.add_argument("--times", type=int, help="so often in each process; without it: always")
    metrics = orders.add_parser("no-metrics", help="activity is not supported any more")
    permission = orders.add_parser("no-permission", help="the process lists are refused from now on (error 4)")
    lose = orders.add_parser("lose", help="the GPU is lost, needs a reset, or is back")
    lose.add_argument("how", choices=tuple(LOSSES), nargs="?", default="lost")
    orders.add_parser("clear", help="back to ordinary GPUs without faults; locks stay as they are")
    for order in (change, fault, metrics, permission, lose):
        order.add_argument("--gpu", help="UUID or index; without it: the first (a fault: all)")
    return made


def run(options: argparse.Namespace) -> None:
    """Raises StateError and OSError."""
    if options.order == "install":
        install(options.folder, options.gpus, options.library)
    elif options.order == "show":
        sys.stdout.write(render(read_state(options.folder)))
    else:
        write_state(options.folder, CHANGES[options.order](read_state(options.folder), options))


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        run(parser().parse_args(arguments))
    except StateError as error:
        print(f"gpusim: {error}", file=sys.stderr)
        return BAD_USAGE
    except OSError as error:
        print(f"gpusim: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
