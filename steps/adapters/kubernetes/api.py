"""The one port to a Kubernetes API: five verbs on paths, raw JSON in and out.

The fake sits here, at the lowest place, so that all code above it is the real code. Answers one must expect (403, 404,
409, 410, 422) are values; no answer raises SourceUnavailable, and OutcomeUnknown where a write may have happened.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

Json = dict[str, Any]
"""A raw Kubernetes object. It ends in the module that reads it: only contracts leave the adapters."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """status: the HTTP status. body: the object, or the Status object that says why not."""

    status: int
    body: Json

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def words(self) -> str:
        """The server's own sentence, if it gave one."""
        return str(self.body.get("message") or f"HTTP {self.status}")


class Api(Protocol):
    """path: as in the URL, e.g. `/apis/apps/v1/namespaces/team/deployments/a/scale`."""

    def get(self, path: str) -> Answer: ...

    def list(self, path: str, *, field_selector: str = "", label_selector: str = "") -> Answer:
        """All items, paged inside (a restarted list drops what it had); `body` is a list object with every item."""

    def create(self, path: str, body: Mapping[str, Any]) -> Answer: ...

    def patch(self, path: str, body: Mapping[str, Any]) -> Answer:
        """JSON merge patch; `metadata.resourceVersion` in the body makes the server refuse a stale one with 409."""

    def delete(self, path: str, *, uid: str | None = None, grace_s: int | None = None) -> Answer:
        """grace_s None: the object's own. 0 removes a pod's object at once, whatever its processes do (a forced delete)."""

    def text(self, path: str, *, limit_bytes: int) -> tuple[int, str]:
        """(status, text) of a path that answers no JSON, such as a pod's log."""
