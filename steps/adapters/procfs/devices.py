"""The driver's device nodes: their numbers are read here, never known beforehand (facts 4.3, 5)."""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from steps.contracts.document import Sample
from steps.contracts.node_facts import GpuFacts
from steps.contracts.ports import DeviceNode

MAX_GPUS: Final = 64
"""More minor numbers than any node has GPUs; should one have more, its processes are walked once more."""
_GPU_NODE: Final = re.compile(r"nvidia(\d+)")
_DRIVER_NAMES: Final = ("nvidia-frontend", "nvidia")
"""What the driver calls its major number in /proc/devices: the first until 550, the second since."""


def device_nodes(root: Path, dev: Path, gpus: Sequence[GpuFacts]) -> Sample[tuple[DeviceNode, ...]]:
    """Nodes below `dev` whose names begin with `nvidia`, and those of listed GPUs that have no node here.

    The latter from the driver's major number in /proc/devices and NVML's minor number: this container may have been given
    fewer nodes than the node has GPUs, and a holder of a GPU without a known number could not be seen. `nvidia<N>` is the
    GPU with minor number N. Neither nodes nor driver: absent.
    """
    uuids = _uuid_by_minor(gpus)
    try:
        here = [_node(name, path, uuids) for name, path in _listed(dev)]
    except OSError as error:
        return Sample.error(f"{dev} cannot be listed: {error.strerror}", str(dev))
    found = {node.name: node for node in here if node is not None}
    major = _driver_major(root)
    if major is not None:
        for minor, uuid in uuids.items():
            name = f"nvidia{minor}"
            found.setdefault(name, DeviceNode(name=name, major=major, minor=minor, gpu_uuid=uuid))
    if not found:
        return Sample.absent(
            f"there is no {dev}/nvidia*, and {root}/devices names no nvidia driver: holders cannot be recognised", str(dev)
        )
    return Sample.measured(tuple(found[name] for name in sorted(found)), str(dev))


def possible_nodes(root: Path, dev: Path) -> tuple[DeviceNode, ...]:
    """Every node that `device_nodes` may turn out to name once NVML has listed the GPUs, here without their UUIDs."""
    here = device_nodes(root, dev, ()).known()
    known = () if here is None else here
    major = _driver_major(root)
    numbers = {(node.major, node.minor) for node in known}
    missing = () if major is None else tuple(minor for minor in range(MAX_GPUS) if (major, minor) not in numbers)
    others = (DeviceNode(name=f"nvidia{minor}", major=major, minor=minor, gpu_uuid=None) for minor in missing if major is not None)
    return (*known, *others)


def _uuid_by_minor(gpus: Sequence[GpuFacts]) -> dict[int, str]:
    whole = [gpu for gpu in gpus if gpu.parent_uuid is None]
    return {minor: gpu.uuid for gpu in whole if (minor := gpu.minor_number.known()) is not None}


def _listed(dev: Path) -> Iterator[tuple[str, Path]]:
    for path in dev.iterdir():
        if path.name == "nvidia-caps" and path.is_dir():
            yield from ((f"{path.name}/{cap.name}", cap) for cap in path.iterdir())
        elif path.name.startswith("nvidia"):
            yield path.name, path


def _node(name: str, path: Path, uuids: dict[int, str]) -> DeviceNode | None:
    """None: no character device, or gone since it was listed."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISCHR(status.st_mode):
        return None
    gpu = _GPU_NODE.fullmatch(name)
    uuid = None if gpu is None else uuids.get(int(gpu[1]))
    return DeviceNode(name=name, major=os.major(status.st_rdev), minor=os.minor(status.st_rdev), gpu_uuid=uuid)


def _driver_major(root: Path) -> int | None:
    try:
        content = (root / "devices").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    words = [line.split() for line in content.partition("Block devices")[0].splitlines()]
    majors = {pair[1]: int(pair[0]) for pair in words if len(pair) == 2 and pair[0].isdecimal()}
    return next((majors[name] for name in _DRIVER_NAMES if name in majors), None)
