"""When a node was looked at, by its own facts. Pure."""

from datetime import datetime, timedelta

from steps.contracts.node_facts import NodeFacts


def first_look(facts: NodeFacts) -> datetime:
    """The moment of the first of its looks."""
    return min(_moments(facts), default=facts.stamp.made_at - timedelta(seconds=facts.span_s))


def last_look(facts: NodeFacts) -> datetime:
    """The moment of the last of its looks; what the kubelet has on record was read just after it."""
    return max(_moments(facts), default=facts.stamp.made_at)


def _moments(facts: NodeFacts) -> list[datetime]:
    return [moment.taken_at for gpu in facts.gpus.known() or () for moment in gpu.activity]
