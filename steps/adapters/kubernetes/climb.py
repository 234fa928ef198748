"""From a pod to its top owner: `controller: true` references, by uid, each owner read once.

Acting below the top is undone by the owner, so the climb goes on until there is no controller. It ends early at a kind that
is not built in: what stands above it does not matter, a session of such a kind is never stopped.
"""

from typing import Final

import msgspec

from steps.adapters.kubernetes.answers import unavailable
from steps.adapters.kubernetes.api import Api, Json
from steps.adapters.kubernetes.fields import list_at, namespace_of, path_of, ref_of, text_at, uid_of
from steps.adapters.kubernetes.kinds import known_kind
from steps.contracts.cluster_facts import OwnerRef

MAX_STEPS: Final = 10
"""CronJob, Job, pod are three; a longer chain is a ring."""


class Top(msgspec.Struct, frozen=True, kw_only=True):
    """Where a climb ended. raw: the owner as read, None for a foreign kind and where `lost` says why there is none."""

    owner: OwnerRef
    raw: Json | None
    lost: str | None = None


class Climber:
    """Climbs for as long as one survey lasts; an owner is asked for once, however many pods it has."""

    def __init__(self, api: Api) -> None:
        self._api: Final = api
        self._read: Final[dict[str, Top]] = {}

    def top(self, pod: Json) -> Top:
        """The top owner of a pod; the pod itself if nothing controls it. Raises SourceUnavailable beyond 403 and 404."""
        here = Top(owner=ref_of(pod, "v1", "Pod"), raw=pod)
        for _ in range(MAX_STEPS):
            above = _controller(here.raw, namespace_of(pod)) if here.raw is not None else None
            if above is None:
                return here
            here = self._owner(above)
        return Top(owner=here.owner, raw=None, lost=f"more than {MAX_STEPS} owners stand above the pod")

    def _owner(self, ref: OwnerRef) -> Top:
        if ref.uid not in self._read:
            self._read[ref.uid] = self._ask(ref)
        return self._read[ref.uid]

    def _ask(self, ref: OwnerRef) -> Top:
        kind = known_kind(ref.api_version, ref.kind)
        if kind is None:
            return Top(owner=ref, raw=None)
        path = path_of(kind.prefix, ref.namespace, kind.plural, ref.name)
        answer = self._api.get(path)
        if answer.status in {403, 404}:
            return Top(owner=ref, raw=None, lost=f"{ref.kind} {ref.name} cannot be read: {answer.words}")
        if not answer.ok:
            raise unavailable(answer, "get", path)
        if uid_of(answer.body) != ref.uid:
            return Top(owner=ref, raw=None, lost=f"{ref.kind} {ref.name} is gone; another object bears its name")
        return Top(owner=ref, raw=answer.body)


def _controller(raw: Json, namespace: str) -> OwnerRef | None:
    for reference in list_at(raw, "metadata", "ownerReferences"):
        if reference.get("controller") is True:
            return OwnerRef(
                api_version=text_at(reference, "apiVersion") or "",
                kind=text_at(reference, "kind") or "",
                namespace=namespace,
                name=text_at(reference, "name") or "",
                uid=text_at(reference, "uid") or "",
            )
    return None
