"""One look through /proc, composed: who holds devices, whom NVML names, zombies of pods, connections, and what we could not see."""

import errno
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from steps.adapters.procfs.details import cgroup_lines, process_facts, stat_of
from steps.adapters.procfs.devices import device_nodes
from steps.adapters.procfs.files import GONE, numbers_in, read_if_there
from steps.adapters.procfs.holds import Wanted, as_holds, as_thread_holds, by_descriptor, by_mapping, by_threads, wanted_numbers
from steps.adapters.procfs.pods import in_a_pod
from steps.adapters.procfs.sockets import pod_connections
from steps.contracts.document import Sample
from steps.contracts.errors import SourceUnavailable
from steps.contracts.node_facts import GpuFacts, Hold, HoldVia, Scan, Visibility, VisibilityLevel
from steps.contracts.ports import DeviceNode, ProcessScan

INITIAL_PID_NAMESPACE: Final = "pid:[4026531836]"
"""PID_NS_INIT_INO, a constant of the kernel (facts 3.4)."""
MAX_NAMED: Final = 5
"""PIDs that a reason spells out."""


@dataclass
class _Walk:
    """What one pass over all processes found. unreadable: PID -> why, each process once."""

    holds: dict[int, tuple[Hold, ...]] = field(default_factory=dict)
    zombies: list[int] = field(default_factory=list)
    unreadable: dict[int, str] = field(default_factory=dict)

    def hold(self, pid: int, holds: tuple[Hold, ...]) -> None:
        if holds:
            self.holds[pid] = (*self.holds.get(pid, ()), *holds)

    def refused(self, pid: int, error: OSError) -> None:
        self.unreadable[pid] = "unknown error" if error.errno is None else errno.errorcode.get(error.errno, str(error.errno))


class ProcfsReader:
    """ProcessReader over a /proc and a /dev."""

    def __init__(self, root: Path = Path("/proc"), dev: Path = Path("/dev")) -> None:
        self._root = str(root)
        self._dev = dev

    def devices(self, gpus: Sequence[GpuFacts]) -> Sample[tuple[DeviceNode, ...]]:
        """The driver's device nodes; see `device_nodes`."""
        return device_nodes(Path(self._root), self._dev, gpus)

    def scan(self, devices: Sequence[DeviceNode], also: Sequence[int], scan: Scan) -> ProcessScan:
        """One look. full: every process's descriptors and mappings, pod zombies, connections. quick: only the PIDs in `also`.

        A process that ends while we look is left out. Raises SourceUnavailable if there is no /proc at all.
        """
        quick = scan is Scan.QUICK
        pids = [] if quick else self._pids()
        walk = _Walk()
        wanted = wanted_numbers(tuple(devices))
        for pid in pids:
            self._visit(pid, wanted, walk)
        matter = sorted({*walk.holds, *walk.zombies, *also})
        facts = (process_facts(self._root, pid, walk.holds.get(pid, ())) for pid in matter)
        return ProcessScan(
            boot_id=self._boot_id(),
            visibility=self._visibility(walk, quick=quick),
            processes=tuple(process for process in facts if process is not None),
            sockets=Sample.absent("a quick scan reads no connections") if quick else pod_connections(self._root, pids),
        )

    def _pids(self) -> list[int]:
        try:
            return numbers_in(self._root)
        except OSError as error:
            raise SourceUnavailable(f"{self._root} cannot be listed: {error.strerror}; run this where /proc is mounted") from error

    def _visit(self, pid: int, wanted: Wanted, walk: _Walk) -> None:
        process = f"{self._root}/{pid}"
        try:
            open_files = by_descriptor(process, wanted)
            if open_files.failed is not None:
                walk.refused(pid, open_files.failed)
            if open_files.opened == 0 and self._is_zombie(pid):
                self._visit_zombie(pid, wanted, walk)
                return
            walk.hold(pid, as_holds(open_files.numbers, HoldVia.DESCRIPTOR, wanted))
            mapped = by_mapping(process, wanted) - open_files.numbers
            walk.hold(pid, as_holds(mapped, HoldVia.MAPPING, wanted))
        except GONE:
            return
        except OSError as error:
            if self._is_zombie(pid):  # its folder belongs to root: for everybody else not even empty
                self._visit_zombie(pid, wanted, walk)
            else:
                walk.refused(pid, error)

    def _is_zombie(self, pid: int) -> bool:
        stat = stat_of(self._root, pid)
        return stat is not None and stat.is_zombie

    def _visit_zombie(self, pid: int, wanted: Wanted, walk: _Walk) -> None:
        """A plain zombie holds nothing (its files were closed at exit) and matters if it is a pod's; live threads may hold."""
        stat = stat_of(self._root, pid)
        if stat is not None and stat.threads > 1:
            try:
                found = by_threads(f"{self._root}/{pid}", pid, wanted)
                walk.hold(pid, as_thread_holds(found, wanted))
            except GONE:
                return
            except OSError as error:
                walk.refused(pid, error)
        content = read_if_there(f"{self._root}/{pid}/cgroup")
        if content is not None and in_a_pod(cgroup_lines(content)):
            walk.zombies.append(pid)

    def _boot_id(self) -> Sample[str]:
        content = read_if_there(f"{self._root}/sys/kernel/random/boot_id")
        return (
            Sample.error("sys/kernel/random/boot_id cannot be read")
            if content is None
            else Sample.measured(content.decode().strip())
        )

    def _visibility(self, walk: _Walk, *, quick: bool) -> Visibility:
        reasons = ["quick scan: descriptors and mappings were not read"] if quick else []
        if walk.unreadable:
            named = ", ".join(f"{pid} ({why})" for pid, why in sorted(walk.unreadable.items())[:MAX_NAMED])
            more = "" if len(walk.unreadable) <= MAX_NAMED else ", ..."
            reasons.append(f"descriptors or mappings of {len(walk.unreadable)} processes could not be read: PID {named}{more}")
        blind = why_blind(self._root)
        level = VisibilityLevel.PARTIAL if reasons else VisibilityLevel.FULL
        return Visibility(
            level=level if blind is None else VisibilityLevel.BLIND,
            reasons=(*(() if blind is None else (blind,)), *reasons),
            unreadable_processes=len(walk.unreadable),
        )


def why_blind(root: str) -> str | None:
    """Why the node's processes cannot be seen from here, None if they can (facts 3.4)."""
    try:
        namespace = str(Path(root, "self/ns/pid").readlink())
    except OSError as error:
        return f"which PID namespace this is cannot be read: {error.strerror}"
    if namespace == INITIAL_PID_NAMESPACE:
        return None
    return f"{namespace} is not the node's PID namespace: the node's processes are invisible here; run with hostPID"
