"""The experiment's sessions over the Kubernetes API: create, look, exec, log, end. One namespace, every deletion by uid."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from experiments.adapters.log_following import FollowedLog
from experiments.zombie.manifest import CONTAINER
from experiments.zombie.ports import Executed, SessionSeen
from experiments.zombie.recording import Ending
from steps.adapters.kubernetes.answers import body_of, rejected
from steps.adapters.kubernetes.api import Answer, Api, Json
from steps.adapters.kubernetes.fields import list_at, mapping_at, path_of, text_at, texts_at
from steps.adapters.kubernetes.pods import pod_facts
from steps.contracts.document import Sample
from steps.contracts.ports import Rejected

CORE: Final = "/api/v1"
APPS: Final = "/apis/apps/v1"
MAX_LOG_BYTES: Final = 64 * 1024


class Exec(Protocol):
    """Runs a command in a container: the one call that is no plain request."""

    def run(self, namespace: str, pod: str, container: str, argv: Sequence[str], timeout_s: float) -> Executed: ...


class KubernetesSessions:
    """Fits ports.Sessions."""

    def __init__(self, api: Api, execute: Exec, namespace: str, *, patient: Api) -> None:
        """patient: waits as long as a session lives for the next piece of an answer."""
        self._api, self._exec, self._namespace, self._patient = api, execute, namespace, patient

    def create(self, manifest: Mapping[str, object]) -> Rejected | None:
        prefix, plural = (CORE, "pods") if manifest["kind"] == "Pod" else (APPS, "deployments")
        path = path_of(prefix, self._namespace, plural)
        return _no(self._api.create(path, manifest), "create", path)

    def pods(self) -> tuple[SessionSeen, ...]:
        path = path_of(CORE, self._namespace, "pods")
        items = list_at(body_of(self._api.list(path), "list", path), "items")
        return tuple(_seen(item) for item in items)

    def pod(self, name: str) -> SessionSeen | None:
        path = path_of(CORE, self._namespace, "pods", name)
        answer = self._api.get(path)
        return None if answer.status == 404 else _seen(body_of(answer, "get", path))

    def execute(self, pod: str, argv: Sequence[str], *, timeout_s: float) -> Executed:
        return self._exec.run(self._namespace, pod, CONTAINER, argv, timeout_s)

    def log(self, pod: str) -> Sample[str]:
        path = path_of(CORE, self._namespace, "pods", pod, f"log?container={CONTAINER}")
        status, text = self._api.text(path, limit_bytes=MAX_LOG_BYTES)
        return Sample.measured(text) if status == 200 else Sample.error(f"HTTP {status}: {text[:200]}")

    def follow_log(self, pod: str) -> FollowedLog:
        path = path_of(CORE, self._namespace, "pods", pod, f"log?container={CONTAINER}&follow=true")
        return FollowedLog(self._patient, path, MAX_LOG_BYTES)

    def end(self, pod: SessionSeen, how: Ending) -> Rejected | None:
        path = path_of(CORE, self._namespace, "pods", pod.facts.name)
        if how is Ending.EVICT:
            body = {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": pod.facts.name, "namespace": self._namespace},
                "deleteOptions": {"preconditions": {"uid": pod.facts.uid}},
            }
            return _no(self._api.create(f"{path}/eviction", body), "evict", path)
        grace_s = 0 if how is Ending.FORCE else None
        return _no(self._api.delete(path, uid=pod.facts.uid, grace_s=grace_s), "delete", path)

    def remove_deployment(self, name: str) -> Rejected | None:
        path = path_of(APPS, self._namespace, "deployments", name)
        return _no(self._api.delete(path), "delete", path)


def _no(answer: Answer, verb: str, path: str) -> Rejected | None:
    return None if answer.ok else rejected(answer, verb, path)


def _seen(raw: Json) -> SessionSeen:
    facts = pod_facts(raw, None)
    status: Json = next((one for one in list_at(raw, "status", "containerStatuses") if one.get("name") == CONTAINER), {})
    controller = next((one for one in list_at(raw, "metadata", "ownerReferences") if one.get("controller")), None)
    return SessionSeen(
        facts=facts,
        started="running" in mapping_at(status, "state"),
        image_id=text_at(status, "imageID"),
        made_by=None if controller is None else f"{controller.get('kind')}/{controller.get('name')}",
        labels=texts_at(raw, "metadata", "labels"),
        problem=_problem(raw, status),
    )


def _problem(raw: Json, status: Mapping[str, Any]) -> str | None:
    """Why it does not run: the kubelet's words, else the scheduler's."""
    waiting = mapping_at(status, "state", "waiting")
    if waiting:
        return f"{waiting.get('reason', 'waiting')}: {waiting.get('message', 'no message')}"
    for condition in list_at(raw, "status", "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return str(condition.get("message", "not scheduled"))
    return None
