"""Whose process it is: cgroup -> container -> pod, checked against what the API knows of that pod.

A cgroup path alone is a claim: a privileged tenant can write another pod's uid into one (facts/gpu-and-linux 2.2). It holds
only if that pod lists the container; otherwise nobody is blamed.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from steps.contracts.cluster_facts import Phase, PodFacts
from steps.contracts.document import Sample
from steps.contracts.node_facts import PodOnDisk
from steps.contracts.traced import Attribution, Qos
from steps.trace.cgroup import CgroupFile, CgroupName, Role, parse_file

ENDED: Final = (Phase.SUCCEEDED, Phase.FAILED)
_STATIC: Final = re.compile("[0-9a-f]{32}")
"""The uid of a static pod in its cgroup: the hash of its manifest (facts 1.5)."""
GONE_LISTS: Final = 2
"""Missing from one list is not yet gone (facts 8, POD_GONE_LIVE)."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a process is. pod_uid: the API's uid if the pod is known, else the cgroup's. gone: why its container or pod no
    longer exists or has ended, in words; None if it lives, or if that cannot be said. once: *gone* rests on what is missing,
    so that the holder must have been seen more than once. one_list: it is missing from one list of the API alone: not yet gone.
    on_disk: what the kubelet's folders know of a pod that the API does not, or was not asked about. unasked: neither API nor
    kubelet has said that pod and container exist, and nobody takes them for existing."""

    attribution: Attribution
    reason: str
    qos: Qos
    pod_uid: str | None = None
    pod: PodFacts | None = None
    container: str | None = None
    gone: str | None = None
    once: bool = False
    one_list: bool = False
    on_disk: PodOnDisk | None = None
    unasked: bool = False

    @property
    def namespace(self) -> str | None:
        """The API's word, else what the kubelet's folders still call it."""
        return self.pod.namespace if self.pod is not None else None if self.on_disk is None else self.on_disk.namespace

    @property
    def name(self) -> str | None:
        return self.pod.name if self.pod is not None else None if self.on_disk is None else self.on_disk.name


class PodIndex:
    """The pods of the API's list by every name a cgroup may use: uid, static pod's hash on this node, container, sandbox."""

    def __init__(
        self,
        pods: Sequence[PodFacts] | None,
        node: str,
        on_disk: Sequence[PodOnDisk] = (),
        *,
        lists: int = 1,
        existing: Collection[str] = (),
    ) -> None:
        """on_disk: what the node's kubelet knows of pods, for those that the API's list does not have. lists: how many of the
        API's, some seconds apart, `pods` puts together. existing: uids that the caller takes for existing pods."""
        self.at_hand = pods is not None
        self.sure = pods is not None and lists >= GONE_LISTS
        self.here = tuple(pod for pod in pods or () if pod.node == node)
        self._on_disk = {_canonical(one.uid): one for one in on_disk}
        self._running = {one_id: one for one in on_disk for one_id in _ids_of(one)}
        self._node = node
        self._existing = frozenset(map(_canonical, existing))
        self._by_uid: dict[str, PodFacts] = {}
        self._by_container: dict[str, PodFacts] = {}
        for pod in pods or ():
            if pod.config_hash is not None and pod.node in (node, None):  # the same hash occurs on several nodes (facts 1.5)
                self._by_uid.setdefault(_canonical(pod.config_hash), pod)
            for container in pod.containers:
                self._by_container.update(dict.fromkeys(container.container_ids, pod))
        self._by_uid.update({_canonical(pod.uid): pod for pod in pods or ()})

    def pod(self, uid: str) -> PodFacts | None:
        return self._by_uid.get(_canonical(uid))

    def on_disk(self, uid: str) -> PodOnDisk | None:
        return self._on_disk.get(_canonical(uid))

    def running(self, one_id: str) -> PodOnDisk | None:
        """The pod for which the runtime runs this container or sandbox, or whose log links name it."""
        return self._running.get(one_id)

    def lives(self, uid: str) -> bool | None:
        """Whether the pod exists and has not ended; None: nobody who was asked knows, or it is missing from one list alone."""
        pod, folder = self.pod(uid), self.on_disk(uid)
        if pod is not None:
            return pod.phase not in ENDED
        if self.at_hand and self.unmirrored(uid):
            return None
        if self.at_hand:
            return False if self.sure or (folder is not None and folder.kept is False) else None
        return None if folder is None else folder.kept

    def unmirrored(self, uid: str) -> bool:
        """A static pod that the kubelet keeps and the API's list has no mirror of. The kubelet runs it by its manifest, with or
        without one (a mirror may be refused, or deleted), so that its absence says nothing."""
        folder = self.on_disk(uid)
        return self.pod(uid) is None and _STATIC.fullmatch(uid) is not None and folder is not None and folder.kept is True

    def taken_for_existing(self, uid: str) -> bool:
        """The caller says so, having asked the API itself."""
        return _canonical(uid) in self._existing

    def pod_of_container(self, container_id: str) -> PodFacts | None:
        return self._by_container.get(container_id)

    def elsewhere(self, pod: PodFacts) -> bool:
        """The API says this pod runs on another node: then no process here can be its."""
        return pod.node is not None and pod.node != self._node


