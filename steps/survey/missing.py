"""Which pods the node facts name and a list of the API lacks. Pure."""

from collections.abc import Iterator, Sequence

from steps.collect.relevance import pods_in
from steps.contracts.cluster_facts import PodFacts
from steps.contracts.node_facts import NodeFacts
from steps.trace.attribution import PodIndex


def missing_pods(pods: Sequence[PodFacts], facts: Sequence[NodeFacts]) -> tuple[str, ...]:
    """Uids that a process's cgroup, an allocation or a kubelet's folder names and no pod of the list has, each once.

    A static pod counts as listed by its config hash on its own node (facts 1.5).
    """
    found: set[str] = set()
    for node in facts:
        index = PodIndex(pods, node.node)
        found.update(uid for uid in _named(node) if index.pod(uid) is None)
    return tuple(sorted(found))


def together(earlier: Sequence[PodFacts], later: Sequence[PodFacts]) -> tuple[PodFacts, ...]:
    """The pods of both lists; of a pod that is in both the later word counts."""
    listed = {pod.uid for pod in later}
    return (*later, *(pod for pod in earlier if pod.uid not in listed))


def _named(facts: NodeFacts) -> Iterator[str]:
    for process in facts.processes:
        lines = process.cgroup.known()
        yield from pods_in(() if lines is None else lines)
    allocations, folders = facts.allocations.known(), facts.pods_on_disk.known()
    yield from (one.pod_uid for one in (() if allocations is None else allocations))
    yield from (one.uid for one in (() if folders is None else folders))
