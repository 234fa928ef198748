"""Whether the capture, taken right before the stop, still says idle and nobody connected. Pure.

Neither resourceVersion nor digest sees a user who merely reconnected, for that changes no object (facts/kubernetes section 1);
so the node is asked once more. What it does not say is no permission.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from steps.contracts.decision import Decision
from steps.contracts.node_facts import NodeFacts, Scan
from steps.contracts.stop_receipt import Refusal
from steps.contracts.traced import TracedNode
from steps.decide.signals import MAX_AGE_S, MAX_AHEAD_S, read_signals
from steps.stop.order import Refused
from steps.trace.node import silent_node, trace_node


def captured(decided: Decision, captures: Iterable[NodeFacts], now: datetime) -> dict[str, TracedNode]:
    """The captured nodes, traced, by name; one whose capture cannot be judged by is silent, with the reason."""
    return {facts.node: _traced(facts, decided, now) for facts in sorted(captures, key=lambda facts: facts.stamp.made_at)}


def _traced(facts: NodeFacts, decided: Decision, now: datetime) -> TracedNode:
    age_s = (now - facts.stamp.made_at).total_seconds()
    if facts.scan is not Scan.FULL:
        return silent_node(facts.node, "its capture is a quick scan, which is never the basis of a stop")
    if facts.stamp.made_at < decided.decided_at:
        return silent_node(facts.node, "its capture is older than the decision")
    if not -MAX_AHEAD_S <= age_s < MAX_AGE_S:
        return silent_node(facts.node, f"its capture was taken {age_s:.0f} s ago, the limit is {MAX_AGE_S} s")
    return trace_node(facts, None, now=now, existing=[pod.uid for pod in decided.pods])


def sign_of_life(decided: Decision, nodes: Mapping[str, TracedNode], now: datetime) -> Refused | None:
    """Life speaks before gaps: work or a connection refuses, and so does whatever is unknown; None: idle and absent."""
    signals = read_signals(decided.pods, nodes, now)
    if signals.working.known():
        return Refused(Refusal.SIGN_OF_LIFE, signals.work_words)
    if signals.present.known():
        return Refused(Refusal.SIGN_OF_LIFE, signals.presence_words)
    if signals.working.known() is None:
        return Refused(Refusal.SIGNAL_UNKNOWN, signals.work_words)
    if signals.present.known() is None:
        return Refused(Refusal.SIGNAL_UNKNOWN, signals.presence_words)
    return None
