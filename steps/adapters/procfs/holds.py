"""Who holds a device: by descriptor, by mapping, by a thread of a dead leader (facts 4.2, 5).

Device numbers are compared, never names or inodes: a node that a runtime made inside a container is another inode with the
same number, and fuser and lsof do not see it. A descriptor is not read as a link but asked by `stat` relative to the open
directory: stricter, and the cheapest way there is. Such a stat can block on a hung network or FUSE filesystem, like every
tool that asks for device numbers, and reading the mappings of a process waits for that process's memory lock. The step's
timeout then ends the look, and a node without facts is unknown, never idle.
"""
# Paths are strings in here: they are made thousands of times a look, and a Path costs as much as the call.
# ruff: noqa: PTH116, PTH208

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from steps.adapters.procfs.files import DIRECTORY, GONE, numbers_in, read, read_if_there
from steps.adapters.procfs.stat import parse_stat
from steps.contracts.node_facts import Hold
from steps.contracts.ports import DeviceNode, Found

Wanted = Mapping[int, tuple[DeviceNode, ...]]
"""Device number -> the nodes that have it (one, but for stand-ins that share a number)."""

_MARKS: Final = (b"-s ", b"xs ", b"nvidia")
"""What a line of interest holds: the end of a shared mapping's permissions (a driver's mapping is shared, whatever its file is
called), or the name."""
_NEVER_A_DEVICE: Final = (b"/SYSV", b"/dev/shm/", b"/memfd:", b"anon_inode:")


def wanted_numbers(devices: tuple[DeviceNode, ...]) -> dict[int, tuple[DeviceNode, ...]]:
    wanted: dict[int, tuple[DeviceNode, ...]] = {}
    for node in devices:
        number = os.makedev(node.major, node.minor)
        wanted[number] = (*wanted.get(number, ()), node)
    return wanted


class Descriptors(NamedTuple):
    """opened: how many are open. numbers: the wanted device numbers among them. failed: why one of them could not be asked."""

    opened: int
    numbers: set[int]
    failed: OSError | None


def by_descriptor(task: str, wanted: Wanted) -> Descriptors:
    """The descriptors of the process or thread folder `task`. None open: a zombie, a kernel thread, or it just ended.

    Raises PermissionError if they may not be listed, and what stands in GONE.
    """
    numbers: set[int] = set()
    failed: OSError | None = None
    status = os.stat
    folder = os.open(f"{task}/fd", DIRECTORY)
    try:
        names = os.listdir(folder)
        for name in names:
            try:
                number = status(name, dir_fd=folder).st_rdev
            except GONE:
                continue
            except OSError as error:  # a dead FUSE or NFS mount: what this descriptor is stays unknown, the others count
                failed = error
                continue
            if number in wanted:
                numbers.add(number)
    finally:
        os.close(folder)
    return Descriptors(len(names), numbers, failed)


def by_mapping(task: str, wanted: Wanted) -> set[int]:
    """The wanted device numbers among the mappings of `task`. Raises PermissionError if they may not be read.

    A mapping line gives the node's inode, not its device number; the number is asked of the path as the process itself sees
    it (`root/`; map_files would need CAP_SYS_ADMIN). If nothing, or another file, is there now, the name decides.
    """
    paths = set(_mapped(read(f"{task}/maps")))
    return {number for path, inode in paths for number in _numbers_of(task, path, inode, wanted)}


def _mapped(content: bytes) -> Iterator[tuple[bytes, int]]:
    """Path and inode of the lines that can be a driver's: shared mappings, and whatever is called nvidia.

    Lines are searched for, not split: nearly all of them are of no interest, and there are a hundred a process.
    """
    for mark in _MARKS:
        at = content.find(mark)
        while at >= 0:
            start, end = content.rfind(b"\n", 0, at) + 1, content.find(b"\n", at)
            fields = content[start : len(content) if end < 0 else end].split(None, 5)
            if len(fields) == 6 and fields[5].startswith(b"/") and not fields[5].startswith(_NEVER_A_DEVICE):
                yield fields[5], int(fields[4])
            at = content.find(mark, end) if end >= 0 else -1


def _numbers_of(task: str, path: bytes, inode: int, wanted: Wanted) -> Iterator[int]:
    try:
        seen = os.stat(os.fsencode(f"{task}/root") + path)
    except OSError:
        seen = None
    if seen is not None and seen.st_ino == inode:
        if stat.S_ISCHR(seen.st_mode) and seen.st_rdev in wanted:
            yield seen.st_rdev
        return
    name = path.removesuffix(b" (deleted)")
    for number, nodes in wanted.items():
        if any(name.endswith(b"/" + os.fsencode(node.name)) for node in nodes):
            yield number


class Thread(NamedTuple):
    """A live thread. state: the letter of its stat, None if it ended meanwhile."""

    id: int
    state: str | None


def by_threads(process: str, leader: int, wanted: Wanted) -> dict[int, Thread]:
    """Device number -> one live thread that has it, for a process whose leader is a zombie; one in state D if there is any.

    The leader's own descriptors and mappings read as empty although its threads keep both (facts 4.2). The threads share
    one set of mappings, so the first live one speaks for it. Raises PermissionError.
    """
    found: dict[int, Thread] = {}
    mappings_read = False
    for thread in numbers_in(f"{process}/task"):
        task = f"{process}/task/{thread}"
        try:
            numbers = by_descriptor(task, wanted).numbers
            if not mappings_read and thread != leader:
                numbers = numbers | by_mapping(task, wanted)
                mappings_read = True
        except GONE:
            continue
        if numbers:
            holder = Thread(thread, _state(task))
            found.update({number: holder for number in numbers if number not in found or holder.state == "D"})
    return found


def _state(task: str) -> str | None:
    content = read_if_there(f"{task}/stat")
    parsed = None if content is None else parse_stat(content)
    return None if parsed is None else parsed.state


def as_holds(found: Iterable[Found], wanted: Wanted) -> tuple[Hold, ...]:
    """What was found of the wanted numbers, by the names of their nodes."""
    return tuple(
        Hold(device=node.name, gpu_uuid=node.gpu_uuid, via=one.via, thread_id=one.thread_id, thread_state=one.thread_state)
        for one in found
        for node in wanted.get(one.number, ())
    )
