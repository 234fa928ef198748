"""GPU nodes in shards that surely fit into one Argo argument. Pure."""

from collections.abc import Sequence

from steps.contracts.document import Document


class Shard(Document, frozen=True, kw_only=True):
    """What the sweep fans out over."""

    shard: int
    nodes: tuple[str, ...]


def shards_of(nodes: Sequence[str], size: int) -> tuple[Shard, ...]:
    """Sorted by name, at most `size` (at least 1) nodes each, numbered from 0. No node gives no shard."""
    ordered = sorted(nodes)
    return tuple(
        Shard(shard=number, nodes=tuple(ordered[start : start + size])) for number, start in enumerate(range(0, len(ordered), size))
    )
