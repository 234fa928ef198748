"""An API server in memory with the rules that the adapters lean on (uid, resourceVersion, 403, 404, 409), and faults on demand.

The contract suite holds the simulated API to a real one; this one is for faults and for kinds that no simulator has.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from steps.adapters.kubernetes.api import Answer, Json
from steps.contracts.errors import OutcomeUnknown, SourceUnavailable

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
WORDS = {403: "is forbidden", 404: "not found", 409: "conflict", 422: "is invalid"}


class Moment(Enum):
    """When a write's answer gets lost: before anything was done, or after."""

    BEFORE = "before"
    AFTER = "after"


class Crash(BaseException):
    """The process dies: nothing of ours catches it."""


@dataclass
class Fault:
    """Speaks for the next call of the verb whose path matches, then is gone. error: raised; status: answered instead.
    skip: matching calls that are let through first."""

    verb: str
    path: str
    error: type[BaseException] | None = None
    status: int | None = None
    moment: Moment = Moment.BEFORE
    times: int = 1
    skip: int = 0


@dataclass
class FakeClock:
    """Fits the Clock protocol; sleeping costs nothing."""

    now_utc: datetime = NOON

    def now(self) -> datetime:
        return self.now_utc

    def sleep(self, seconds: float) -> None:
        self.now_utc += timedelta(seconds=seconds)


@dataclass
class ApiDouble:
    """objects: by path, as `put` laid them. installed: list paths that exist though empty. calls: (verb, path), in order."""

    objects: dict[str, Json] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
    version: int = 100

    def put(self, path: str, body: Mapping[str, Any]) -> Json:
        """Lay an object there as if a controller had: a new version, its own uid unless it has one."""
        self.version += 1
        namespace = re.search(r"/namespaces/([^/]+)/", path)
        uid = self.objects[path]["metadata"]["uid"] if path in self.objects else f"uid-{self.version}"
        metadata = {"name": path.rpartition("/")[2], "uid": uid, "creationTimestamp": "2026-11-30T09:00:00Z"}
        if namespace:
            metadata["namespace"] = namespace[1]
        made = {**deepcopy(dict(body)), "metadata": {**metadata, **body.get("metadata", {}), "resourceVersion": str(self.version)}}
        self.objects[path] = made
        return made

    @property
    def writes(self) -> list[tuple[str, str]]:
        return [call for call in self.calls if call[0] in {"create", "patch", "delete"}]

    def get(self, path: str) -> Answer:
        return self._ask("get", path, lambda: self._found(path, lambda raw: raw))

    def list(self, path: str, *, field_selector: str = "", label_selector: str = "") -> Answer:
        return self._ask("list", path, lambda: self._listed(path, label_selector))

    def create(self, path: str, body: Mapping[str, Any]) -> Answer:
        def effect() -> Answer:
            there = f"{path}/{body['metadata']['name']}"
            if there in self.objects:
                return answer(409)
            return Answer(status=201, body=deepcopy(self.put(there, body)))

        return self._ask("create", path, effect)

    def patch(self, path: str, body: Mapping[str, Any]) -> Answer:
        owner = path.removesuffix("/scale")

        def effect(raw: Json) -> Json:
            wanted = dict(body)
            changed = merged(raw, wanted)
            changed["metadata"] = merged(raw["metadata"], {k: v for k, v in wanted["metadata"].items() if k != "resourceVersion"})
            self.put(owner, changed)
            return self.objects[owner] if owner == path else scale_of(self.objects[owner])

        def guarded() -> Answer:
            raw, version = self.objects.get(owner), body["metadata"].get("resourceVersion")
            if raw is not None and version not in (None, raw["metadata"]["resourceVersion"]):
                return answer(409)
            return self._found(owner, effect)

        return self._ask("patch", path, guarded)

    def delete(self, path: str, *, uid: str | None = None, grace_s: int | None = None) -> Answer:
        def effect() -> Answer:
            raw = self.objects.get(path)
            if raw is not None and uid not in (None, raw["metadata"]["uid"]):
                return answer(409)
            return answer(404) if self.objects.pop(path, None) is None else Answer(status=200, body={})

        return self._ask("delete", path, effect)

    def text(self, path: str, *, limit_bytes: int) -> tuple[int, str]:
        found = self.get(path.partition("?")[0])
        return (200, found.body["text"][:limit_bytes]) if found.ok else (found.status, found.words)

    def _found(self, path: str, read: Any) -> Answer:
        raw = self.objects.get(path)
        return answer(404) if raw is None else Answer(status=200, body=deepcopy(read(raw)))

    def _listed(self, path: str, label_selector: str) -> Answer:
        """All objects below, or of that plural in any namespace; as a real list, without kind and apiVersion."""
        prefix, _, plural = path.rpartition("/")
        pattern = re.compile(f"{re.escape(prefix)}(/namespaces/[^/]+)?/{plural}/[^/]+")
        label, _, value = label_selector.partition("=")
        items = [deepcopy(raw) for there, raw in sorted(self.objects.items()) if pattern.fullmatch(there)]
        for raw in items:
            raw.pop("kind", None)
            raw.pop("apiVersion", None)
        chosen = [raw for raw in items if not label or raw["metadata"].get("labels", {}).get(label) == value]
        return Answer(status=200, body={"items": chosen, "metadata": {}})

    def _ask(self, verb: str, path: str, effect: Any) -> Answer:
        self.calls.append((verb, path))
        fault = next((f for f in self.faults if f.verb in ("*", verb) and re.fullmatch(f.path, path)), None)
        if fault is not None and fault.skip:
            fault.skip -= 1
            fault = None
        if fault is None:
            return effect()  # type: ignore[no-any-return]
        fault.times -= 1
        if not fault.times:
            self.faults.remove(fault)
        if fault.moment is Moment.AFTER:
            effect()
        if fault.error is not None:
            raise fault.error("no answer within 30 s")
        assert fault.status is not None
        return answer(fault.status)


def answer(status: int) -> Answer:
    return Answer(status=status, body={"kind": "Status", "message": WORDS.get(status, f"HTTP {status}"), "code": status})


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> Json:
    """JSON merge patch."""
    result = deepcopy(dict(old))
    for key, value in new.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merged(result[key], value)
        else:
            result[key] = deepcopy(value)
    return result


def scale_of(raw: Json) -> Json:
    """Zero is left out of the JSON (facts/kubernetes section 1)."""
    replicas = raw["spec"]["replicas"]
    return {"kind": "Scale", "metadata": raw["metadata"], "spec": {"replicas": replicas} if replicas else {}}


def forbidden(verb: str, path: str) -> Fault:
    return Fault(verb, path, status=403, times=1000)


def not_installed(path: str) -> Fault:
    return Fault("list", path, status=404, times=1000)


def lost(verb: str, path: str, moment: Moment) -> Fault:
    """The answer does not come; the write happened before or not at all."""
    return Fault(verb, path, error=OutcomeUnknown, moment=moment)


def unreachable(verb: str, path: str) -> Fault:
    return Fault(verb, path, error=SourceUnavailable)
