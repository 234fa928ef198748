"""How a document crosses a pod border: one JSON object, its bytes compressed inside, small and with a budget.

An Argo argument holds 128 KiB; the aggregate of a fan-out is a JSON list only if every member is a JSON object
(facts/hera-and-argo 3.2), hence the wrapping object.
"""

import base64
import binascii
import lzma
from typing import Literal, TypeVar

import msgspec

from steps.contracts.document import MAX_DOCUMENT_BYTES, Document, decode, encode
from steps.contracts.errors import BadInput

D = TypeVar("D", bound=Document)

MAX_PARCEL_BYTES = 15 * 1024
"""Budget of one NodeFacts with 8 GPUs and 64 holders, each in a pod of its own; tested. Random ids alone are half of that."""
MAX_ARGUMENT_BYTES = 128 * 1024
"""More than this moves Argo's arguments to a ConfigMap that our accounts may not create."""


_DICTIONARY_BYTES = 1 << 20
"""Covers every document we send. The preset's own 64 MiB would cost the encoder 600 MiB of memory."""
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": _DICTIONARY_BYTES, "lc": 1, "lp": 0, "pb": 0}]
"""For text full of hexadecimal ids: 42 % smaller than gzip, whose window of 32 KiB forgets a pod before it comes up again."""
_DECODER_BYTES = 16 << 20


class Parcel(Document, frozen=True, kw_only=True):
    parcel: Literal["xz+base64"] = "xz+base64"
    holds: str
    data: str


def pack(document: Document) -> bytes:
    """The document as one small JSON object; equal documents give equal bytes."""
    packed = lzma.compress(encode(document), check=lzma.CHECK_CRC32, filters=_FILTERS)
    return encode(Parcel(holds=type(document).__name__, data=base64.b64encode(packed).decode("ascii")))


def unpack(data: bytes | str, kind: type[D], where: str) -> D:
    """The document in one parcel. Raises BadInput: broken, of another kind, or larger than a document may be."""
    return _open(decode(data, Parcel, where), kind, where)


def unpack_all(data: bytes | str, kind: type[D], where: str) -> tuple[D, ...]:
    """The documents of a fan-out: a JSON list of parcels, or of objects that hold one parcel as text.

    The second is what Argo calls `outputs.parameters` of a fan-out: alone of its aggregates it is there even when every
    child failed (4.0.5: processAggregateNodeOutputs). An empty text and `[]` are both no document (facts/hera-and-argo 3.1).
    """
    if not data.strip():
        return ()
    try:
        parcels = [_parcel_in(item, where) for item in msgspec.json.decode(data, type=tuple[dict[str, str], ...])]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{where} is not a list of parcels: {error}; hand over what the fan-out of the step before gave") from error
    return tuple(_open(parcel, kind, f"{where}[{number}]") for number, parcel in enumerate(parcels))


def _parcel_in(item: dict[str, str], where: str) -> Parcel:
    """Raises msgspec.ValidationError if the object is no parcel, BadInput if its only text is none."""
    if len(item) == 1:
        return decode(next(iter(item.values())), Parcel, where)
    return msgspec.convert(item, Parcel)


def _open(parcel: Parcel, kind: type[D], where: str) -> D:
    if parcel.holds != kind.__name__:
        raise BadInput(f"{where} holds a {parcel.holds}, not a {kind.__name__}; hand over the output of the right step")
    try:
        unpacker = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_DECODER_BYTES)
        content = unpacker.decompress(base64.b64decode(parcel.data, validate=True), MAX_DOCUMENT_BYTES + 1)
    except (binascii.Error, lzma.LZMAError, ValueError) as error:
        raise BadInput(f"{where} is damaged: {error}; run the step that wrote it again") from error
    if not unpacker.eof:
        raise BadInput(f"{where} is cut short or unpacks to more than {MAX_DOCUMENT_BYTES} bytes; run the step that wrote it again")
    return decode(content, kind, where)
