"""A whole look at a node against the shell pipelines it replaces, and its scan of /proc against what any scan must cost.

The best of several runs counts on both sides, taken in turn: whatever else a machine does only ever adds.
"""

import gc
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from steps.adapters.procfs import ProcfsReader
from steps.adapters.procfs.files import GONE, numbers_in
from steps.adapters.procfs.holds import by_descriptor, wanted_numbers
from steps.contracts.node_facts import Scan
from steps.contracts.ports import DeviceNode
from tests.bench.node_world import DESCRIPTORS, ROOT, CannotRun, Node, built, busy_node, idle_processes
from tests.bench.row import Row, measured, not_measured

CRICTL_COST: Final = "17 2"
NVIDIA_SMI_COST: Final = "0 10"
"""Milliseconds of CPU and of waiting for one call; where they are from is in docs/performance.md."""
ROUNDS: Final = 5
SCAN_ROUNDS: Final = 9
SIZES: Final = (1000, 2000, 4000)
MAX_MEMORY_MIB: Final = 64

FAIR: Final = ("full node picture / fair shell pipeline (one fuser over all devices)", 1 / 3)
OLD: Final = ("full node picture / the old script's style (one fuser a device)", 1 / 8)
MEMORY: Final = ("peak memory of a full node picture / 64 MiB", 1.0)
FLOOR: Final = ("full descriptor scan / readdir and stat of every descriptor, nothing else", 1.3)
WHOLE: Final = ("whole look at /proc (mappings, threads, connections, holders in full) / the same floor", 1.7)
GROWTH: Final = ("cost of a process at 4,000 processes / at 1,000, beside the floor's growth", 1.3)
QUICK: Final = ("/proc part of a quick picture / of a full one", 1 / 20)
ALL: Final = (FAIR, OLD, MEMORY, FLOOR, WHOLE, GROWTH, QUICK)


def rows() -> list[Row]:
    """All rows of one busy node, in one run; not measured, with the reason, where it cannot be made (root, Linux, gcc, fuser)."""
    try:
        if shutil.which("fuser") is None:
            raise CannotRun("fuser is not installed here (Debian: psmisc)")
        with busy_node() as node:
            of_one_node = [*_pictures(node), *_scans(node)]
        return [*of_one_node, _growth()]
    except CannotRun as error:
        return [not_measured(name, target, str(error)) for name, target in ALL]


# --- whole pictures, as processes


@dataclass(frozen=True)
class _Run:
    seconds: float
    peak_kib: int
    found: int


def _pictures(node: Node) -> list[Row]:
    ours = _as_in_the_image(node)
    fair, old = (_pipeline(node, style) for style in ("fair", "old"))
    _run(ours, node)  # compiles the modules, which the image brings compiled
    runs = [(_run(ours, node), _run(fair, node), _run(old, node)) for _ in range(ROUNDS)]
    of_ours, of_fair, of_old = zip(*runs, strict=True)
    peak_mib = max(one.peak_kib for one in of_ours) / 1024
    k = len(node.holders)
    setting = f"{_setting(node)}; finds {min(one.found for one in of_ours)} of {k} holders"
    return [
        _against(FAIR, of_ours, of_fair, f"{setting}, the pipeline {max(one.found for one in of_fair)} of {k}"),
        _against(OLD, of_ours, of_old, f"{setting}, the script {max(one.found for one in of_old)} of {k}"),
        measured(*_memory(peak_mib), f"{peak_mib:.1f} MiB, the larger of the process and its NVML child; {_setting(node)}"),
    ]


def _memory(peak_mib: float) -> tuple[str, float, float]:
    name, target = MEMORY
    return name, peak_mib / MAX_MEMORY_MIB, target


def _against(row: tuple[str, float], ours: Sequence[_Run], theirs: Sequence[_Run], setting: str) -> Row:
    name, target = row
    our_s, their_s = (min(run.seconds for run in runs) for runs in (ours, theirs))
    words = f"{our_s:.2f} s / {their_s:.2f} s, best of {len(ours)} each, in turn; {setting}"
    return measured(name, our_s / their_s, target, words)


def _setting(node: Node) -> str:
    return f"{os.cpu_count()} cores, {node.processes} processes x {DESCRIPTORS} descriptors, 8 GPUs, 64 holders in 64 containers"


@dataclass(frozen=True)
class _Command:
    words: tuple[str, ...]
    environment: dict[str, str]


