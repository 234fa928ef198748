"""What is true on the test node, read past the product: by the kernel, the kubelet's own file, and the simulated driver."""

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sim.node.state import NO_ACTIVITY
from sim.node.state_file import DEFAULT_FOLDER, read_state, write_state
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab

CHECKPOINT: Final = Path("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint")


def deployment_identity(lab: Lab, name: str, namespace: str = "team-vision") -> tuple[str, int]:
    """(uid, generation): the generation moves with every write to a Deployment's spec."""
    found = lab.kubectl.get("deployment", name, namespace)
    if found is None:
        raise LabError(f"Deployment {name} is not there")
    return str(found["metadata"]["uid"]), int(found["metadata"]["generation"])


def devices_of(lab: Lab, pod: Json) -> tuple[str, ...]:
    """Device ids that the kubelet gave to a pod, from its checkpoint, newest format."""
    uid = pod["metadata"]["uid"]
    entries = json.loads(CHECKPOINT.read_text(encoding="utf-8"))["Data"]["PodDeviceEntries"]
    found = [device for e in entries if e["PodUID"] == uid for devices in e["DeviceIDs"].values() for device in devices]
    if not found:
        raise LabError(f"the kubelet on {lab.node} gave no device to pod {pod['metadata']['name']}")
    return tuple(found)


def processes_of(pod: Json) -> tuple[int, ...]:
    """PIDs of every process in the pod's cgroup, on a machine of one node: by the pod's uid in /proc/<pid>/cgroup."""
    uid = pod["metadata"]["uid"]
    return tuple(pid for pid in _pids() if uid in _cgroup(pid).replace("_", "-"))


def processes_holding(pod: Json) -> tuple[int, ...]:
    """Those of them that hold device memory: owners of a lock on a file of the simulated driver."""
    inodes = {path.stat().st_ino for path in (DEFAULT_FOLDER / "memory").rglob("*") if path.is_file()}
    owners = set()
    for line in Path("/proc/locks").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words[1] == "FLOCK" and int(words[5].rsplit(":", 1)[1]) in inodes:
            owners.add(int(words[4]))
    return tuple(pid for pid in processes_of(pod) if pid in owners)


def parent_of(pid: int) -> int:
    """PID of its parent; of a container's first process that is containerd's shim."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("PPid:"))


@contextmanager
def metrics_absent() -> Iterator[None]:
    """The driver says of no GPU whether it works, as MIG does on older drivers."""
    before = read_state(DEFAULT_FOLDER)
    write_state(DEFAULT_FOLDER, dataclasses.replace(before, faults=(*before.faults, *NO_ACTIVITY)))
    try:
        yield
    finally:
        write_state(DEFAULT_FOLDER, before)


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _cgroup(pid: int) -> str:
    try:
        return (Path("/proc") / str(pid) / "cgroup").read_text(encoding="utf-8")
    except OSError:  # it ended between the listing and the look
        return ""
