"""What of a node's processes and connections is worth carrying: what has to do with a GPU. Pure.

Facts of a node must fit into one Argo argument together with those of its shard, and a busy node has a hundred pods.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from steps.contracts.document import Sample
from steps.contracts.node_facts import Allocation, ProcessFacts, SocketFacts, Visibility
from steps.trace.cgroup import parse_line

MAX_ZOMBIES: Final = 32
"""Zombies that hold nothing are listed up to this many; the rest is a number in a reason (266 were seen below one PID 1)."""


class Kept(NamedTuple):
    processes: tuple[ProcessFacts, ...]
    sockets: Sample[tuple[SocketFacts, ...]]
    visibility: Visibility


def keep_relevant(
    processes: Sequence[ProcessFacts],
    sockets: Sample[tuple[SocketFacts, ...]],
    visibility: Visibility,
    *,
    allocations: Sample[tuple[Allocation, ...]],
    listed_by_nvml: Collection[int],
) -> Kept:
    """All but the plain zombies and the connections of pods that were given no GPU and hold none.

    Processes of one cgroup stand side by side: so their long lines compress, which look back 32 KiB only.
    If the allocations are not known, every pod may have been given one: then only zombies beyond MAX_ZOMBIES are left out.
    """
    pods = _gpu_pods(processes, allocations)
    zombies = [process for process in processes if _is_plain_zombie(process) and process.pid not in listed_by_nvml]
    relevant = [process.pid for process in zombies if pods is None or pods & pods_in(_lines(process))]
    left_out = {process.pid for process in zombies} - set(relevant[:MAX_ZOMBIES])
    return Kept(
        processes=tuple(sorted((one for one in processes if one.pid not in left_out), key=lambda one: (_lines(one), one.pid))),
        sockets=_kept_sockets(sockets, pods),
        visibility=_with_remark(visibility, len(relevant)),
    )


def pods_in(lines: Iterable[str]) -> frozenset[str]:
    """The pod uids that cgroup lines name."""
    return frozenset(uid for line in lines if (uid := parse_line(line).pod_uid) is not None)


def containers_in(lines: Iterable[str]) -> frozenset[str]:
    """The ids of containers and sandboxes that cgroup lines name."""
    names = [parse_line(line) for line in lines]
    return frozenset(one for name in names for one in (name.container_id, name.sandbox_id) if one is not None)


def _gpu_pods(processes: Sequence[ProcessFacts], allocations: Sample[tuple[Allocation, ...]]) -> frozenset[str] | None:
    """Pods that were given a GPU, hold a device, or have a process that NVML lists. None: which were given one is not known."""
    given = allocations.known()
    if given is None:
        return None
    live = (process for process in processes if not _is_plain_zombie(process))
    holding = frozenset(uid for process in live for uid in pods_in(_lines(process)))
    return frozenset(allocation.pod_uid for allocation in given) | holding


def _kept_sockets(sockets: Sample[tuple[SocketFacts, ...]], pods: frozenset[str] | None) -> Sample[tuple[SocketFacts, ...]]:
    known = sockets.known()
    if known is None or pods is None:
        return sockets
    return msgspec.structs.replace(sockets, value=tuple(one for one in known if pods & pods_in(one.cgroup)))


def _with_remark(visibility: Visibility, zombies: int) -> Visibility:
    """The level stays: what holds nothing hides nothing."""
    if zombies <= MAX_ZOMBIES:
        return visibility
    remark = f"{zombies} zombies in pods with a GPU; {MAX_ZOMBIES} of them are listed"
    return msgspec.structs.replace(visibility, reasons=(*visibility.reasons, remark))


def _is_plain_zombie(process: ProcessFacts) -> bool:
    return process.state in "ZX" and process.threads <= 1 and not process.holds


def _lines(process: ProcessFacts) -> tuple[str, ...]:
    lines = process.cgroup.known()
    return () if lines is None else lines