def _as_in_the_image(node: Node) -> _Command:
    """Compiled modules on the path and no site folder, which would look for editable installs at every start."""
    environment = node.environment() | {
        "PYTHONPATH": os.pathsep.join((str(ROOT), *(path for path in sys.path if path.endswith("-packages")))),
        "PYTHONPYCACHEPREFIX": str(node.folder / "compiled"),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    return _Command((sys.executable, "-S", "-m", "tests.bench.node_picture", str(node.dev), str(node.pods)), environment)


def _pipeline(node: Node, style: str) -> _Command:
    answers = node.folder / "answers"
    if not answers.exists():
        answers.mkdir()
        listed = [pid for holder, pid in zip(node.holders, node.pids, strict=True) if holder.shape.listed]
        (answers / "listed").write_text("".join(f"{pid}, 1024\n" for pid in listed), encoding="ascii")
        for holder in node.holders:
            (answers / holder.container).write_text(f"{holder.pod.namespace}/{holder.pod.name}", encoding="ascii")
        built(node.folder, "standin")
    script = str(Path(__file__).with_name("node_pipeline.sh"))
    standin = str(node.folder / "standin")
    return _Command((script, style, str(node.dev), str(answers), standin, NVIDIA_SMI_COST, CRICTL_COST), dict(os.environ))


def _run(command: _Command, node: Node) -> _Run:
    """Seconds from start to reaped, the peak memory of that one process, and how many of the holders it named."""
    output = node.folder / "output"
    started = time.perf_counter()
    actions = [(os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)]
    pid = os.posix_spawn(command.words[0], command.words, command.environment, file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - started
    if status != 0:
        raise SystemExit(f"{' '.join(command.words)} ended with {os.waitstatus_to_exitcode(status)}; the bench needs it to work")
    named = {int(line.split()[0]) for line in output.read_text(encoding="utf-8").splitlines()}
    return _Run(seconds, usage.ru_maxrss, len(named & set(node.pids)))


# --- the scan of /proc, in this process, by CPU seconds


def _scans(node: Node) -> list[Row]:
    reader = ProcfsReader(dev=node.dev)
    nodes = reader.devices(()).known()
    if nodes is None:
        raise CannotRun("the device nodes cannot be listed")
    wanted = wanted_numbers(nodes)
    listed = [pid for holder, pid in zip(node.holders, node.pids, strict=True) if holder.shape.listed]
    work = (
        _floor,
        lambda: _descriptors(wanted),
        lambda: _look(reader, nodes, listed, Scan.FULL),
        lambda: _look(reader, nodes, listed, Scan.QUICK),
    )
    rounds = [[_cpu_s(one) for one in work] for _ in range(SCAN_ROUNDS)]
    cost_ms = [min(column) * 1e3 for column in zip(*rounds, strict=True)]
    setting = f"CPU time, best of {SCAN_ROUNDS} each, in turn; {_setting(node)}"

    def row(named: tuple[str, float], one: int, other: int) -> Row:
        name, target = named
        words = f"{cost_ms[one]:.0f} ms / {cost_ms[other]:.0f} ms, {setting}"
        return measured(name, cost_ms[one] / cost_ms[other], target, words)

    return [row(FLOOR, 1, 0), row(WHOLE, 2, 0), row(QUICK, 3, 2)]


def _floor() -> None:
    """What no scan of descriptors in this language can do without."""
    for name in os.listdir("/proc"):  # noqa: PTH208 - a Path would cost as much as the call
        if not name.isdecimal():
            continue
        try:
            folder = os.open(f"/proc/{name}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            for descriptor in os.listdir(folder):  # noqa: PTH208
                try:
                    os.stat(descriptor, dir_fd=folder)
                except OSError:
                    continue
        except FileNotFoundError:  # it ended
            continue
        finally:
            os.close(folder)


def _descriptors(wanted: dict[int, tuple[DeviceNode, ...]]) -> None:
    """The reader's part that the floor is the floor of."""
    for pid in numbers_in("/proc"):
        with suppress(PermissionError, *GONE):
            by_descriptor(f"/proc/{pid}", wanted)


def _look(reader: ProcfsReader, nodes: Sequence[DeviceNode], listed: Sequence[int], scan: Scan) -> None:
    reader.scan(nodes, listed, scan)


def _cpu_s(work: Callable[[], object]) -> float:
    gc.collect()
    started = time.process_time()
    work()
    return time.process_time() - started


def _growth() -> Row:
    """The whole look, by process, at three sizes, beside the floor: caches make small numbers cheap for both alike."""
    costs = {size: _each_us(size) for size in SIZES}
    (small, small_floor), *_, (large, large_floor) = costs.values()
    name, target = GROWTH
    sizes = "; ".join(f"{size} processes: {look:.0f} us each, floor {floor:.0f}" for size, (look, floor) in costs.items())
    setting = f"CPU time of a whole look at /proc, {sizes}; {os.cpu_count()} cores"
    return measured(name, large / small / (large_floor / small_floor), target, setting)


def _each_us(size: int) -> tuple[float, float]:
    """CPU time by process of a whole look and of the floor: the best of some, in turn."""
    with idle_processes(size):
        reader = ProcfsReader()
        pairs = [(_cpu_s(lambda: _look(reader, (), (), Scan.FULL)), _cpu_s(_floor)) for _ in range(SCAN_ROUNDS)]
        processes = len(numbers_in("/proc"))
    look_s, floor_s = (min(column) for column in zip(*pairs, strict=True))
    return look_s / processes * 1e6, floor_s / processes * 1e6


if __name__ == "__main__":
    print(msgspec.json.format(msgspec.json.encode(rows())).decode())
