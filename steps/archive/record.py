"""What the engine's record of a run holds of ours: facts, receipts and releases, by template name, and what it lacks. Pure.

Shards and reclaims are told apart by the name of the node above them, so this needs nothing of how the DAG is drawn.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from steps.archive.names import parent_of, task_of
from steps.contracts.declaration import Step
from steps.contracts.document import Document, decode
from steps.contracts.errors import BadInput
from steps.contracts.node_facts import NodeFacts
from steps.contracts.parcel import unpack
from steps.contracts.release import Release
from steps.contracts.release_check import ReleaseCheck
from steps.contracts.run_record import NodeRecord, RunRecord
from steps.contracts.stop_receipt import StopReceipt

D = TypeVar("D", bound=Document)

GIVES: Final[Mapping[str, str]] = {
    "nodes": "shards",
    "collect": "facts",
    "judge": "stops",
    "capture": "facts",
    "stop": "receipt",
    "verify": "release",
    "release-check": "check",
}
"""Template -> the output without which the evidence has a gap."""

GROUPS: Final = frozenset({"TaskGroup", "StepGroup", "DAG", "Steps", "Container"})
"""Kinds of nodes that run no pod of their own."""

NOT_RUN: Final = frozenset({"Skipped", "Omitted"})


@dataclass(frozen=True, slots=True)
class Reclaim:
    """One reclaim of a run: what was captured, done and proven. where: the engine's name for it."""

    where: str
    decision: str | None
    session_uid: str | None
    captures: tuple[NodeFacts, ...]
    receipt: StopReceipt | None
    releases: tuple[Release, ...]


@dataclass(frozen=True, slots=True)
class Recorded:
    """Everything of ours in a record. gaps: sentences, one for each output that should be there and is not.
    checks: of deleted pods, when that is what the run was for."""

    collected: tuple[NodeFacts, ...]
    reclaims: tuple[Reclaim, ...]
    shards: tuple[int, ...]
    gaps: tuple[str, ...]
    checks: tuple[ReleaseCheck, ...] = ()


def read_record(record: RunRecord) -> Recorded:
    """Take the record apart. A broken output is a gap with its reason and never the end."""
    gaps: list[str] = []
    own = [node for node in record.nodes if node.template in GIVES and node.kind not in GROUPS]
    gaps.extend(_silent(own))

    def documents(template: str, kind: type[D], read: Callable[[str, type[D], str], D]) -> Iterator[tuple[str, D]]:
        for node in own:
            text = node.outputs.get(GIVES[template]) if node.template == template else None
            if text is None:
                continue
            try:
                yield parent_of(node.name), read(text, kind, task_of(node.name))
            except BadInput as error:
                gaps.append(str(error))

    captures = list(documents("capture", NodeFacts, unpack))
    receipts = list(documents("stop", StopReceipt, decode))
    releases = list(documents("verify", Release, unpack))
    checks = tuple(document for _, document in documents("release-check", ReleaseCheck, unpack))
    places = dict.fromkeys(parent_of(node.name) for node in own if node.template in ("capture", "stop", "verify"))
    return Recorded(
        collected=tuple({facts.node: facts for _, facts in documents("collect", NodeFacts, unpack)}.values()),
        reclaims=tuple(_reclaim(place, own, captures, receipts, releases) for place in places),
        shards=tuple(_shards(own, gaps)),
        checks=checks,
        gaps=tuple(dict.fromkeys(gaps)),
    )


def containers_of(record: RunRecord, archive: Step) -> tuple[tuple[str, str], ...]:
    """(pod, container) of every pod of the run but archive's own, which still runs: `main`, and the set's containers."""
    found: list[tuple[str, str]] = []
    for node in record.nodes:
        if node.pod is None or node.template == archive.name or node.kind == "Retry":
            continue
        inside = [task_of(c.name) for c in record.nodes if c.kind == "Container" and parent_of(c.name) == node.name]
        found.extend((node.pod, container) for container in inside or ["main"])
    return tuple(dict.fromkeys(found))


def _reclaim(
    place: str,
    own: list[NodeRecord],
    captures: list[tuple[str, NodeFacts]],
    receipts: list[tuple[str, StopReceipt]],
    releases: list[tuple[str, Release]],
) -> Reclaim:
    receipt = next((document for at, document in receipts if at == place), None)
    inputs = {name: value for node in own if parent_of(node.name) == place for name, value in node.inputs.items()}
    return Reclaim(
        where=place,
        decision=receipt.decision_id if receipt is not None else inputs.get("decision"),
        session_uid=receipt.owner.uid if receipt is not None and receipt.owner is not None else inputs.get("session-uid"),
        captures=tuple({document.node: document for at, document in captures if at == place}.values()),
        receipt=receipt,
        releases=tuple({document.node: document for at, document in releases if at == place}.values()),
    )


def _silent(own: list[NodeRecord]) -> Iterator[str]:
    """A pod that was meant to run and gave nothing. A retried one speaks through the node that retries."""
    retried = {node.name for node in own if node.kind == "Retry"}
    for node in own:
        tried_again = node.kind != "Retry" and any(node.name.startswith(f"{name}(") for name in retried)
        if GIVES[node.template] in node.outputs or node.phase in NOT_RUN or tried_again:
            continue
        words = f": {node.message}" if node.message else ""
        yield f"{task_of(node.name)} gave no {GIVES[node.template]} ({node.phase}{words})"


class _Shard(msgspec.Struct, frozen=True):
    """What `nodes` says of one shard; which nodes are in it is no matter here."""

    shard: int


def _shards(own: list[NodeRecord], gaps: list[str]) -> Iterator[int]:
    for node in own:
        text = node.outputs.get("shards") if node.template == "nodes" else None
        if text is None:
            continue
        try:
            yield from (one.shard for one in msgspec.json.decode(text, type=tuple[_Shard, ...]))
        except msgspec.DecodeError as error:
            gaps.append(f"the list of shards cannot be read: {error}")
