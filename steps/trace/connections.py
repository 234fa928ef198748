"""Connections somebody holds into a pod, by the network namespace they were accepted in."""

from collections.abc import Sequence

from steps.contracts.document import Sample
from steps.contracts.node_facts import SocketFacts
from steps.contracts.traced import PodConnections
from steps.trace.attribution import PodIndex
from steps.trace.cgroup import parse_file


def connections_of(sockets: Sample[tuple[SocketFacts, ...]], pods: PodIndex) -> Sample[tuple[PodConnections, ...]]:
    """One entry a pod, by uid. A pod without one had no readable network namespace: its connections are unknown, not none.

    A namespace counts for the pod its cgroup names, container unchecked: the process asked is often the pod's sandbox,
    whose id no container status lists, and a false claim could only add connections, which keeps.
    """
    if sockets.value is None:
        return Sample(value=None, state=sockets.state, source=sockets.source, taken_at=sockets.taken_at, reason=sockets.reason)
    found: dict[str, list[Sample[int]]] = {}
    for namespace in sockets.value:
        uid = _pod_uid(namespace.cgroup, pods)
        if uid is not None:
            found.setdefault(uid, []).append(namespace.established)
    entries = tuple(PodConnections(pod_uid=uid, established=_sum(counts)) for uid, counts in sorted(found.items()))
    return Sample(value=entries, state=sockets.state, source=sockets.source, taken_at=sockets.taken_at, reason=sockets.reason)


def _pod_uid(cgroup: Sequence[str], pods: PodIndex) -> str | None:
    """The API's uid of the pod the lines name; None if they name none, disagree, or the API's list lacks the pod."""
    read = parse_file(cgroup)
    if read.conflict is not None:
        return None
    if read.name.pod_uid is None:
        pod = None if read.name.container_id is None else pods.pod_of_container(read.name.container_id)
    elif not pods.at_hand:
        return read.name.pod_uid
    else:
        pod = pods.pod(read.name.pod_uid)
    return None if pod is None or pods.elsewhere(pod) else pod.uid


def _sum(counts: Sequence[Sample[int]]) -> Sample[int]:
    """Over the pod's namespaces. One connection is one, whatever else is unknown; none needs every count."""
    known = [value for count in counts if (value := count.known()) is not None]
    gap = next((count for count in counts if count.known() is None), None)
    if gap is not None and sum(known) == 0:
        return gap
    return counts[0] if len(counts) == 1 else Sample.measured(sum(known))
