"""One look through /proc, composed: who holds devices, whom NVML names, zombies of pods, connections, and what we could not see."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from steps.adapters.procfs.details import process_facts
from steps.adapters.procfs.devices import device_nodes, possible_nodes
from steps.adapters.procfs.files import read_if_there
from steps.adapters.procfs.holds import as_holds, wanted_numbers
from steps.adapters.procfs.sockets import pod_connections
from steps.adapters.procfs.walk import walk as walk_over
from steps.contracts.document import Sample
from steps.contracts.node_facts import GpuFacts, Scan, Visibility, VisibilityLevel
from steps.contracts.ports import DeviceNode, ProcessScan, Walk

INITIAL_PID_NAMESPACE: Final = "pid:[4026531836]"
"""PID_NS_INIT_INO, a constant of the kernel (facts 3.4)."""
MAX_NAMED: Final = 5
"""PIDs that a reason spells out."""


class ProcfsReader:
    """ProcessReader over a /proc and a /dev."""

    def __init__(self, root: Path = Path("/proc"), dev: Path = Path("/dev"), node_namespace: str = INITIAL_PID_NAMESPACE) -> None:
        """node_namespace: the PID namespace that holds all of the node's processes; a node that is itself made of namespaces, as a
        test makes one, has another than the kernel's first."""
        self._root = str(root)
        self._dev = dev
        self._node_namespace = node_namespace

    def devices(self, gpus: Sequence[GpuFacts]) -> Sample[tuple[DeviceNode, ...]]:
        """The driver's device nodes; see `device_nodes`."""
        return device_nodes(Path(self._root), self._dev, gpus)

    def walk(self) -> Walk:
        """All processes, for whatever number a GPU of this node may turn out to have. Raises SourceUnavailable without a /proc."""
        return walk_over(self._root, wanted_numbers(possible_nodes(Path(self._root), self._dev)))

    def scan(self, devices: Sequence[DeviceNode], also: Sequence[int], scan: Scan, walk: Walk | None = None) -> ProcessScan:
        """One look. full: every process's descriptors and mappings, pod zombies, connections. quick: only the PIDs in `also`.

        A process that ends while we look is left out. Raises SourceUnavailable if there is no /proc at all.
        """
        if scan is Scan.QUICK:
            return self._quick(also)
        wanted = wanted_numbers(tuple(devices))
        if walk is None or not wanted.keys() <= walk.numbers:
            walk = walk_over(self._root, wanted)
        holds = {pid: held for pid, found in walk.found.items() if (held := as_holds(found, wanted))}
        matter = sorted({*holds, *walk.zombies, *also})
        facts = (process_facts(self._root, pid, holds.get(pid, ())) for pid in matter)
        return ProcessScan(
            boot_id=self._boot_id(),
            visibility=self._visibility(_reasons(walk.unreadable), len(walk.unreadable)),
            processes=tuple(process for process in facts if process is not None),
            sockets=pod_connections(self._root, walk.pids),
        )

    def _quick(self, also: Sequence[int]) -> ProcessScan:
        facts = (process_facts(self._root, pid, ()) for pid in sorted(also))
        return ProcessScan(
            boot_id=self._boot_id(),
            visibility=self._visibility(("quick scan: descriptors and mappings were not read",), 0),
            processes=tuple(process for process in facts if process is not None),
            sockets=Sample.absent("a quick scan reads no connections"),
        )

    def _boot_id(self) -> Sample[str]:
        content = read_if_there(f"{self._root}/sys/kernel/random/boot_id")
        return (
            Sample.error("sys/kernel/random/boot_id cannot be read")
            if content is None
            else Sample.measured(content.decode().strip())
        )

    def _visibility(self, reasons: tuple[str, ...], unreadable: int) -> Visibility:
        """Partial if there are reasons, blind in another PID namespace whatever else there is."""
        blind = why_blind(self._root, self._node_namespace)
        level = VisibilityLevel.PARTIAL if reasons else VisibilityLevel.FULL
        return Visibility(
            level=level if blind is None else VisibilityLevel.BLIND,
            reasons=(*(() if blind is None else (blind,)), *reasons),
            unreadable_processes=unreadable,
        )


def _reasons(unreadable: Mapping[int, str]) -> tuple[str, ...]:
    if not unreadable:
        return ()
    named = ", ".join(f"{pid} ({why})" for pid, why in sorted(unreadable.items())[:MAX_NAMED])
    more = "" if len(unreadable) <= MAX_NAMED else ", ..."
    count = "1 process" if len(unreadable) == 1 else f"{len(unreadable)} processes"
    return (f"descriptors or mappings of {count} could not be read: PID {named}{more}",)


def why_blind(root: str, node_namespace: str = INITIAL_PID_NAMESPACE) -> str | None:
    """Why the node's processes cannot be seen from here, None if they can (facts 3.4)."""
    try:
        namespace = str(Path(root, "self/ns/pid").readlink())
    except OSError as error:
        return f"which PID namespace this is cannot be read: {error.strerror}"
    if namespace == node_namespace:
        return None
    return f"{namespace} is not the node's PID namespace: the node's processes are invisible here; run with hostPID"
