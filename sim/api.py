"""The Kubernetes API of the simulated cluster: the same port as the real transport, over one state file.

The contract suite runs over this and over a real server, and asks both for the behaviours of facts/kubernetes section 1.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from sim.world.controllers import collect_garbage
from sim.world.events import as_core_event
from sim.world.objects import add, change, merged, of_kind, remove
from sim.world.paths import CORE_EVENT, DEPLOYMENT, EVENT, NAMESPACE, POD, REPLICA_SET, Target, target_of
from sim.world.pods import admitted, begin_deletion
from sim.world.selectors import BadSelector, fields_match, labels_match
from sim.world.state import Json, World
from sim.world.store import state_file
from sim.world.validate import first_fault, replica_fault
from steps.adapters.kubernetes.api import Answer
from steps.contracts.errors import OutcomeUnknown

REASONS = {400: "BadRequest", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed", 409: "Conflict", 422: "Invalid"}


class StateFileApi:
    """Implements steps.adapters.kubernetes.api.Api. The world advances by its own clock, not by being read."""

    def __init__(self, path: Path) -> None:
        self._store = state_file(path)

    def get(self, path: str) -> Answer:
        return self._shown("get", path, _get)

    def list(self, path: str, *, field_selector: str = "", label_selector: str = "") -> Answer:
        return self._shown("list", path, lambda world, target: _list(world, target, field_selector, label_selector))

    def create(self, path: str, body: Mapping[str, Any]) -> Answer:
        return self._changed("create", path, lambda world, target: _create(world, target, body))

    def patch(self, path: str, body: Mapping[str, Any]) -> Answer:
        return self._changed("patch", path, lambda world, target: _patch(world, target, body))

    def delete(self, path: str, *, uid: str | None = None, grace_s: int | None = None) -> Answer:
        return self._changed("delete", path, lambda world, target: _delete(world, target, uid, grace_s))

    def text(self, path: str, *, limit_bytes: int) -> tuple[int, str]:
        """Logs of a pod; the end of them where they are longer than the limit."""
        bare = path.split("?", 1)[0]
        world, target = self._store.read(), target_of(bare)
        if refusal := _refusal(world, "get", bare):
            return refusal.status, refusal.words
        if target is None or target.subresource != "log" or target.object_path not in world.objects:
            return 404, f"{bare} not found"
        log = world.logs.get(f"{target.namespace}/{target.name}", "")
        return 200, log.encode()[-limit_bytes:].decode(errors="ignore")

    def _shown(self, verb: str, path: str, handle: Callable[[World, Target], Answer]) -> Answer:
        """What a handler that only looks says; it answers with copies."""
        return _answer(self._store.read(), verb, path, handle)

    def _changed(self, verb: str, path: str, handle: Callable[[World, Target], Answer]) -> Answer:
        with self._store.open() as world:
            return _answer(world, verb, path, handle)


def _answer(world: World, verb: str, path: str, handle: Callable[[World, Target], Answer]) -> Answer:
    target = target_of(path)
    return _refusal(world, verb, path) or (
        handle(world, target) if target else _no(404, "the server could not find the requested resource")
    )


def _refusal(world: World, verb: str, path: str) -> Answer | None:
    for rule in world.forbidden:
        if rule.verb in ("*", verb) and fnmatchcase(path, rule.path):
            return _no(403, f"{path} is forbidden: this account cannot {verb} it")
    return None


def _no(status: int, message: str, reason: str | None = None) -> Answer:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": status}
    return Answer(status=status, body=body | {"reason": reason or REASONS[status]})


def _missing(target: Target) -> Answer:
    return _no(404, f'{target.kind.plural} "{target.name}" not found')


def _get(world: World, target: Target) -> Answer:
    item = world.objects.get(target.object_path)
    if target.name is None or item is None:
        return _missing(target)
    if target.subresource == "scale":
        return Answer(status=200, body=_scale_of(item)) if _has_scale(target) else _missing(target)
    return _missing(target) if target.subresource else Answer(status=200, body=deepcopy(item))


def _list(world: World, target: Target, field_selector: str, label_selector: str) -> Answer:
    """Items come without kind and apiVersion, as a server sends those of its own kinds."""
    if target.name is not None:
        return _no(405, "the server does not allow this method on the requested resource")
    kind = EVENT if target.kind is CORE_EVENT else target.kind
    items = [deepcopy(item) for _, item in of_kind(world, kind, target.namespace)]
    if target.kind is CORE_EVENT:
        items = [as_core_event(item) for item in items]
    try:
        chosen = [item for item in items if fields_match(item, field_selector) and labels_match(item, label_selector)]
    except BadSelector as error:
        return _no(400, str(error))
    for item in chosen:
        del item["kind"], item["apiVersion"]
    metadata = {"resourceVersion": str(world.version)}
    body = {"kind": f"{target.kind.kind}List", "apiVersion": target.kind.api_version, "metadata": metadata, "items": chosen}
    return Answer(status=200, body=body)


def _create(world: World, target: Target, body: Mapping[str, Any]) -> Answer:
    if target.kind is POD and target.subresource == "eviction" and target.object_path in world.objects:
        options = body.get("deleteOptions", {})
        return _delete(world, target, options.get("preconditions", {}).get("uid"), options.get("gracePeriodSeconds"))
    if target.name is not None or (target.kind.namespaced and target.namespace is None):
        return _no(405, "the server does not allow this method on the requested resource")
    if target.namespace is not None and NAMESPACE.path(None, target.namespace) not in world.objects:
        return _no(404, f'namespaces "{target.namespace}" not found')
    if fault := first_fault(target.kind, body) or _contradiction(target, body["metadata"]):
        return _no(*fault)
    name = body["metadata"].get("name")
    if name is not None and target.kind.path(target.namespace, name) in world.objects:
        return _no(409, f'{target.kind.plural} "{name}" already exists', "AlreadyExists")
    stored = admitted(body) if target.kind is POD else body
    return Answer(status=201, body=deepcopy(add(world, target.kind, target.namespace, stored)))


def _contradiction(target: Target, metadata: Mapping[str, Any]) -> tuple[int, str] | None:
    """Raises OutcomeUnknown as the real transport does: a server answers 500 to an object that brings a version (1.34.4)."""
    if metadata.get("resourceVersion"):
        raise OutcomeUnknown(f"HTTP 500: resourceVersion should not be set on objects to be created ({target.kind.plural})")
    if metadata.get("namespace", target.namespace) != target.namespace:
        return 400, "the namespace of the provided object does not match the namespace sent on the request"
    return None


def _patch(world: World, target: Target, body: Mapping[str, Any]) -> Answer:
    """A patch that leaves nonsense is 422 throughout; a body with the same nonsense is 400 where it cannot be read."""
    item = world.objects.get(target.object_path)
    if target.name is None or item is None:
        return _missing(target)
    if stale := _stale(target, item, body.get("metadata", {})):
        return stale
    if target.subresource == "scale" and _has_scale(target):
        return _patch_scale(world, target, item, body)
    if target.subresource is not None:
        return _missing(target)
    changed = merged(item, body)
    for field in ("uid", "name", "namespace", "creationTimestamp", "generation", "resourceVersion"):
        if field in item["metadata"]:
            changed["metadata"][field] = item["metadata"][field]
    changed["apiVersion"], changed["kind"] = item["apiVersion"], item["kind"]
    if fault := first_fault(target.kind, changed):
        return _no(422, fault[1])
    return Answer(status=200, body=deepcopy(change(world, target.object_path, changed)))


def _stale(target: Target, item: Json, metadata: Mapping[str, Any]) -> Answer | None:
    """409 where the version or the uid in the body is another than the object's."""
    for field in ("resourceVersion", "uid"):
        if metadata.get(field) and metadata[field] != item["metadata"][field]:
            words = "the object has been modified; please apply your changes to the latest version and try again"
            return _no(409, f'Operation cannot be fulfilled on {target.kind.plural} "{target.name}": {words}')
    return None


