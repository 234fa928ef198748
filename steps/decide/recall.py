"""What earlier sweeps left to be answered for: nodes and pods, from the memories of all shards. Pure.

Shards are cut by node name, so a node that comes or goes moves others to another shard. The unit that moves is the node: the shard
that has it now takes the newest record of it, wherever that lies, and the shard that had it keeps its own until it sees that.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

from steps.contracts.decision import Memory, SeenNode, SeenPod
from steps.contracts.document import encode

KEPT: Final = timedelta(days=7)
"""A pod that was last seen longer ago, or ahead, and has no final answer yet is dropped, and its last answer says so."""
MOST_BYTES: Final = 350 * 1024
"""Of the nodes in a memory, twice in it: now and before. A ConfigMap holds 1 MiB, the rest is for the idle clocks."""
MOST_AHEAD: Final = timedelta(seconds=60)
"""Clocks may differ by as much; a record from further ahead says nothing, for it would win for ever."""


@dataclass(frozen=True, slots=True)
class Recall:
    """nodes: each once, those of this shard and those that this shard must keep although they are not its own. dropped: pods that
    an earlier try of this run had no room for. lost: there is a memory of this shard, and it could not be read."""

    earlier_run: str | None
    nodes: tuple[SeenNode, ...]
    dropped: int = 0
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A shard of a run: its number, of how many, and its nodes. run_uid: tells a second try from another run of the same name."""

    shard: int
    shards: int
    nodes: frozenset[str]
    run: str
    run_uid: str


def recall(memories: Mapping[int, Memory], place: Place, now: datetime, *, lost: bool = False) -> Recall:
    """What this shard has to answer for. memories: by shard, those of shards that this run no longer has included.

    A second try of a run gets what the first one got, because the first has saved already.
    """
    mine = memories.get(place.shard)
    if mine is not None and mine.run_uid == place.run_uid:
        return Recall(mine.before_run, mine.before, mine.before_dropped)
    found: dict[str, tuple[int, SeenNode]] = {}
    for shard, one in _records(memories, place.shard, now):
        if one.node not in found or one.told_at > found[one.node][1].told_at:
            found[one.node] = (shard, one)
    kept = tuple(_kept(found.values(), place, None if mine is None else mine.written_at, now))
    newest = max(kept, key=lambda one: (one.told_at, one.run), default=None)
    earlier = mine.run if mine is not None and mine.run is not None else None if newest is None else newest.run
    return Recall(earlier, tuple(sorted(kept, key=lambda one: one.node)), lost=lost)


def fitting(nodes: Sequence[SeenNode], most_bytes: int = MOST_BYTES) -> tuple[tuple[SeenNode, ...], int]:
    """The nodes with as much as so many bytes hold, and how many pods that leaves out.

    Nodes of the newest sweep are kept all. Then come pods, first those of such nodes that are there, last those that have been
    missed for longest, and at the end the other nodes without pods, newest first: where nodes get new names by the hundred, as
    spot machines do, a week of them would fill the ConfigMap.
    """
    newest = max((node.told_at for node in nodes), default=None)
    frames = {node.node: len(encode(msgspec.structs.replace(node, pods=()))) + 1 for node in nodes}
    kept = {node.node for node in nodes if node.told_at == newest}
    left = most_bytes - sum(frames[name] for name in kept)
    chosen: set[tuple[str, str]] = set()
    for node, pod in sorted(_pods_of(nodes), key=lambda item: _rank(item[0], item[1], newest)):
        left -= len(encode(pod)) + 1 + (0 if node.node in kept else frames[node.node])
        if left < 0:
            break
        kept.add(node.node)
        chosen.add((node.node, pod.uid))
    for node in sorted(nodes, key=lambda one: (-one.told_at.timestamp(), one.node)):
        if node.node not in kept:
            left -= frames[node.node]
            if left < 0:
                break
            kept.add(node.node)
    cut = tuple(
        msgspec.structs.replace(node, pods=tuple(pod for pod in node.pods if (node.node, pod.uid) in chosen))
        for node in nodes
        if node.node in kept
    )
    return cut, sum(len(node.pods) for node in nodes) - len(chosen)


def is_due(pod: SeenPod, now: datetime) -> bool:
    """Whether an answer that is not final must be the last one."""
    return abs(now - pod.seen_at) > KEPT


def _pods_of(nodes: Sequence[SeenNode]) -> Iterator[tuple[SeenNode, SeenPod]]:
    return ((node, pod) for node in nodes for pod in node.pods)


def _rank(node: SeenNode, pod: SeenPod, newest: datetime | None) -> tuple[bool, float, str]:
    """Those that are there first, of the others the ones missed latest. A pod of a node that nobody asks is missed since then."""
    missed_at = pod.missed_at if pod.missed_at is not None or node.told_at == newest else node.told_at
    return missed_at is not None, 0.0 if missed_at is None else -missed_at.timestamp(), pod.uid


def _records(memories: Mapping[int, Memory], own: int, now: datetime) -> Iterator[tuple[int, SeenNode]]:
    for shard, memory in sorted(memories.items()):
        for one in memory.nodes:
            if shard == own or one.told_at <= now + MOST_AHEAD:
                yield shard, one


def _kept(found: Collection[tuple[int, SeenNode]], place: Place, written_at: datetime | None, now: datetime) -> Iterator[SeenNode]:
    """The winning records that are this shard's matter. The first shard keeps those of shards that this run no longer has."""
    for shard, one in found:
        left_over = shard >= place.shards and place.shard == 0
        if one.node not in place.nodes and shard != place.shard and not left_over:
            continue
        record = one if shard == place.shard else _not_told(one, written_at)
        if one.node in place.nodes or record.pods or abs(now - one.told_at) <= KEPT:
            yield record


def _not_told(record: SeenNode, written_at: datetime | None) -> SeenNode:
    """Without pods that were due before this shard wrote last: it has said so then, or was not there to say it."""
    if written_at is None:
        return record
    return msgspec.structs.replace(record, pods=tuple(pod for pod in record.pods if not is_due(pod, written_at)))
