"""A busy node, made for real: thousands of processes, 8 GPUs of the NVML shim, 64 holders in every shape, each in a pod.

The processes are one C program's children and end with it, however it ends. The device nodes carry numbers of harmless devices of
the kernel that open without a driver; other programs may hold those, too, so only the holders started here are counted.
"""

import os
import shutil
import stat
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from sim.node.state import GIB, ScriptedProcess, State, ordinary_node
from sim.node.state_file import write_state
from steps.contracts.cluster_facts import ContainerFacts, Phase, PodFacts

ROOT: Final = Path(__file__).parents[2]
GPUS: Final = 8
PROCESSES: Final = 3000
DESCRIPTORS: Final = 30
NODE: Final = "bench"
MAPPABLE: Final = (1, 5)  # zero: the only one of these that can be mapped
NUMBERS: Final = ((1, 7), (10, 200), (10, 229), (10, 237), (10, 232), (203, 0), (10, 234), (1, 9), (1, 8), (1, 11))
"""full, tun, fuse, loop-control, kvm, cpuid, btrfs-control, urandom, random, kmsg: those that open here are taken in this order."""
CGROUPS: Final = "gpu-reclaim-bench"
PATIENCE_S: Final = 5.0


class CannotRun(Exception):
    """Why the node cannot be made here, as a clause."""


@dataclass(frozen=True)
class Shape:
    """How some of the holders hold. own_node: a node made inside the container, another inode with the same number."""

    how: str
    count: int
    own_node: bool = False
    listed: bool = False


SHAPES: Final = (
    Shape("fd", 36, listed=True),
    Shape("fd", 8, own_node=True, listed=True),
    Shape("fd", 4, own_node=True),
    Shape("map", 2),
    Shape("map", 2, own_node=True),
    Shape("thread", 4, listed=True),
    Shape("thread", 2),
    Shape("orphan", 6),
)
"""64. NVML lists those that have a context of their own; the others hold through what they inherited, or hide."""


@dataclass(frozen=True)
class Holder:
    shape: Shape
    gpu: int
    pod: PodFacts
    cgroup: Path

    @property
    def container(self) -> str:
        return self.pod.containers[0].container_ids[0]


@dataclass(frozen=True)
class Node:
    """dev: stands for /dev. pids: of the holders, in their order. processes: all of the fleet."""

    folder: Path
    dev: Path
    library: Path
    holders: tuple[Holder, ...]
    pids: tuple[int, ...]
    processes: int

    @property
    def pods(self) -> Path:
        return self.folder / "pods.json"

    def environment(self) -> dict[str, str]:
        """What finds the shim and its state."""
        return {**os.environ, "GPU_SIM_DIR": str(self.folder / "sim"), "LD_LIBRARY_PATH": str(self.library.parent)}


@contextmanager
def busy_node(processes: int = PROCESSES) -> Iterator[Node]:
    """The node while the block runs. Raises CannotRun."""
    with ExitStack() as ending:
        folder = Path(tempfile.mkdtemp(prefix="gpu-reclaim-bench-"))
        ending.callback(shutil.rmtree, folder)
        fleet = built(folder, "fleet")
        library = folder / "lib" / "libnvidia-ml.so.1"
        _run((str(ROOT / "sim" / "nvml" / "build.sh"), str(library)))
        dev = _device_nodes(folder / "dev")
        holders = _holders()
        for holder in holders:
            ending.callback(_remove_cgroup, holder.cgroup)
            holder.cgroup.mkdir(parents=True)
        pids = ending.enter_context(_running(fleet, processes, holders, folder, dev))
        node = Node(folder, dev, library, holders, pids, processes)
        (folder / "pods.json").write_bytes(msgspec.json.encode([holder.pod for holder in holders]))
        write_state(folder / "sim", _state(holders, pids))
        yield node


@contextmanager
def idle_processes(count: int) -> Iterator[None]:
    """So many processes with their descriptors and no holder. Raises CannotRun."""
    folder = Path(tempfile.mkdtemp(prefix="gpu-reclaim-bench-"))
    try:
        with _running(built(folder, "fleet"), count, (), folder, folder):
            yield
    finally:
        shutil.rmtree(folder)


def built(folder: Path, name: str) -> Path:
    """A C program of this folder, built into `folder`. Raises CannotRun."""
    program = folder / name
    source = str(Path(__file__).with_name(f"{name}.c"))
    _run(("gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", "-o", str(program), source))
    return program


