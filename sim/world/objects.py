"""Objects of a world: read, add, change, remove, with uid, resourceVersion and generation as a real server keeps them."""

import copy
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sim.world.paths import Kind
from sim.world.state import Json, World, stamp_text

Owned = Mapping[str, Sequence[tuple[str, Json]]]
"""(path, object) of what an owner owns, by the owner's uid."""

SEED: Final = uuid.UUID("6f1d3c1e-52b4-4f5a-9c7e-0d9a4b8f2a10")


def fresh_uid(world: World) -> str:
    """A uid that looks random and is the same in every world built the same way."""
    world.serial += 1
    return str(uuid.uuid5(SEED, str(world.serial)))


def of_kind(world: World, kind: Kind, namespace: str | None = None) -> Iterator[tuple[str, Json]]:
    """(path, object) of all objects of a kind, by path; a snapshot, so that the world may change meanwhile."""
    for path, item in sorted(world.objects.items()):
        if (item["apiVersion"], item["kind"]) != (kind.api_version, kind.kind):
            continue
        if namespace is None or item["metadata"].get("namespace") == namespace:
            yield path, item


def add(world: World, kind: Kind, namespace: str | None, body: Mapping[str, Any]) -> Json:
    """Store a new object; the caller has checked that its name is free and its content is sound."""
    item: Json = copy.deepcopy(dict(body))
    item["apiVersion"], item["kind"] = kind.api_version, kind.kind
    metadata = item.setdefault("metadata", {})
    if namespace is not None:
        metadata["namespace"] = namespace
    metadata["uid"] = fresh_uid(world)
    if "name" not in metadata:
        metadata["name"] = metadata["generateName"] + metadata["uid"].replace("-", "")[:5]
    metadata["creationTimestamp"] = stamp_text(world.now)
    metadata["generation"] = 1
    _bump(world, item)
    world.objects[kind.path(namespace, metadata["name"])] = item
    return item


def change(world: World, path: str, changed: Json) -> Json:
    """Put a changed object back. Without a difference nothing moves; generation moves only with what is spec."""
    before = world.objects[path]
    if changed == before:
        return before
    if changed.get("spec") != before.get("spec") or _moves_by_annotation(before, changed):
        changed["metadata"]["generation"] = before["metadata"]["generation"] + 1
    _bump(world, changed)
    world.objects[path] = changed
    return changed


def remove(world: World, path: str) -> Json:
    """Take an object out, at once; what it owned is the garbage collector's business."""
    gone = world.objects.pop(path)
    world.version += 1
    return gone


def by_owner(world: World) -> Owned:
    """What each owner owns, by path; a snapshot."""
    found: defaultdict[str, list[tuple[str, Json]]] = defaultdict(list)
    for path, item in sorted(world.objects.items()):
        for uid in {ref.get("uid") for ref in item["metadata"].get("ownerReferences", ())}:
            found[uid].append((path, item))
    return found


def owned_by(world: World, uid: str) -> Sequence[tuple[str, Json]]:
    """(path, object) of what names this uid as an owner, by path."""
    return by_owner(world).get(uid, ())


def merged(base: Any, patch: Any) -> Any:
    """JSON merge patch (RFC 7386): null removes, objects merge, everything else replaces."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    result = dict(copy.deepcopy(base)) if isinstance(base, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def _bump(world: World, item: Json) -> None:
    world.version += 1
    item["metadata"]["resourceVersion"] = str(world.version)


def _moves_by_annotation(before: Json, after: Json) -> bool:
    """Annotating a Deployment moves its generation, annotating other kinds does not (measured, facts/kubernetes 1)."""
    same = before["metadata"].get("annotations") == after["metadata"].get("annotations")
    return bool(before["kind"] == "Deployment" and not same)
