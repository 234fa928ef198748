"""Device nodes that stand for GPUs: they must open without a driver, so they carry the numbers of harmless devices of the kernel.

`/dev/nvidia0` is /dev/full here. Each further GPU takes a number of its own, because holders are found by comparing numbers;
a number is used only if it opens on this machine. nvidiactl is /dev/zero: whoever holds that one is not thereby a holder of a GPU.
"""

import contextlib
import os
import stat
from pathlib import Path
from typing import Final

from sim.node.injection import CONTROL_NODE
from sim.node.state import StateError

Number = tuple[int, int]
GPU_NUMBERS: Final[tuple[Number, ...]] = (
    (1, 7),  # full
    (10, 200),  # tun
    (10, 229),  # fuse
    (10, 237),  # loop-control
    (1, 8),  # random
    (1, 9),  # urandom: last, because other programs open it, too
)
CONTROL_NUMBER: Final[Number] = (1, 5)
EVERYONE: Final = 0o666


def make_nodes(folder: Path, minors: list[int]) -> dict[str, Number]:
    """Make `nvidia<minor>` and nvidiactl in `folder`, and say which number each has. Needs root (mknod).

    Raises StateError: a folder on a file system without device nodes, or more GPUs than numbers that open here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = {CONTROL_NODE: _make(folder / CONTROL_NODE, CONTROL_NUMBER)}
    left = list(GPU_NUMBERS)
    for minor in minors:
        path = folder / f"nvidia{minor}"
        made[path.name] = _first_that_opens(path, left)
    return made


def _first_that_opens(path: Path, left: list[Number]) -> Number:
    while left:
        number = left.pop(0)
        _make(path, number)
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            return number
    path.unlink(missing_ok=True)
    raise StateError(
        f"{path}: no device number is left that opens on this machine; simulate fewer GPUs, on a file system with devices"
    )


def _make(path: Path, number: Number) -> Number:
    path.unlink(missing_ok=True)
    try:
        os.mknod(path, EVERYONE | stat.S_IFCHR, os.makedev(*number))
        path.chmod(EVERYONE)
    except OSError as error:
        raise StateError(f"{path}: cannot make a device node ({error.strerror}); run as root") from error
    return number


def number_of(path: Path) -> Number:
    """The device number of a node. Raises StateError if it is none."""
    try:
        status = path.stat()
    except OSError as error:
        raise StateError(f"{path}: {error.strerror}; make it with `gpusim install`") from error
    if not stat.S_ISCHR(status.st_mode):
        raise StateError(f"{path} is no device node; make it with `gpusim install`")
    return os.major(status.st_rdev), os.minor(status.st_rdev)
