"""What a container is given so that it has a simulated GPU: one answer for the device plugin and for the runtime wrapper."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sim.node.state import State

IN_CONTAINER: Final = Path("/var/lib/gpu-sim")
"""Where the folder is in every container, wherever the node has it: the shim's default."""

LIBRARY: Final = Path("lib") / "libnvidia-ml.so.1"
NODES: Final = Path("dev")
CONTROL_NODE: Final = "nvidiactl"


@dataclass(frozen=True)
class BindMount:
    host: Path
    container: Path
    read_only: bool


@dataclass(frozen=True)
class DeviceNode:
    host: Path
    container: Path


@dataclass(frozen=True)
class Injection:
    mounts: tuple[BindMount, ...]
    devices: tuple[DeviceNode, ...]


def library_in_container() -> Path:
    """A folder that Debian's loader searches without a cache."""
    return Path("/usr/lib") / f"{platform.machine()}-linux-gnu" / LIBRARY.name


def for_probe(folder: Path, state: State) -> Injection:
    """All GPUs, nothing writable."""
    return Injection(mounts=_driver(folder), devices=_nodes(folder, [gpu.minor for gpu in state.gpus]))


def for_session(folder: Path, state: State, uuids: Sequence[str]) -> Injection:
    """These GPUs, and the folders in which the session's processes lock what they use of them. Raises StateError."""
    writable = tuple(
        BindMount(folder / kind / uuid, IN_CONTAINER / kind / uuid, read_only=False)
        for kind in ("memory", "activity")
        for uuid in uuids
    )
    return Injection(mounts=(*_driver(folder), *writable), devices=_nodes(folder, [state.gpu(uuid).minor for uuid in uuids]))


def _driver(folder: Path) -> tuple[BindMount, ...]:
    return (
        BindMount(folder, IN_CONTAINER, read_only=True),
        BindMount(folder / LIBRARY, library_in_container(), read_only=True),
    )


def _nodes(folder: Path, minors: Sequence[int]) -> tuple[DeviceNode, ...]:
    names = [CONTROL_NODE, *(f"nvidia{minor}" for minor in minors)]
    return tuple(DeviceNode(folder / NODES / name, Path("/dev") / name) for name in names)
