"""Documents kept in ConfigMaps of gpu-reclaim's own namespace: one a ConfigMap, under one key, labelled by what they are."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from steps.adapters.kubernetes.api import Json
from steps.adapters.kubernetes.fields import name_of, namespace_of, path_of, text_at
from steps.contracts.document import Document, decode, encode
from steps.contracts.errors import BadInput, SourceUnavailable

D = TypeVar("D", bound=Document)

KEY: Final = "document.json"
HOLDS: Final = "gpu-reclaim.dev/holds"
LIMIT_BYTES: Final = 1024 * 1024
"""What the API server accepts as the data of one ConfigMap."""


def path_to(namespace: str, name: str | None = None) -> str:
    return path_of("/api/v1", namespace, "configmaps", name)


def config_map(name: str, namespace: str, holds: str, document: Document, **more: Any) -> Mapping[str, Any]:
    """The ConfigMap as a body. Raises SourceUnavailable if the document is too large for one."""
    content = encode(document)
    if len(content) > LIMIT_BYTES:
        raise SourceUnavailable(
            f"{name} cannot be kept: {len(content)} bytes, and a ConfigMap holds {LIMIT_BYTES}; make shard-size smaller"
        )
    labels = {"app.kubernetes.io/part-of": "gpu-reclaim", HOLDS: holds}
    metadata = {"name": name, "namespace": namespace, "labels": labels, **more.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: content.decode()}, **more}


def document_in(raw: Json, kind: type[D]) -> D:
    """The document in a ConfigMap. Raises BadInput that names it."""
    where = f"ConfigMap {namespace_of(raw)}/{name_of(raw)}"
    content = text_at(raw, "data", KEY)
    if content is None:
        raise BadInput(f"{where} has no {KEY}; delete it if nobody else made it, gpu-reclaim writes it again")
    return decode(content, kind, where)
