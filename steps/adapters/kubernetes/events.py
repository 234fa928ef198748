"""Kubernetes Events on the top owner: how an owner who cannot read our namespace learns what happened."""

import hashlib
from typing import Any, Final

from steps.adapters.kubernetes.answers import rejected
from steps.adapters.kubernetes.api import Api
from steps.adapters.kubernetes.fields import path_of
from steps.contracts.cluster_facts import OwnerRef
from steps.contracts.ports import Clock, Rejected

CONTROLLER: Final = "gpu-reclaim.dev/gpu-reclaim"
NOTE_BYTES: Final = 1024
WORD_CHARACTERS: Final = 128
"""Limits of events.k8s.io/v1 (facts/kubernetes section 6)."""


class KubernetesEvents:
    """Fits ports.EventSink. namespace: gpu-reclaim's own, named in the Event as the reporting instance."""

    def __init__(self, api: Api, namespace: str, clock: Clock) -> None:
        self._api: Final = api
        self._instance: Final = f"gpu-reclaim-{namespace}"[:WORD_CHARACTERS]
        self._clock: Final = clock

    def record(self, regarding: OwnerRef, reason: str, action: str, note: str, *, warning: bool = False) -> Rejected | None:
        """Fits the port. An Event that is there already, of the same second, is no error. Raises SourceUnavailable."""
        path = path_of("/apis/events.k8s.io/v1", regarding.namespace, "events")
        answer = self._api.create(path, self._body(regarding, reason, action, note, warning))
        return None if answer.ok or answer.status == 409 else rejected(answer, "create", path)

    def _body(self, regarding: OwnerRef, reason: str, action: str, note: str, warning: bool) -> dict[str, Any]:
        at = self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        mark = hashlib.sha256(f"{regarding.uid} {reason} {at[:19]} {note}".encode()).hexdigest()[:16]
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"gpu-reclaim.{mark}", "namespace": regarding.namespace},
            "eventTime": at,
            "type": "Warning" if warning else "Normal",
            "reason": reason[:WORD_CHARACTERS],
            "action": action[:WORD_CHARACTERS],
            "note": cut(note, NOTE_BYTES),
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance,
            "regarding": {
                "apiVersion": regarding.api_version,
                "kind": regarding.kind,
                "namespace": regarding.namespace,
                "name": regarding.name,
                "uid": regarding.uid,
            },
        }


def cut(text: str, limit_bytes: int) -> str:
    """The text in at most so many bytes of UTF-8, never half a character; an ellipsis says that something is missing."""
    written = text.encode()
    if len(written) <= limit_bytes:
        return text
    return written[: limit_bytes - 3].decode(errors="ignore") + "…"
