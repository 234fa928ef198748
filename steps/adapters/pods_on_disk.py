"""Pods as the kubelet's folders know them: names for uids that the API server may have forgotten (facts/gpu-and-linux 2).

Three folders, each optional, and the runtime's bundles where they can be read, else its shims. Logs (`<namespace>_<name>_<uid>/`)
keep a pod's name until the kubelet's garbage collection, log links keep its container ids, and the pod's own folder goes when the
kubelet has done with the pod. Of folders and links only the names are read: no file of a pod is opened.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from steps.adapters.bundles import Bundles, RunningContainer
from steps.adapters.shims import Shims
from steps.contracts.cluster_facts import ContainerFacts
from steps.contracts.document import Sample
from steps.contracts.node_facts import PodOnDisk

LOGS: Final = Path("/var/log/pods")
LINKS: Final = Path("/var/log/containers")
PODS: Final = Path("/var/lib/kubelet/pods")
_LINK: Final = re.compile(r"(?P<pod>[^_]+)_(?P<namespace>[^_]+)_(?P<container>[^_]+)-(?P<id>[0-9a-f]{64})\.log")


class _Name(NamedTuple):
    namespace: str
    name: str


class _Links(NamedTuple):
    """uid -> container -> (restart count, id) of every link to a log of that pod."""

    by_uid: Mapping[str, Mapping[str, list[tuple[int, str]]]]


class PodFolders:
    """PodFolderReader over the folders of this machine's kubelet and containerd."""

    def __init__(
        self,
        logs: Path = LOGS,
        links: Path = LINKS,
        pods: Path = PODS,
        bundles: Bundles | None = None,
        shims: Shims | None = None,
    ) -> None:
        self._logs, self._links, self._pods = logs, links, pods
        self._bundles = Bundles() if bundles is None else bundles
        self._shims = Shims() if shims is None else shims

    def read(self, uids: Collection[str], containers: Collection[str], pids: Collection[int]) -> Sample[tuple[PodOnDisk, ...]]:
        """What is known of these pods and of the pods of these running containers, by uid.

        Absent where neither logs nor pods of a kubelet are here. A uid without any trace has an entry only if the pods' own
        folders can be listed: then the kubelet does not have it. None at all is no answer: a kubelet has pods of its own, and one
        with another root folder leaves this one empty.
        """
        names, kept = _listed(self._logs), _listed(self._pods) or None
        if names is None and kept is None:
            return Sample.absent(f"neither {self._logs} nor {self._pods} can be listed: no kubelet here, or not mounted")
        running = self._running(containers, pids)
        by_uid = {one.pod_uid: _Name(one.namespace, one.pod) for one in running if one.namespace and one.pod}
        by_uid.update(_names(names or ()))
        wanted = {*uids, *(one.pod_uid for one in running)}
        links = self._links_of({by_uid[uid] for uid in wanted if uid in by_uid})
        found = (
            PodOnDisk(
                uid=uid,
                namespace=by_uid[uid].namespace if uid in by_uid else None,
                name=by_uid[uid].name if uid in by_uid else None,
                kept=None if kept is None else uid in kept,
                containers=_containers(links, uid, [one for one in running if one.pod_uid == uid and one.container is not None]),
                sandbox_ids=tuple(one.id for one in running if one.pod_uid == uid and one.container is None),
            )
            for uid in sorted(wanted)
            if uid in by_uid or kept is not None
        )
        shims = running if self._bundles.there is None and running else None
        looked = (
            (self._logs, names),
            (self._links, links),
            (self._pods, kept),
            (self._bundles.there, self._bundles.there),
            ("the runtime's shims", shims),
        )
        sources = [str(place) for place, there in looked if there is not None]
        return Sample.measured(tuple(found), ", ".join(sources))

    def _running(self, containers: Collection[str], pids: Collection[int]) -> tuple[RunningContainer, ...]:
        """By the bundles; where their folder is not here by the shims, which tell sandboxes alone."""
        return self._bundles.running(containers) if self._bundles.there is not None else self._shims.sandboxes(pids)

    def _links_of(self, pods: Collection[_Name]) -> _Links | None:
        """Of these pods alone: a node has thousands of links. A link's target tells pods of one name apart by their uid."""
        listed = _listed(self._links)
        if listed is None:
            return None
        by_uid: dict[str, dict[str, list[tuple[int, str]]]] = {}
        for entry in listed:
            match = _LINK.fullmatch(entry)
            if match is None or _Name(match["namespace"], match["pod"]) not in pods:
                continue
            try:
                target = (self._links / entry).readlink()
            except OSError:
                continue
            uid, restarts = target.parent.parent.name.rpartition("_")[2], target.stem
            if restarts.isdecimal():
                by_uid.setdefault(uid, {}).setdefault(match["container"], []).append((int(restarts), match["id"]))
        return _Links(by_uid)


def _listed(folder: Path) -> frozenset[str] | None:
    """Names in a folder; None if it is not there or may not be listed."""
    try:
        return frozenset(path.name for path in folder.iterdir())
    except OSError:
        return None


def _names(folders: Collection[str]) -> Iterator[tuple[str, _Name]]:
    """Neither namespace nor name can hold an underscore; anything else in the folder is not the kubelet's."""
    for folder in folders:
        parts = folder.split("_")
        if len(parts) == 3:
            yield parts[2], _Name(parts[0], parts[1])


def _containers(links: _Links | None, uid: str, running: Sequence[RunningContainer]) -> tuple[ContainerFacts, ...] | None:
    """Newest id first: what runs, then what the kubelet counted in the name of the log. None: neither source speaks."""
    if links is None and not running:
        return None
    by_name: dict[str, list[str]] = {}
    for one in running:
        by_name.setdefault(str(one.container), []).append(one.id)
    for name, ids in ({} if links is None else links.by_uid.get(uid, {})).items():
        known = by_name.setdefault(name, [])
        known.extend(container for _, container in sorted(ids, reverse=True) if container not in known)
    return tuple(ContainerFacts(name=name, container_ids=tuple(ids)) for name, ids in sorted(by_name.items()))
