"""What all documents share: frozen, unknown fields refused, JSON in and out, and readings that may be unknown.

The type of a reading says that it can be unknown, so that missing data is never coerced into a number: unknown is never zero.
"""

import enum
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Generic, NoReturn, Self, TypeVar

import msgspec

from steps.contracts.errors import BadInput

T = TypeVar("T")
D = TypeVar("D", bound="Document")

MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
"""A document larger than this is refused before it is parsed (a node with 512 holders is below 1 MB)."""


Instant = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with its zone. One without is refused where it is read: two of which one has none cannot be compared."""


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of every document and of every part of one."""


class Origin(enum.Enum):
    """Whether facts came from real parts or from the simulator; every document says so."""

    REAL = "real"
    SIMULATED = "simulated"


class State(enum.Enum):
    """How a reading came about. Only *measured* and *stale* carry a value one may judge by."""

    MEASURED = "measured"
    STALE = "stale"
    ABSENT = "absent"
    FILLED = "filled"
    NOT_APPLICABLE = "not applicable"
    ERROR = "error"


class Sample(Document, Generic[T], frozen=True, kw_only=True):
    """One reading: a value, or why there is none.

    value: None unless the state is measured, stale or filled. reason: why there is no value, or why to doubt it.
    source, taken_at: None means what the block around the reading says, once for all its readings.
    """

    value: T | None
    state: State
    source: str | None = None
    taken_at: Instant | None = None
    reason: str | None = None

    @classmethod
    def measured(cls, value: T, source: str | None = None, taken_at: datetime | None = None) -> Self:
        return cls(value=value, state=State.MEASURED, source=source, taken_at=taken_at)

    @classmethod
    def absent(cls, reason: str, source: str | None = None) -> Self:
        return cls(value=None, state=State.ABSENT, source=source, reason=reason)

    @classmethod
    def not_applicable(cls, reason: str, source: str | None = None) -> Self:
        return cls(value=None, state=State.NOT_APPLICABLE, source=source, reason=reason)

    @classmethod
    def error(cls, reason: str, source: str | None = None) -> Self:
        return cls(value=None, state=State.ERROR, source=source, reason=reason)

    def known(self) -> T | None:
        """The value if it was measured, else None. A stale or filled value is not knowledge."""
        return self.value if self.state is State.MEASURED else None

    if not TYPE_CHECKING:  # hidden, so that mypy's truthy-bool refuses `if sample:` as well

        def __bool__(self) -> NoReturn:
            raise TypeError("a Sample is neither true nor false: ask known()")


class Stamp(Document, frozen=True, kw_only=True):
    """Who made a document, when, and from what."""

    made_by: str
    made_at: Instant
    origin: Origin


def encode(document: Document) -> bytes:
    """The document as compact JSON, fields in declaration order: equal documents give equal bytes."""
    return msgspec.json.encode(document)


def decode(data: bytes | str, kind: type[D], where: str) -> D:
    """The document in `data`. Raises BadInput with one sentence that names `where` and the path of the first fault."""
    if len(data) > MAX_DOCUMENT_BYTES:
        raise BadInput(f"{where}: {len(data)} bytes are too many for a {kind.__name__}; the limit is {MAX_DOCUMENT_BYTES}")
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{where} is not a valid {kind.__name__}: {error}; make it again with the step that writes it") from error