def _run(command: Sequence[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    except FileNotFoundError as error:
        raise CannotRun(f"{command[0]} is not installed here") from error
    except subprocess.CalledProcessError as error:
        raise CannotRun(f"{command[0]} failed: {error.stderr.strip()[-200:]}") from error


def _device_nodes(dev: Path) -> Path:
    dev.mkdir()
    numbers = [MAPPABLE, *NUMBERS]
    for name in (*(f"nvidia{index}" for index in range(GPUS)), "nvidiactl", "nvidia-uvm"):
        while not _opens(dev / name, *_next(numbers)):
            (dev / name).unlink(missing_ok=True)
    return dev


def _next(numbers: list[tuple[int, int]]) -> tuple[int, int]:
    if not numbers:
        raise CannotRun("too few device numbers open here without a driver")
    return numbers.pop(0)


def _opens(path: Path, major: int, minor: int) -> bool:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(major, minor))
    except PermissionError as error:
        raise CannotRun("device nodes need root (mknod)") from error
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _holders() -> tuple[Holder, ...]:
    unified = _unified()
    shapes = [shape for shape in SHAPES for _ in range(shape.count)]
    return tuple(_holder(number, shape, unified) for number, shape in enumerate(shapes))


def _holder(number: int, shape: Shape, unified: Path) -> Holder:
    container = uuid.uuid4().hex + uuid.uuid4().hex
    pod = PodFacts(
        uid=str(uuid.uuid4()),
        name=f"session-{number}",
        namespace="team",
        node=NODE,
        phase=Phase.RUNNING,
        created_at=datetime(2026, 11, 30, tzinfo=UTC),
        started_at=datetime(2026, 11, 30, tzinfo=UTC),
        deletion_requested_at=None,
        grace_s=30,
        gpus_requested=1,
        containers=(ContainerFacts(name="main", container_ids=(container,)),),
    )
    gpu = 0 if shape.how == "map" else number % GPUS
    return Holder(shape, gpu, pod, unified / CGROUPS / "kubepods" / "burstable" / f"pod{pod.uid}" / container)


def _unified() -> Path:
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
        _, where, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(where)
    raise CannotRun("no cgroup2 is mounted here")


def _remove_cgroup(cgroup: Path) -> None:
    """With its parents, once its processes are gone: they end on their own, a moment after the program that started them."""
    until = time.monotonic() + PATIENCE_S
    while cgroup.exists() and (cgroup / "cgroup.procs").read_text(encoding="ascii") and time.monotonic() < until:
        time.sleep(0.01)
    for folder in (cgroup, *cgroup.parents[:4]):
        with suppress(OSError):
            folder.rmdir()


@contextmanager
def _running(fleet: Path, processes: int, holders: Sequence[Holder], folder: Path, dev: Path) -> Iterator[tuple[int, ...]]:
    plan = folder / "plan"
    plan.write_text("".join(_line(number, holder, folder, dev) for number, holder in enumerate(holders)), encoding="ascii")
    with plan.open("rb") as lines:
        command = (str(fleet), str(processes - len(holders)), str(DESCRIPTORS))
        running = subprocess.Popen(command, stdin=lines, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stderr is not None
    try:
        said = [line.split() for line in iter(running.stdout.readline, "ready\n") if line]
        if running.poll() is not None or len(said) != len(holders):
            raise CannotRun(f"the processes did not start: {running.stderr.read().strip()[-200:]}")
        yield tuple(int(words[0]) for words in said)
    finally:
        running.kill()  # its children wait on its pipe and end with it
        running.wait(timeout=30)
        running.stdout.close()
        running.stderr.close()


def _line(number: int, holder: Holder, folder: Path, dev: Path) -> str:
    gpu = dev / f"nvidia{holder.gpu}"
    if holder.shape.own_node:
        own = folder / f"container-{number}"
        own.mkdir()
        os.mknod(own / gpu.name, stat.S_IFCHR | 0o666, gpu.stat().st_rdev)
        gpu = own / gpu.name
    nodes = [gpu] if holder.shape.how == "map" else [gpu, dev / "nvidiactl", dev / "nvidia-uvm"]
    return f"{holder.shape.how} {holder.cgroup / 'cgroup.procs'} {' '.join(map(str, nodes))}\n"


def _state(holders: Sequence[Holder], pids: Sequence[int]) -> State:
    """8 GPUs; each listed process with 1 GiB, and their sum as memory in use."""
    state = ordinary_node(GPUS)
    for index, gpu in enumerate(state.gpus):
        listed = [pid for holder, pid in zip(holders, pids, strict=True) if holder.gpu == index and holder.shape.listed]
        scripted = tuple(ScriptedProcess(kind="C", pid=pid, used_bytes=GIB) for pid in listed)
        state = state.with_gpu(gpu.uuid, scripted=scripted, ghost_bytes=len(listed) * GIB)
    return state
