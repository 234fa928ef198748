"""A whole look at a node against the shell pipelines it replaces, and its scan of /proc against what any scan must cost."""

import gc
import os
import statistics
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
OLD_ROUNDS: Final = 3
SCAN_ROUNDS: Final = 9
SIZES: Final = (1000, 2000, 4000)
MAX_MEMORY_MIB: Final = 64

FAIR: Final = ("full node picture / fair shell pipeline (one fuser over all devices)", 1 / 3)
OLD: Final = ("full node picture / the old script's style (one fuser a device)", 1 / 8)
MEMORY: Final = ("peak memory of a full node picture / 64 MiB", 1.0)
FLOOR: Final = ("full descriptor scan / readdir and stat of every descriptor, nothing else", 1.3)
WHOLE: Final = ("whole look at /proc (mappings, threads, connections, holders in full) / the same floor", 1.7)
GROWTH: Final = ("cost of a process at 4,000 processes / at 1,000", 1.3)
QUICK: Final = ("/proc part of a quick picture / of a full one", 1 / 20)
ALL: Final = (FAIR, OLD, MEMORY, FLOOR, WHOLE, GROWTH, QUICK)


def rows() -> list[Row]:
    """All rows of one busy node, in one run; not measured, with the reason, where it cannot be made (root, Linux, gcc, fuser)."""
    try:
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
    pairs = [(_run(ours, node), _run(fair, node)) for _ in range(ROUNDS)]
    against_old = [(_run(ours, node), _run(old, node)) for _ in range(OLD_ROUNDS)]
    runs = [one for one, _ in (*pairs, *against_old)]
    peak_mib = max(one.peak_kib for one in runs) / 1024
    k = len(node.holders)
    setting = f"{_setting(node)}; finds {min(one.found for one in runs)} of {k} holders"
    return [
        _against(FAIR, pairs, f"{setting}, the pipeline {pairs[0][1].found} of {k}"),
        _against(OLD, against_old, f"{setting}, the script {against_old[0][1].found} of {k}"),
        measured(*_memory(peak_mib), f"{peak_mib:.1f} MiB, interpreter included; {_setting(node)}"),
    ]


def _memory(peak_mib: float) -> tuple[str, float, float]:
    name, target = MEMORY
    return name, peak_mib / MAX_MEMORY_MIB, target


def _against(row: tuple[str, float], pairs: Sequence[tuple[_Run, _Run]], setting: str) -> Row:
    name, target = row
    ratio = statistics.median(ours.seconds / theirs.seconds for ours, theirs in pairs)
    seconds = [statistics.median(run.seconds for run in runs) for runs in zip(*pairs, strict=True)]
    return measured(name, ratio, target, f"{seconds[0]:.2f} s / {seconds[1]:.2f} s, median of {len(pairs)} pairs; {setting}")


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
    cost_ms = [statistics.median(column) * 1e3 for column in zip(*rounds, strict=True)]
    setting = f"CPU time, median of {SCAN_ROUNDS} rounds; {_setting(node)}"

    def row(named: tuple[str, float], one: int, other: int) -> Row:
        ratio = statistics.median(times[one] / times[other] for times in rounds)
        return measured(*(named[0], ratio, named[1]), f"{cost_ms[one]:.0f} ms / {cost_ms[other]:.0f} ms, {setting}")

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
    """The whole look, by process, at three sizes. The machine's own processes are in the count."""
    costs = []
    for size in SIZES:
        with idle_processes(size):
            reader = ProcfsReader()
            each_us = [_cpu_s(lambda: _look(reader, (), (), Scan.FULL)) / len(numbers_in("/proc")) * 1e6 for _ in range(5)]  # noqa: B023
        costs.append(statistics.median(each_us))
    name, target = GROWTH
    sizes = ", ".join(f"{size} processes: {cost:.0f} us each" for size, cost in zip(SIZES, costs, strict=True))
    return measured(name, costs[-1] / costs[0], target, f"CPU time of a whole look at /proc, {sizes}; {os.cpu_count()} cores")


if __name__ == "__main__":
    print(msgspec.json.format(msgspec.json.encode(rows())).decode())
