"""Whether a node's GPUs are free before anything begins. Pure: the product's own join says what is on them."""

from datetime import datetime
from typing import Final

from steps.contracts.node_facts import NodeFacts, VisibilityLevel
from steps.contracts.traced import GpuClass, TracedHolder
from steps.trace.node import trace_node

FREE: Final = (GpuClass.BASELINE, GpuClass.PHANTOM_UTIL, GpuClass.ZOMBIE_BENIGN, GpuClass.SYSTEM_HOLDER)

SHOWN: Final = 3
"""Holders that a sentence names."""


def cleanliness(facts: NodeFacts, now: datetime) -> tuple[bool, str]:
    """(clean, a sentence). What cannot be seen is not clean."""
    traced = trace_node(facts, None, now=now)
    if traced.problem is not None or not traced.gpus:
        return False, traced.problem or "NVML lists no GPU on this node"
    if facts.visibility.level is VisibilityLevel.BLIND:
        return False, f"the node's processes cannot be seen: {'; '.join(facts.visibility.reasons)}"
    dirty = [gpu for gpu in traced.gpus if gpu.headline not in FREE]
    if not dirty:
        return True, f"{len(traced.gpus)} GPU(s) at their baseline, no process on any of them"
    first = dirty[0]
    held_by = f"; held by {', '.join(_named(one) for one in first.holders[:SHOWN])}" if first.holders else ""
    return False, f"GPU {first.index} is {first.headline.value}: {first.reason}{held_by}"


def _named(holder: TracedHolder) -> str:
    pod = holder.pod or holder.pod_uid
    return f"{holder.name} (PID {holder.pid}{f' of pod {pod}' if pod else ', of no pod'})"
