"""How a document crosses a pod border: one JSON object, its bytes compressed inside, small and with a budget.

An Argo argument holds 128 KiB; the aggregate of a fan-out is a JSON list only if every member is a JSON object
(facts/hera-and-argo 3.2), hence the wrapping object.
"""

import base64
import binascii
import gzip
import zlib
from typing import Literal, TypeVar

import msgspec

from steps.contracts.document import MAX_DOCUMENT_BYTES, Document, decode, encode
from steps.contracts.errors import BadInput

D = TypeVar("D", bound=Document)

MAX_PARCEL_BYTES = 10 * 1024
"""Budget of one NodeFacts with 8 GPUs and 64 holders; tested."""
MAX_ARGUMENT_BYTES = 128 * 1024
"""More than this moves Argo's arguments to a ConfigMap that our accounts may not create."""


class Parcel(Document, frozen=True, kw_only=True):
    parcel: Literal["gzip+base64"] = "gzip+base64"
    holds: str
    data: str


def pack(document: Document) -> bytes:
    """The document as one small JSON object; equal documents give equal bytes (no time in the gzip header)."""
    packed = gzip.compress(encode(document), compresslevel=9, mtime=0)
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
        unzip = zlib.decompressobj(wbits=31)
        content = unzip.decompress(base64.b64decode(parcel.data, validate=True), MAX_DOCUMENT_BYTES + 1)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise BadInput(f"{where} is damaged: {error}; run the step that wrote it again") from error
    if not unzip.eof:
        raise BadInput(f"{where} is cut short or unpacks to more than {MAX_DOCUMENT_BYTES} bytes; run the step that wrote it again")
    return decode(content, kind, where)
