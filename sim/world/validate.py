"""What a server refuses to store. As much as the project leans on, with the server's own status for each."""

import re
from collections.abc import Mapping
from typing import Any, Final

from sim.world.paths import CONFIG_MAP, DEPLOYMENT, EVENT, REPLICA_SET, Kind

NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
MAX_CONFIG_MAP_BYTES: Final = 1024 * 1024


def first_fault(kind: Kind, body: Mapping[str, Any]) -> tuple[int, str] | None:
    """(400 for what cannot be read or 422 for what is not allowed, the sentence), None if sound."""
    metadata = body.get("metadata")
    if not isinstance(metadata, Mapping):
        return 422, "metadata.name: Required value: name or generateName is required"
    name = metadata.get("name", metadata.get("generateName", ""))
    if not isinstance(name, str) or not name:
        return 422, "metadata.name: Required value: name or generateName is required"
    if "name" in metadata and (len(name) > 253 or NAME.fullmatch(name) is None):
        return 422, f'metadata.name: Invalid value: "{name}": a lowercase RFC 1123 subdomain must consist of lower case letters'
    for field in ("labels", "annotations"):
        if fault := _not_texts(metadata.get(field, {}), f"metadata.{field}"):
            return fault
    special = {CONFIG_MAP: _config_map, DEPLOYMENT: _replicated, REPLICA_SET: _replicated, EVENT: _event}.get(kind)
    return special(body) if special else None


def replica_fault(value: object) -> tuple[int, str] | None:
    """Integer fields are strict: a count as text is refused as unreadable, a negative one as invalid."""
    if isinstance(value, bool) or not isinstance(value, int):
        return 400, f"json: cannot unmarshal {type(value).__name__} into Go struct field .spec.replicas of type int32"
    if value < 0:
        return 422, f"spec.replicas: Invalid value: {value}: must be greater than or equal to 0"
    return None


def _replicated(body: Mapping[str, Any]) -> tuple[int, str] | None:
    spec = body.get("spec")
    if not isinstance(spec, Mapping) or not isinstance(spec.get("template"), Mapping):
        return 422, "spec.template: Required value"
    if fault := replica_fault(spec.get("replicas", 1)):
        return fault
    chosen = spec.get("selector", {}).get("matchLabels", {})
    labels = spec["template"].get("metadata", {}).get("labels", {})
    if not chosen or any(labels.get(key) != value for key, value in chosen.items()):
        return 422, "spec.template.metadata.labels: Invalid value: `selector` does not match template `labels`"
    return None


def _config_map(body: Mapping[str, Any]) -> tuple[int, str] | None:
    data = body.get("data", {})
    if fault := _not_texts(data, "data"):
        return fault
    if sum(len(key) + len(str(value).encode()) for key, value in data.items()) > MAX_CONFIG_MAP_BYTES:
        return 422, f"[]: Too long: may not be more than {MAX_CONFIG_MAP_BYTES} bytes"
    return None


def _event(body: Mapping[str, Any]) -> tuple[int, str] | None:
    """The rules of events.k8s.io/v1 (facts/kubernetes 6)."""
    for field, limit in (("reportingController", 253), ("reportingInstance", 128), ("action", 128), ("reason", 128)):
        value = body.get(field, "")
        if not value or len(value) > limit:
            return 422, f"{field}: {'Required value' if not value else f'Invalid value: can have at most {limit} characters'}"
    if not body.get("eventTime"):
        return 422, "eventTime: Required value"
    if len(body.get("note", "").encode()) > 1024:
        return 422, "note: Invalid value: can have at most 1024 characters"
    if body.get("type") not in ("Normal", "Warning"):
        return 422, f'type: Invalid value: "{body.get("type", "")}"'
    space = body.get("regarding", {}).get("namespace") or "default"
    if body["metadata"].get("namespace", space) != space:
        return 422, "involvedObject.namespace: Invalid value: does not match event.namespace"
    return None


def _not_texts(mapping: object, field: str) -> tuple[int, str] | None:
    if not isinstance(mapping, Mapping) or not all(isinstance(value, str) for value in mapping.values()):
        return 400, f"json: cannot unmarshal into Go struct field .{field} of type map[string]string"
    return None
