"""What holds for every document, whatever it says."""

from collections.abc import Iterator

import msgspec
import pytest

from steps.contracts import (
    cluster_facts,
    continuity,
    decision,
    node_facts,
    release,
    release_check,
    run_record,
    stop_receipt,
    traced,
)
from steps.contracts.document import Document, Stamp, decode
from steps.contracts.errors import BadInput

MODULES = (cluster_facts, continuity, decision, node_facts, release, release_check, run_record, stop_receipt, traced)
KINDS = [
    kind
    for module in MODULES
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Document) and kind.__module__ == module.__name__
]


def times_in(kind: msgspec.inspect.Type, seen: frozenset[str] = frozenset()) -> Iterator[msgspec.inspect.DateTimeType]:
    """Every time that a value of this type may hold."""
    if isinstance(kind, msgspec.inspect.DateTimeType):
        yield kind
    if isinstance(kind, msgspec.inspect.UnionType):
        for one in kind.types:
            yield from times_in(one, seen)
    if isinstance(kind, msgspec.inspect.VarTupleType):
        yield from times_in(kind.item_type, seen)
    if isinstance(kind, msgspec.inspect.StructType) and repr(kind.cls) not in seen:
        for field in kind.fields:
            yield from times_in(field.type, seen | {repr(kind.cls)})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_time_in_a_document_has_a_zone(kind: type[Document]) -> None:
    """Two times of which one has none cannot be compared: such a document would end whoever reads it."""
    assert all(time.tz is True for time in times_in(msgspec.inspect.type_info(kind)))


def test_there_are_times_in_documents() -> None:
    assert sum(any(times_in(msgspec.inspect.type_info(kind))) for kind in KINDS) > 10


def test_a_time_without_a_zone_is_refused_by_its_place() -> None:
    with pytest.raises(BadInput, match=r"timezone .*made_at"):
        decode('{"made_by":"decide","made_at":"2026-11-30T12:00:00","origin":"real"}', Stamp, "a file")