def _ids_of(folder: PodOnDisk) -> tuple[str, ...]:
    return (*folder.sandbox_ids, *(one for container in folder.containers or () for one in container.container_ids))


def _canonical(uid: str) -> str:
    return uid.replace("_", "-").lower()


def attribute(cgroup: Sample[tuple[str, ...]], pods: PodIndex) -> Owner:
    """The owner of a process, by its cgroup lines. Unknown lines attribute nothing."""
    lines = cgroup.known()
    if lines is None:
        return Owner(Attribution.UNKNOWN, f"its cgroup could not be read: {cgroup.reason or cgroup.state.value}", Qos.UNKNOWN)
    read = parse_file(lines)
    name = read.name
    if read.conflict is not None:
        return Owner(Attribution.CONFLICT, f"conflict: {read.conflict}", Qos.UNKNOWN)
    if name.pod_uid is None:
        return _without_pod(read, pods)
    owner = _of_pod(name, name.pod_uid, pods)
    if name.deleted and owner.pod_uid is not None and owner.gone is None:
        return _gone(owner, "its cgroup is deleted")
    return owner


def _gone(owner: Owner, why: str) -> Owner:
    return replace(owner, gone=why)


def _without_pod(read: CgroupFile, pods: PodIndex) -> Owner:  # noqa: PLR0911 - one return a case of facts 1.2, rule 8
    name = read.name
    pod = None if name.container_id is None else pods.pod_of_container(name.container_id)
    if pod is not None and name.container_id is not None:
        if pods.elsewhere(pod):
            return _elsewhere(pod, name.qos)
        return _confirmed(pods, pod, name.container_id, name.qos, "by its container id; the path shows no pod")
    running = None if name.container_id is None else pods.running(name.container_id)
    if running is not None:
        return _of_pod(name, running.uid, pods)
    if name.role is Role.SANDBOX:
        return Owner(Attribution.UNKNOWN, "the cgroup names a sandbox; only the runtime knows its pod", name.qos)
    if name.relative:
        words = "the cgroup path is relative to the reader's own and shows no pod"
        return Owner(Attribution.UNKNOWN, words, name.qos)
    if name.role is Role.CONTAINER:
        return Owner(Attribution.HOST, f"host: a {name.runtime.value} container outside Kubernetes", name.qos)
    if read.host:
        return Owner(Attribution.HOST, "host: its cgroup belongs to no pod", name.qos)
    if read.lost:
        return Owner(Attribution.UNKNOWN, "attribution lost on v1: the cgroup reads / as for every dying process", Qos.UNKNOWN)
    return Owner(Attribution.UNKNOWN, "its cgroup lines name neither pod nor host unit", Qos.UNKNOWN)


def _of_pod(name: CgroupName, uid: str, pods: PodIndex) -> Owner:
    if not pods.at_hand:
        owner = _by_folders(name, uid, pods.on_disk(uid))
        return replace(owner, unasked=False) if pods.taken_for_existing(uid) else owner
    if name.outer_pod_uid is not None and pods.pod(name.outer_pod_uid) is not None:
        words = f"conflict: the cgroup of pod {uid} lies inside that of pod {name.outer_pod_uid}, which no kubelet does"
        return Owner(Attribution.CONFLICT, words, name.qos)
    pod = pods.pod(uid)
    if pod is None:
        return _unknown_to_the_api(name, uid, pods)
    if pods.elsewhere(pod):
        return _elsewhere(pod, name.qos)
    static = ", a static pod joined by its config hash" if _canonical(pod.uid) != _canonical(uid) else ""
    if name.role is not Role.CONTAINER or name.container_id is None:
        words = f"at pod level: the cgroup names the pod's {name.role.value}{static}"
        return _with_end(Owner(Attribution.POD, words, name.qos, pod_uid=pod.uid, pod=pod), None)
    return _confirmed(pods, pod, name.container_id, name.qos, f"by pod and container of its cgroup{static}")


