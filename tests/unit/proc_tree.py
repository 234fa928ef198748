"""A /proc that is not there: a tree of files in a folder, for what no test may do to real processes.

Descriptors are links to real device nodes (`/dev/null`, `/dev/zero`), whose numbers any user may read.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steps.adapters.procfs import ProcfsReader
from steps.contracts.ports import DeviceNode

INITIAL: Final = "pid:[4026531836]"
NULL: Final = Path("/dev/null").stat().st_rdev
NULL_NODE: Final = DeviceNode(name="nvidia0", major=os.major(NULL), minor=os.minor(NULL), gpu_uuid="GPU-a")


def stat_line(
    pid: int,
    name: str = "python3",
    *,
    state: str = "S",
    parent: int = 1,
    group: int | None = None,
    session: int | None = None,
    threads: int = 1,
    start: int = 1000,
) -> str:
    group, session = pid if group is None else group, pid if session is None else session
    return f"{pid} ({name}) {state} {parent} {group} {session} 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 {start} 0 0\n"


@dataclass
class ProcTree:
    """Build one with `proc_tree(tmp_path)`; every method adds files."""

    root: Path

    def process(
        self,
        pid: int,
        stat: str | None = None,
        fds: Sequence[Path] = (Path("/dev/zero"),),
        *,
        maps: str = "",
        status: str = "",
        cmdline: bytes = b"python3\0train.py\0",
        cgroup: str = "0::/\n",
        net: int | None = None,
    ) -> Path:
        folder = self.root / str(pid)
        self.task(folder, stat_line(pid) if stat is None else stat, fds, maps=maps, cmdline=cmdline, cgroup=cgroup)
        (folder / "status").write_text(status)
        (folder / "task").mkdir()
        if net is not None:
            (folder / "ns").mkdir()
            (folder / "ns" / "net").symlink_to(f"net:[{net}]")
        return folder

    def task(self, folder: Path, stat: str, fds: Sequence[Path], *, cmdline: bytes, cgroup: str, maps: str = "") -> None:
        (folder / "fd").mkdir(parents=True)
        for number, target in enumerate(fds):
            (folder / "fd" / str(number)).symlink_to(target)
        (folder / "stat").write_text(stat)
        (folder / "maps").write_text(maps)
        (folder / "cmdline").write_bytes(cmdline)
        (folder / "cgroup").write_text(cgroup)
        (folder / "exe").symlink_to("/usr/bin/python3")
        (folder / "root").symlink_to("/")

    def reader(self, dev: Path = Path("/dev")) -> ProcfsReader:
        return ProcfsReader(self.root, dev)


def proc_tree(folder: Path, namespace: str = INITIAL) -> ProcTree:
    root = folder / "proc"
    (root / "self" / "ns").mkdir(parents=True)
    (root / "self" / "ns" / "pid").symlink_to(namespace)
    (root / "sys" / "kernel" / "random").mkdir(parents=True)
    (root / "sys" / "kernel" / "random" / "boot_id").write_text("6b1c2f6e-0000-4000-8000-000000000001\n")
    return ProcTree(root)
