"""The objects that can guard a session, listed once a namespace.

A list that may not be read (403) is a guard by itself. A list that is not there (404) means that the API is not installed.
"""

from typing import Final

import msgspec

from steps.adapters.kubernetes.answers import unavailable
from steps.adapters.kubernetes.api import Answer, Api, Json
from steps.adapters.kubernetes.fields import list_at, path_of

AUTOSCALERS: Final = ("/apis/autoscaling/v2", "horizontalpodautoscalers")
SCALED_OBJECTS: Final = ("/apis/keda.sh/v1alpha1", "scaledobjects")
BUDGETS: Final = ("/apis/policy/v1", "poddisruptionbudgets")
PODS: Final = ("/api/v1", "pods")
APPLICATIONS: Final = ("/apis/argoproj.io/v1alpha1", "applications")


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """items: empty if installed is False or `refused` says why the list may not be read."""

    items: tuple[Json, ...]
    installed: bool = True
    refused: str | None = None


class GuardLists:
    """Asked for once and kept: for one survey, or for one look of a stop, never longer."""

    def __init__(self, api: Api) -> None:
        self._api: Final = api
        self._kept: Final[dict[str, Listed]] = {}
        self._namespaces: Final[dict[str, Answer]] = {}

    def of(self, kind: tuple[str, str], namespace: str | None) -> Listed:
        """All objects of a kind in a namespace (None: in all). Raises SourceUnavailable beyond 403 and 404."""
        path = path_of(kind[0], namespace, kind[1])
        if path not in self._kept:
            self._kept[path] = _listed(self._api.list(path), path)
        return self._kept[path]

    def namespace(self, name: str) -> Answer:
        """The namespace object, or the answer that says why not."""
        if name not in self._namespaces:
            self._namespaces[name] = self._api.get(path_of("/api/v1", None, "namespaces", name))
        return self._namespaces[name]


def _listed(answer: Answer, path: str) -> Listed:
    if answer.status == 404:
        return Listed(items=(), installed=False)
    if answer.status == 403:
        return Listed(items=(), refused=answer.words)
    if not answer.ok:
        raise unavailable(answer, "list", path)
    return Listed(items=tuple(list_at(answer.body, "items")))