def _unknown_to_the_api(name: CgroupName, uid: str, pods: PodIndex) -> Owner:
    """Gone by two lists, or by one and the kubelet, which has finished with the pod."""
    folder = pods.on_disk(uid)
    if pods.unmirrored(uid):
        words = f"the API has no mirror of static pod {uid}, and the kubelet keeps it: neither says that it is gone"
        return Owner(Attribution.UNKNOWN, words, name.qos, pod_uid=uid, on_disk=folder)
    sure = pods.lives(uid) is False
    kind = Attribution.POD_GONE if sure else Attribution.UNKNOWN
    words = (
        f"pod gone: the API does not know pod {uid} of its cgroup" if sure else f"one list of the API lacks pod {uid} of its cgroup"
    )
    gone = f"the API does not know pod {uid}"
    return Owner(kind, words, name.qos, pod_uid=uid, gone=gone, once=True, one_list=not sure, on_disk=folder)


def _by_folders(name: CgroupName, uid: str, folder: PodOnDisk | None) -> Owner:
    """Without the API: by the kubelet's folders, as far as they can be read. Its own folder of a pod goes when it has finished
    with it; a log link names each container it started."""
    kind = Attribution.CONTAINER if name.role is Role.CONTAINER else Attribution.POD
    if folder is None:
        words = "from the cgroup alone: the API's pod list is not at hand, so neither pod nor container is checked"
        return Owner(kind, words, name.qos, pod_uid=uid, unasked=True)
    if folder.kept is False:
        gone = f"the kubelet has no pod {uid} any more"
        return Owner(Attribution.POD_GONE, f"pod gone: {gone}", name.qos, pod_uid=uid, gone=gone, once=True, on_disk=folder)
    owner = Owner(
        kind, "by its cgroup, named by the kubelet's folders", name.qos, pod_uid=uid, on_disk=folder, unasked=folder.kept is None
    )
    if kind is Attribution.POD or name.container_id is None:
        return owner
    return _by_log_links(owner, name.container_id, folder)


def _by_log_links(owner: Owner, container_id: str, folder: PodOnDisk) -> Owner:
    """A pod of which no container is known at all proves nothing; one that has containers but not this one does."""
    short = container_id[:12]
    if container_id in folder.sandbox_ids:
        return replace(owner, attribution=Attribution.POD, reason="at pod level: the id is that of the pod's sandbox")
    if not folder.containers:
        return replace(owner, reason=f"{owner.reason}; whether it has a container {short} is not checked", unasked=True)
    for container in folder.containers:
        if container_id in container.container_ids:
            found = replace(owner, reason="by its cgroup, named by the kubelet's folders and log links", container=container.name)
            newest = container.container_ids[0] == container_id
            return found if newest else _gone(found, f"its container {short} was replaced by a newer one")
    unlisted = f"conflict: neither kubelet nor runtime knows a container {short} of pod {folder.uid}"
    return Owner(Attribution.CONFLICT, f"{unlisted}, so the cgroup proves nothing (or it is a sandbox's id)", owner.qos)


def _elsewhere(pod: PodFacts, qos: Qos) -> Owner:
    words = f"conflict: its cgroup names pod {pod.uid}, which runs on node {pod.node}"
    return Owner(Attribution.CONFLICT, words, qos)


def _confirmed(pods: PodIndex, pod: PodFacts, container_id: str, qos: Qos, words: str) -> Owner:
    for container in pod.containers:
        if container_id in container.container_ids:
            owner = Owner(Attribution.CONTAINER, words, qos, pod_uid=pod.uid, pod=pod, container=container.name)
            return _with_end(owner, container_id if container.container_ids[0] != container_id else None)
    folder = pods.on_disk(pod.uid)
    if container_id in pod.sandbox_ids or (folder is not None and container_id in folder.sandbox_ids):
        owner = Owner(Attribution.POD, "at pod level: the id is that of the pod's sandbox", qos, pod_uid=pod.uid, pod=pod)
        return _with_end(owner, None)
    short = container_id[:12]
    unlisted = f"conflict: pod {pod.uid} lists no container {short}, so the cgroup proves nothing (or it is a sandbox's id)"
    return Owner(Attribution.CONFLICT, unlisted, qos)


def _with_end(owner: Owner, replaced: str | None) -> Owner:
    """`gone` where the pod has ended, or where the container was replaced (its id is only the last state's)."""
    assert owner.pod is not None
    if owner.pod.phase in ENDED:
        return _gone(owner, f"its pod has ended ({owner.pod.phase.value})")
    if replaced is not None:
        return _gone(owner, f"its container {replaced[:12]} was replaced by a newer one")
    return owner
