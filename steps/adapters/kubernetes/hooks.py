"""The hooks that start workflows, and how long the secrets are that verify their signatures. No secret leaves this module."""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator
from typing import Final

from steps.adapters.kubernetes.api import Api, Json
from steps.adapters.kubernetes.fields import list_at, mapping_at, name_of, path_of, text_at
from steps.contracts.document import Sample
from steps.contracts.installation import Hook

ARGO: Final = "/apis/argoproj.io/v1alpha1"


def hooks(api: Api, namespace: str) -> Sample[tuple[Hook, ...]]:
    """Of every github source of the namespace. A Secret, a key or a reference that is missing counts as no byte; one that may not
    be read makes the whole unknown."""
    sources = api.list(path_of(ARGO, namespace, "eventsources"))
    if sources.status == 404:
        return Sample.measured(())
    if not sources.ok:
        return Sample.error(sources.words)
    found: list[Hook] = []
    for name, reference in _references(list_at(sources.body, "items")):
        answer = api.get(path_of("/api/v1", namespace, "secrets", text_at(reference, "name") or "none"))
        if not answer.ok and answer.status != 404:
            return Sample.error(answer.words)
        written = text_at(answer.body, "data", text_at(reference, "key") or "") if answer.ok else None
        found.append(Hook(source=name, secret_bytes=_length(written)))
    return Sample.measured(tuple(found))


def _references(sources: list[Json]) -> Iterator[tuple[str, Json]]:
    for source in sources:
        for event in mapping_at(source, "spec", "github"):
            yield f"{name_of(source)}/{event}", mapping_at(source, "spec", "github", event, "webhookSecret")


def _length(written: str | None) -> int:
    """Argo Events takes a line feed at the end away."""
    try:
        return len(b64decode(written or "", validate=True).removesuffix(b"\n"))
    except NotBase64:
        return 0