def _patch_scale(world: World, target: Target, item: Json, body: Mapping[str, Any]) -> Answer:
    wanted = body.get("spec", {}).get("replicas", item["spec"].get("replicas", 1))
    if fault := replica_fault(wanted):
        return _no(422, fault[1])
    changed = deepcopy(item)
    changed["spec"]["replicas"] = wanted
    return Answer(status=200, body=_scale_of(change(world, target.object_path, changed)))


def _delete(world: World, target: Target, uid: str | None, grace_s: int | None = None) -> Answer:
    item = world.objects.get(target.object_path)
    if target.name is None or item is None:
        return _missing(target)
    if uid is not None and uid != item["metadata"]["uid"]:
        words = f"the UID in the precondition ({uid}) does not match the UID in record ({item['metadata']['uid']})"
        return _no(409, f'Operation cannot be fulfilled on {target.kind.plural} "{target.name}": Precondition failed: {words}')
    if target.kind is POD:
        return Answer(status=200, body=deepcopy(begin_deletion(world, target.object_path, grace_s)))
    remove(world, target.object_path)
    collect_garbage(world, item["metadata"]["uid"])
    return Answer(status=200, body={"kind": "Status", "apiVersion": "v1", "status": "Success"})


def _has_scale(target: Target) -> bool:
    return target.kind in (DEPLOYMENT, REPLICA_SET) or target.kind.plural == "statefulsets"


def _scale_of(item: Json) -> Json:
    """The /scale view: its version is the parent's, and zero is left out of the JSON (facts/kubernetes 1)."""
    fields = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    replicas, running = item["spec"].get("replicas", 1), item.get("status", {}).get("replicas", 0)
    labels = item["spec"].get("selector", {}).get("matchLabels", {})
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: item["metadata"][field] for field in fields},
        "spec": {"replicas": replicas} if replicas else {},
        "status": ({"replicas": running} if running else {}) | {"selector": selector},
    }
