"""Step `survey`: what the API server says of the shard's nodes, the policy's sessions, and who waits for a GPU. Only reads."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from steps.contracts.cluster_facts import ClusterFacts, PodFacts
from steps.contracts.declaration import Inputs
from steps.contracts.document import Stamp
from steps.contracts.errors import Exit, SourceUnavailable
from steps.contracts.files import read_limited
from steps.contracts.node_facts import NodeFacts
from steps.contracts.ports import Clock, ClusterReader, Outside
from steps.decide.policy import MAX_POLICY_BYTES, parse_policy
from steps.logs import log_for
from steps.survey.missing import missing_pods, together

MADE_BY: Final = "survey"
SECOND_LIST_AFTER_S: Final = 5.0
"""A status lags the runtime by seconds (facts 2); the judge's pod has 300 s in all."""


class Pods(NamedTuple):
    """lists: how many of them `pods` puts together. missing: uids that the node facts name and none of the lists has."""

    pods: tuple[PodFacts, ...]
    lists: int
    missing: tuple[str, ...]


def run(inputs: Inputs, outside: Outside) -> Exit:
    """Write ClusterFacts. Waiters are those of all namespaces: whoever waits, waits for the same GPUs.

    A namespace of the policy that does not exist is named in them and stops nobody else's judgement. Raises BadInput (broken
    policy) and SourceUnavailable (API).
    """
    path = inputs.path("policy")
    policy = parse_policy(read_limited(path, MAX_POLICY_BYTES), str(path))
    cluster = outside.cluster()
    nodes = inputs.names("nodes")
    pods, lists, missing = pods_of(nodes, inputs.parcels("facts", NodeFacts), cluster, outside.clock)
    facts = ClusterFacts(
        nodes=nodes,
        pods=pods,
        sessions=cluster.sessions(policy, pods),
        waiters=cluster.waiters(None),
        pod_lists=lists,
        absent_namespaces=cluster.absent_namespaces(policy),
        stamp=Stamp(made_by=MADE_BY, made_at=outside.clock.now(), origin=outside.origin),
    )
    inputs.put("cluster", facts)
    if facts.absent_namespaces:
        log_for(MADE_BY).warning("survey.namespaces_absent", namespaces=facts.absent_namespaces)
    log_for(MADE_BY).info(
        "survey.read",
        nodes=len(nodes),
        pods=len(pods),
        lists=lists,
        missing=missing,
        sessions=len(facts.sessions),
        guarded=sum(1 for session in facts.sessions if session.guards),
        waiters=len(facts.waiters),
    )
    return Exit.DONE


def pods_of(nodes: tuple[str, ...], facts: Sequence[NodeFacts], cluster: ClusterReader, clock: Clock) -> Pods:
    """The pods of the nodes: by one list, and by a second one some seconds later if the first lacks a pod that the node facts
    name, because missing once is not yet gone. If that second list fails, one list has spoken. Raises SourceUnavailable."""
    first = cluster.pods_on(nodes)
    missing = missing_pods(first, facts)
    if not missing:
        return Pods(first, 1, ())
    clock.sleep(SECOND_LIST_AFTER_S)
    try:
        both = together(first, cluster.pods_on(nodes))
    except SourceUnavailable as error:
        log_for(MADE_BY).warning("survey.second_list_failed", reason=str(error), missing=missing)
        return Pods(first, 1, missing)
    return Pods(both, 2, missing_pods(both, facts))
