"""Ends a cluster, also one whose program was killed half-way: by what was recorded, and by paths that only that cluster uses."""

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.cluster.lab.commands import output_of
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.imagestore import forget_containers
from tests.cluster.lab.network import NetworkNamespace
from tests.cluster.lab.node import socket_of
from tests.cluster.lab.places import DEVICE_PLUGINS, Places
from tests.cluster.lab.processes import Ledger, Started, end, identified

POD_CGROUPS: Final = ("/sys/fs/cgroup/pids/kubepods", "/sys/fs/cgroup/systemd/kubepods", "/sys/fs/cgroup/kubepods")
SETTLE_S: Final = 10.0


def end_cluster(where: Places, network: NetworkNamespace) -> None:
    """End every process of the cluster, unmount, remove its network namespace and its run folder. Running it twice is fine."""
    ledger = Ledger(where.run, where.logs)
    recorded = ledger.all()
    end(process for process in recorded if process.name == "kubelet")
    if recorded:
        _end_containers(where)
    if ledger.runs("containerd"):
        forget_containers(where, socket_of(where))
    end(reversed(recorded))
    end(_shims(where), term_s=0)
    unmount_below(where.run)
    network.remove()
    _remove_pod_cgroups()
    if recorded:
        (DEVICE_PLUGINS / "kubelet.sock").unlink(missing_ok=True)
        (DEVICE_PLUGINS / "kubelet_internal_checkpoint").unlink(missing_ok=True)
    shutil.rmtree(where.run, ignore_errors=True)
    if where.run.exists():
        raise LabError(f"{where.run} could not be removed; see `mount` and `lsof` for what still uses it")


def left_over(where: Places, network: NetworkNamespace) -> list[str]:
    """What is still there of a cluster, in words: for the tests of `down`, and for `status`."""
    alive = [f"process {process.name} ({process.pid})" for process in Ledger(where.run, where.logs).all() if process.alive()]
    shims = [f"containerd shim ({shim.pid})" for shim in _shims(where)]
    mounts = [f"mount {path}" for path in _mounts_below(where.run)]
    names = [f"network namespace {network.name}"] if network.path.exists() else []
    folder = [str(where.run)] if where.run.exists() else []
    return [*alive, *shims, *mounts, *names, *folder]


def _end_containers(where: Places) -> None:
    """Kill what runs in pods: the pods' cgroups belong to the only kubelet of this machine, which was ours and has ended.

    A container that is created while we look appears in the next look; containerd makes none without a kubelet.
    """
    deadline_s = time.monotonic() + SETTLE_S
    while processes := list(_in_pods()):
        end(processes, term_s=0)
        if time.monotonic() > deadline_s:
            raise LabError(f"pods of the cluster in {where.run} keep starting processes; end containerd by hand")


def _in_pods() -> Iterator[Started]:
    for root in POD_CGROUPS:
        for folder, _, names in os.walk(root):  # which passes over a cgroup that goes while it is listed
            if "cgroup.procs" not in names:
                continue
            with contextlib.suppress(OSError):  # or while it is read
                for word in Path(folder, "cgroup.procs").read_text(encoding="ascii").split():
                    process = identified("pod", int(word))
                    if process is not None:
                        yield process


def _shims(where: Places) -> list[Started]:
    """The shims of our containerd: its socket's path stands in their command line, and nobody else's has it."""
    address = str(socket_of(where)).encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            words = _command_line(folder)
            if b"containerd-shim" in words[0] and address in words:
                found.append(identified("containerd-shim", int(folder.name)))
    return [process for process in found if process is not None]


def _command_line(folder: Path) -> list[bytes]:
    try:
        return (folder / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return [b""]


def _mounts_below(folder: Path) -> list[str]:
    """Mount points below a folder, the deepest first."""
    points = [line.split()[1] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    return sorted((point for point in points if point.startswith(f"{folder}/")), reverse=True)


def unmount_below(folder: Path) -> None:
    """Raises LabError if one stays mounted."""
    for point in _mounts_below(folder):
        output_of(["umount", point], timeout_s=20)


def _remove_pod_cgroups() -> None:
    """Empty cgroups of pods that are gone; on cgroup v1 each controller has its own tree."""
    for root in Path("/sys/fs/cgroup").glob("*/kubepods"):
        for folder in sorted((path for path in root.rglob("*") if path.is_dir()), reverse=True):
            with contextlib.suppress(OSError):
                folder.rmdir()
        with contextlib.suppress(OSError):
            root.rmdir()
