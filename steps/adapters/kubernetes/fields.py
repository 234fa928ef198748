"""Reading raw Kubernetes JSON: every look says what it expects, and a field of another type reads as missing."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from steps.adapters.kubernetes.api import Json
from steps.contracts.cluster_facts import OwnerRef


def mapping_at(raw: Mapping[str, Any], *path: str) -> Json:
    """The object at the path, empty if there is none."""
    here: Any = raw
    for key in path:
        here = here.get(key) if isinstance(here, dict) else None
    return here if isinstance(here, dict) else {}


def list_at(raw: Mapping[str, Any], *path: str) -> list[Json]:
    """The objects in the list at the path, empty if there is none."""
    found = mapping_at(raw, *path[:-1]).get(path[-1])
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def text_at(raw: Mapping[str, Any], *path: str) -> str | None:
    found = mapping_at(raw, *path[:-1]).get(path[-1])
    return found if isinstance(found, str) else None


def name_of(raw: Mapping[str, Any]) -> str:
    return text_at(raw, "metadata", "name") or ""


def namespace_of(raw: Mapping[str, Any]) -> str:
    return text_at(raw, "metadata", "namespace") or ""


def uid_of(raw: Mapping[str, Any]) -> str:
    return text_at(raw, "metadata", "uid") or ""


def texts_at(raw: Mapping[str, Any], *path: str) -> dict[str, str]:
    """Labels, annotations and the like: the entries whose value is text."""
    return {key: value for key, value in mapping_at(raw, *path).items() if isinstance(value, str)}


def count_at(raw: Mapping[str, Any], *path: str) -> int:
    """A Kubernetes count. The API omits zero from its JSON (facts/kubernetes section 1), so a missing count is zero."""
    found = mapping_at(raw, *path[:-1]).get(path[-1])
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def instant_at(raw: Mapping[str, Any], *path: str) -> datetime | None:
    """An RFC 3339 time, None if there is none or it has no zone."""
    written = text_at(raw, *path)
    if written is None:
        return None
    try:
        instant = datetime.fromisoformat(written)
    except ValueError:
        return None
    return instant if instant.tzinfo is not None else None


def ref_of(raw: Mapping[str, Any], api_version: str, kind: str) -> OwnerRef:
    """The identity of an object; lists omit apiVersion and kind of their items, hence the arguments."""
    return OwnerRef(api_version=api_version, kind=kind, namespace=namespace_of(raw), name=name_of(raw), uid=uid_of(raw))


def path_of(prefix: str, namespace: str | None, plural: str, name: str | None = None, below: str | None = None) -> str:
    """A path of the API, names quoted. prefix: `/api/v1` or `/apis/<group>/<version>`."""
    middle = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    end = f"/{quote(name, safe='')}" if name else ""
    return f"{prefix}{middle}/{plural}{end}{f'/{below}' if below else ''}"
