"""What decide remembers between sweeps, one ConfigMap a shard, guarded by its resourceVersion."""

from typing import Final

from steps.adapters.kubernetes.answers import body_of, rejected
from steps.adapters.kubernetes.api import Api
from steps.adapters.kubernetes.documents import config_map, document_in, path_to
from steps.adapters.kubernetes.fields import text_at
from steps.contracts.decision import Memory
from steps.contracts.errors import BadInput
from steps.contracts.ports import Rejected


class ConfigMapMemory:
    """Fits ports.MemoryStore."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api: Final = api
        self._namespace: Final = namespace

    def load(self, shard: int) -> tuple[Memory | None, str]:
        """Fits the port. A memory that cannot be read (of another version, edited) counts as lost, which restarts the idle
        clocks and never advances them; the next save replaces it."""
        path = path_to(self._namespace, _name(shard))
        answer = self._api.get(path)
        if answer.status == 404:
            return None, ""
        raw = body_of(answer, "get", path)
        version = text_at(raw, "metadata", "resourceVersion") or ""
        try:
            return document_in(raw, Memory), version
        except BadInput:
            return None, version

    def save(self, shard: int, memory: Memory, *, if_version: str) -> Rejected | None:
        """Fits the port; one write. CONFLICT: another sweep saved in between."""
        body = config_map(_name(shard), self._namespace, "memory", memory)
        if not if_version:
            path = path_to(self._namespace)
            answer = self._api.create(path, body)
            return None if answer.ok else rejected(answer, "create", path)
        path = path_to(self._namespace, _name(shard))
        guarded = {**body, "metadata": {**body["metadata"], "resourceVersion": if_version}}
        answer = self._api.patch(path, guarded)
        return None if answer.ok else rejected(answer, "patch", path)


def _name(shard: int) -> str:
    return f"gpu-reclaim-memory-{shard}"
