"""Whose sandbox a process runs in, by its containerd shim: for node pods, which do not see the runtime's folder of bundles.

A shim is started for one pod's sandbox, in that sandbox's bundle, and is the subreaper of everything in the pod: so it stands above
each of the pod's processes, gVisor's sentry and Kata's VMM included, and its working directory names the sandbox. A tenant can copy
a shim's name, but not be a process of the host outside every pod, without being root on the node anyway.
"""
# Paths are strings in here, as everywhere below procfs.
# ruff: noqa: PTH115

import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Final

from steps.adapters.bundles import RunningContainer, container_of
from steps.adapters.procfs.details import cgroup_lines, stat_of
from steps.adapters.procfs.files import read_if_there
from steps.adapters.procfs.pods import in_a_pod
from steps.adapters.procfs.stat import parse_status

MAX_CLIMB: Final = 32
"""Generations between a process and its shim."""
_SHIM: Final = "containerd-shim"
_ID: Final = re.compile(r"[0-9a-f]{64}")


class Shims:
    """The shims of this node's containerd, as far as they may be read."""

    def __init__(self, root: Path = Path("/proc")) -> None:
        self._root = str(root)

    def sandboxes(self, pids: Collection[int]) -> tuple[RunningContainer, ...]:
        """The sandboxes that these processes run in, each once; of processes without a readable shim above them nothing."""
        known: dict[int, int | None] = {}
        above = {shim for pid in pids if (shim := self._shim_above(pid, known)) is not None}
        found = (self._sandbox_of(shim) for shim in sorted(above))
        return tuple(one for one in found if one is not None)

    def _shim_above(self, pid: int, known: dict[int, int | None]) -> int | None:
        """known: of every process passed on the way, the shim that it is or that stands above it. Siblings share the way."""
        passed: list[int] = []
        shim = None
        for _ in range(MAX_CLIMB):
            stat = stat_of(self._root, pid)
            if stat is None or stat.parent_pid <= 1:
                break
            pid = stat.parent_pid
            if pid in known:
                shim = known[pid]
                break
            passed.append(pid)
            if self._is_shim(pid):
                shim = pid
                break
        else:
            return None
        known.update(dict.fromkeys(passed, shim))
        return shim

    def _is_shim(self, pid: int) -> bool:
        try:
            program = os.readlink(f"{self._root}/{pid}/exe").rsplit("/", 1)[-1]
        except OSError:
            return False
        return program.startswith(_SHIM) and self._is_of_the_host(pid)

    def _is_of_the_host(self, pid: int) -> bool:
        """In the node's own PID namespace and in no pod's cgroup."""
        status, cgroup = read_if_there(f"{self._root}/{pid}/status"), read_if_there(f"{self._root}/{pid}/cgroup")
        if status is None or cgroup is None:
            return False
        return len(parse_status(status).namespace_pids) == 1 and not in_a_pod(cgroup_lines(cgroup))

    def _sandbox_of(self, shim: int) -> RunningContainer | None:
        """By the bundle that it was started in. None: not readable, or no sandbox's."""
        try:
            name = os.readlink(f"{self._root}/{shim}/cwd").rsplit("/", 1)[-1]
        except OSError:
            return None
        if _ID.fullmatch(name) is None:
            return None
        found = container_of(Path(self._root, str(shim), "cwd", "config.json"), name)
        return found if found is not None and found.container is None else None
