"""The simulator's folder on disk: state file read and replaced atomically, folders for locks made. Standard library only."""

import contextlib
import dataclasses
import fcntl
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from sim.node.state import GPU_NUMBERS, Accounted, Fault, Gpu, MigInstance, ScriptedProcess, State, StateError, folders, render

DEFAULT_FOLDER: Final = Path("/var/lib/gpu-sim")
STATE_FILE: Final = "state"
ANYONE_MAY_ADD: Final = 0o1777
EVERYONE_MAY_READ: Final = 0o644

_FLAGS: Final = frozenset(one.name for one in dataclasses.fields(Gpu) if isinstance(one.default, bool))
_FIELD_OF: Final = {key: name for name, key in GPU_NUMBERS.items()}
_NONE_IF_NEGATIVE: Final = frozenset(one.name for one in dataclasses.fields(Gpu) if one.default is None)


def folder_from(environment: Mapping[str, str]) -> Path:
    """GPU_SIM_DIR, else /var/lib/gpu-sim: the rule the shim follows."""
    return Path(environment.get("GPU_SIM_DIR") or DEFAULT_FOLDER)


def write_state(folder: Path, state: State) -> None:
    """Replace the state file, and make the folders for locks that it needs. Readers see the old text or the new one."""
    for name in folders(state):
        _make_shared(folder / name)
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=".state.", encoding="utf-8", delete=False) as file:
        file.write(render(state))
        os.fchmod(file.fileno(), EVERYONE_MAY_READ)
    Path(file.name).replace(folder / STATE_FILE)


def _make_shared(path: Path) -> None:
    """A folder in which the user of any session may make a file and remove only his own."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(ANYONE_MAY_ADD)


def read_state(folder: Path) -> State:
    """Raises StateError: no such file, or a line that cannot be understood."""
    path = folder / STATE_FILE
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise StateError(f"{path}: {error.strerror}; make it with `gpusim install`") from error
    return parse(text, str(path))


def parse(text: str, where: str) -> State:
    """The opposite of `render`. Raises StateError naming the line."""
    state = State(gpus=())
    for number, line in enumerate(text.splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        key, _, value = line.partition(" ")
        try:
            state = _with_line(state, key, value)
        except (ValueError, KeyError) as error:
            raise StateError(
                f"{where} line {number}: `{key}` cannot be understood; write the file with sim/node/state_file.py"
            ) from error
    return state


def _with_line(state: State, key: str, value: str) -> State:
    if key == "gpu":
        return dataclasses.replace(state, gpus=(*state.gpus, Gpu(uuid=value)))
    if not state.gpus:
        return _with_node_line(state, key, value)
    *before, last = state.gpus
    return dataclasses.replace(state, gpus=(*before, _with_gpu_line(last, key, value)))


def _with_node_line(state: State, key: str, value: str) -> State:
    if key in ("error", "delay"):
        return dataclasses.replace(state, faults=(*state.faults, _fault(key, value)))
    field, convert = _NODE_LINES[key]
    return dataclasses.replace(state, **{field: convert(value)})


def _with_gpu_line(gpu: Gpu, key: str, value: str) -> Gpu:
    changes: dict[str, Any]
    if key in ("name", "pci", "serial"):
        changes = {key: value}
    elif key in ("error", "delay"):
        changes = {"faults": (*gpu.faults, _fault(key, value))}
    elif key in _LISTS:
        field, convert = _LISTS[key]
        changes = {field: (*getattr(gpu, field), convert(value))}
    else:
        changes = {_FIELD_OF[key]: number_of(_FIELD_OF[key], value)}
    return dataclasses.replace(gpu, **changes)


def number_of(field: str, value: str) -> int | bool | None:
    """The value of a numeric field of Gpu from its text. Raises ValueError."""
    number = int(value)
    if field in _FLAGS:
        return bool(number)
    return None if field in _NONE_IF_NEGATIVE and number < 0 else number


def _fault(kind: str, value: str) -> Fault:
    function, amount, times = value.split()
    strikes = None if int(times) < 0 else int(times)
    if kind == "delay":
        return Fault(function=function, delay_ms=int(amount), times=strikes)
    return Fault(function=function, error=int(amount), times=strikes)


def _mig(value: str) -> MigInstance:
    uuid, gpu_instance, compute_instance, total = value.split()
    return MigInstance(uuid=uuid, gpu_instance=int(gpu_instance), compute_instance=int(compute_instance), total_bytes=int(total))


def _process(value: str) -> ScriptedProcess:
    kind, pid, used, gpu_instance, compute_instance = value.split()
    if kind not in ("C", "G", "M"):
        raise ValueError(kind)
    return ScriptedProcess(
        kind=kind,  # type: ignore[arg-type]  # just compared
        pid=int(pid),
        used_bytes=None if int(used) < 0 else int(used),
        gpu_instance=int(gpu_instance),
        compute_instance=int(compute_instance),
    )


def _accounted(value: str) -> Accounted:
    pid, running, percent, peak, time_ms, start_us = (int(word) for word in value.split())
    return Accounted(pid=pid, running=bool(running), gpu_percent=percent, peak_bytes=peak, time_ms=time_ms, start_us=start_us)


_LISTS: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    "mig": ("mig", _mig),
    "process": ("scripted", _process),
    "accounted": ("accounted", _accounted),
}
_NODE_LINES: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "driver": ("driver_version", str),
    "nvml": ("nvml_version", str),
    "cuda": ("cuda_version", int),
}


def remove_leftovers(folder: Path) -> int:
    """Delete lock files that nobody holds any more, and say how many. Harmless at any time: they count for nothing.

    Asked by a shared lock, as the shim does, so that no reader takes the question for a holder.
    """
    removed = 0
    for path in (*folder.glob("memory/*/*"), *folder.glob("activity/*/*")):
        with contextlib.suppress(FileNotFoundError, BlockingIOError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            path.unlink()
            removed += 1
    return removed
