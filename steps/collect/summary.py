"""The one log line of a look. Pure."""

from steps.contracts.node_facts import NodeFacts


def summary(facts: NodeFacts) -> dict[str, object]:
    """Counts of a look; None where the count is not known."""
    gpus, allocations = facts.gpus.known(), facts.allocations.known()
    return {
        "node": facts.node,
        "looks": facts.samples,
        "span_s": facts.span_s,
        "scan": facts.scan.value,
        "visibility": facts.visibility.level.value,
        "gpus": None if gpus is None else len(gpus),
        "gpus_reason": facts.gpus.reason,
        "allocations": None if allocations is None else len(allocations),
        "processes": len(facts.processes),
        "holders": sum(1 for process in facts.processes if process.holds),
    }
