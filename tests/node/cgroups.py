"""A pod's cgroup on this machine, made without a kubelet: the path is all that counts."""

from pathlib import Path

POD = "kubepods/burstable/pod11112222-3333-4444-5555-666677778888"
CONTAINER = f"{POD}/{'ab' * 32}"


def unified() -> Path:
    """Where cgroup v2 is mounted, pure or hybrid. Raises LookupError."""
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
        _, where, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(where)
    raise LookupError("no cgroup2 is mounted here: mount one at /sys/fs/cgroup")


def make(path: str) -> Path:
    folder = unified() / path
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def remove(path: str) -> None:
    """The cgroup and its parents up to the root, as far as they are empty."""
    for part in (path, *(str(parent) for parent in Path(path).parents)):
        if part == ".":
            return
        try:
            (unified() / part).rmdir()
        except OSError:
            return


def enter(path: str, pid: int) -> None:
    (unified() / path / "cgroup.procs").write_text(str(pid), encoding="ascii")
