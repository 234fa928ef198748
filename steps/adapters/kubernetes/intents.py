"""Intents: the claim before a stop and what restore needs, one ConfigMap an owner uid. Its creation is the claim."""

import builtins
from typing import Final

from steps.adapters.kubernetes.answers import body_of, unavailable
from steps.adapters.kubernetes.api import Api, Json
from steps.adapters.kubernetes.documents import HOLDS, config_map, document_in, path_to
from steps.adapters.kubernetes.fields import list_at, uid_of
from steps.contracts.errors import SourceUnavailable
from steps.contracts.stop_receipt import Intent


class ConfigMapIntents:
    """Fits ports.IntentStore."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api: Final = api
        self._namespace: Final = namespace

    def create(self, intent: Intent) -> Intent | None:
        """Fits the port. Raises OutcomeUnknown after a timeout: load it to see whose it is."""
        body = config_map(_name(intent.owner.uid), self._namespace, "intent", intent)
        path = path_to(self._namespace)
        answer = self._api.create(path, body)
        if answer.ok:
            return None
        if answer.status != 409:
            raise unavailable(answer, "create", path)
        existing = self.load(intent.owner.uid)
        if existing is None:
            raise SourceUnavailable(
                f"the Intent of {intent.owner.kind} {intent.owner.name} vanished while it was claimed; try again"
            )
        return existing

    def load(self, owner_uid: str) -> Intent | None:
        """Fits the port."""
        raw = self._raw(owner_uid)
        return None if raw is None else document_in(raw, Intent)

    def list(self) -> tuple[Intent, ...]:
        """Fits the port; oldest first."""
        path = path_to(self._namespace)
        raws = list_at(body_of(self._api.list(path, label_selector=f"{HOLDS}=intent"), "list", path), "items")
        return tuple(sorted(_intents(raws), key=lambda intent: (intent.stamp.made_at, intent.owner.uid)))

    def delete(self, owner_uid: str, *, decision_id: str) -> None:
        """Fits the port. Guarded by the uid of the ConfigMap that was looked at."""
        raw = self._raw(owner_uid)
        if raw is None or document_in(raw, Intent).decision_id != decision_id:
            return
        path = path_to(self._namespace, _name(owner_uid))
        answer = self._api.delete(path, uid=uid_of(raw))
        if not answer.ok and answer.status not in {404, 409}:
            raise unavailable(answer, "delete", path)

    def _raw(self, owner_uid: str) -> Json | None:
        path = path_to(self._namespace, _name(owner_uid))
        answer = self._api.get(path)
        return None if answer.status == 404 else body_of(answer, "get", path)


def _intents(raws: builtins.list[Json]) -> builtins.list[Intent]:
    return [document_in(raw, Intent) for raw in raws]


def _name(owner_uid: str) -> str:
    return f"gpu-reclaim-intent-{owner_uid}"
