"""The step `trace`: facts of the nodes that answered, ClusterFacts of survey -> Traced, silent nodes named."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from steps.contracts.cluster_facts import ClusterFacts
from steps.contracts.declaration import Inputs
from steps.contracts.document import Stamp
from steps.contracts.errors import BadInput, Exit
from steps.contracts.node_facts import NodeFacts
from steps.contracts.ports import Outside
from steps.contracts.traced import Traced, TracedNode
from steps.logs import log_for
from steps.trace.node import silent_node, trace_node


def run(inputs: Inputs, outside: Outside) -> Exit:
    """Join every node that was asked. Raises BadInput for facts of a node that was not, or of one node twice."""
    asked = inputs.names("nodes")
    answered = by_node(asked, inputs.parcels("facts", NodeFacts), inputs.text("facts"))
    cluster = inputs.document("cluster", ClusterFacts)
    nodes = trace_nodes(asked, answered, cluster, outside.clock.now())
    stamp = Stamp(made_by="trace", made_at=outside.clock.now(), origin=outside.origin)
    inputs.put("traced", Traced(stamp=stamp, nodes=nodes))
    log_for("trace").info(
        "trace.joined",
        nodes=len(nodes),
        silent=[node.node for node in nodes if node.node not in answered],
        gpus=sum(len(node.gpus) for node in nodes),
        holders=sum(len(gpu.holders) for node in nodes for gpu in node.gpus),
        classes=sorted({gpu.headline.value for node in nodes for gpu in node.gpus}),
    )
    return Exit.DONE


def by_node(asked: Sequence[str], facts: Sequence[NodeFacts], where: str) -> dict[str, NodeFacts]:
    """The facts of each node. A stray or doubled node means that outputs of two fan-outs were mixed up: nothing may rest on it."""
    found: dict[str, NodeFacts] = {}
    for one in facts:
        if one.node not in asked:
            raise BadInput(f"{where} holds facts of node {one.node!r}, which --nodes does not name; hand over one sweep's facts")
        if one.node in found:
            raise BadInput(f"{where} holds facts of node {one.node!r} twice; hand over what one fan-out of collect gave")
        found[one.node] = one
    return found


def trace_nodes(
    asked: Sequence[str], answered: Mapping[str, NodeFacts], cluster: ClusterFacts, now: datetime
) -> tuple[TracedNode, ...]:
    """One entry for each node asked, in that order and once; those without facts are silent.

    All pods are handed to every node: a process whose cgroup names another node's pod is a conflict, not a pod that is gone.
    """
    return tuple(
        trace_node(answered[name], cluster.pods, now=now, lists=cluster.pod_lists)
        if name in answered
        else silent_node(name, "the node was asked and handed over no facts: its collect failed, timed out or is pending")
        for name in dict.fromkeys(asked)
    )
