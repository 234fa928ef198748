"""Step `survey`: what the API server says of the shard's nodes, the policy's sessions, and who waits for a GPU. Only reads."""

from typing import Final

from steps.contracts.cluster_facts import ClusterFacts
from steps.contracts.declaration import Inputs
from steps.contracts.document import Stamp
from steps.contracts.errors import Exit
from steps.contracts.files import read_limited
from steps.contracts.ports import Outside
from steps.decide.policy import MAX_POLICY_BYTES, parse_policy
from steps.logs import log_for

MADE_BY: Final = "survey"


def run(inputs: Inputs, outside: Outside) -> Exit:
    """Write ClusterFacts. Waiters are those of all namespaces: whoever waits, waits for the same GPUs.

    Raises BadInput (broken policy, a namespace that does not exist) and SourceUnavailable (API).
    """
    path = inputs.path("policy")
    policy = parse_policy(read_limited(path, MAX_POLICY_BYTES), str(path))
    cluster = outside.cluster()
    nodes = inputs.names("nodes")
    pods = cluster.pods_on(nodes)
    facts = ClusterFacts(
        nodes=nodes,
        pods=pods,
        sessions=cluster.sessions(policy, pods),
        waiters=cluster.waiters(None),
        stamp=Stamp(made_by=MADE_BY, made_at=outside.clock.now(), origin=outside.origin),
    )
    inputs.put("cluster", facts)
    log_for(MADE_BY).info(
        "survey.read",
        nodes=len(nodes),
        pods=len(pods),
        sessions=len(facts.sessions),
        guarded=sum(1 for session in facts.sessions if session.guards),
        waiters=len(facts.waiters),
    )
    return Exit.DONE
