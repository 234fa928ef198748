"""Inputs of trace that can be missing, found in the types: whoever adds a reading has it taken away by the property tests, too."""

import types
import typing
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, get_args, get_origin

import msgspec

from steps.contracts.document import Sample

GONE: Final[Sample[Any]] = Sample.error("taken away")
NAMES_NOT_READINGS: Final = frozenset(
    {
        "gpus[].parent_uuid",
        "processes[].holds[].gpu_uuid",
        "processes[].holds[].thread_id",
    }
)
"""Optional fields that say which thing it is, not what was read of it: without them it would be another one."""

Path = tuple[str, ...]


class Field(NamedTuple):
    """A place in a document where something may be missing. path: names from the top; every element of a tuple on the way is meant.
    missing: what stands there then."""

    path: Path
    missing: Any

    @property
    def name(self) -> str:
        return ".".join(self.path)


def fields_of(kind: Any) -> tuple[Field, ...]:
    """Every Sample, every optional field and every tuple of optional content below a document's type, in its order."""
    return tuple(_below(kind, ()))


def _below(kind: Any, path: Path) -> Iterator[Field]:
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return
    hints = typing.get_type_hints(kind)
    for one in msgspec.structs.fields(kind):
        here = (*path, one.name)
        if ".".join(here) in NAMES_NOT_READINGS:
            continue
        yield from _at(hints[one.name], here)


def _at(kind: Any, path: Path) -> Iterator[Field]:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Sample:
        yield Field(path, GONE)
        yield from _at(arguments[0], path)
    elif origin is tuple:
        yield from _below(arguments[0], (*path[:-1], f"{path[-1]}[]"))
    elif origin in (types.UnionType, typing.Union) and type(None) in arguments:
        yield Field(path, None)
        for other in arguments:
            yield from _at(other, path)
    else:
        yield from _below(kind, path)


def without(document: Any, field: Field) -> Any:
    """The document with the field missing everywhere; a Sample on the way that is unknown stays as it is."""
    return _without(document, field.path, field.missing)


def _without(value: Any, path: Path, missing: Any) -> Any:
    if isinstance(value, Sample):
        known = value.known()
        return value if known is None else msgspec.structs.replace(value, value=_without(known, path, missing))
    if isinstance(value, tuple):
        return tuple(_without(one, path, missing) for one in value)
    if value is None:
        return None
    name = path[0].removesuffix("[]")
    inner = missing if len(path) == 1 else _without(getattr(value, name), path[1:], missing)
    return msgspec.structs.replace(value, **{name: inner})
