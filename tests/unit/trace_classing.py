"""The class of the first GPU of a node, for tests: pod A on it unless they say otherwise."""

from typing import Any

from steps.contracts.cluster_facts import PodFacts
from steps.contracts.node_facts import (
    NodeFacts,
)
from steps.contracts.traced import GpuClass, TracedGpu
from steps.trace.node import trace_node
from tests.unit.trace_world import (
    CONTAINER_B,
    NOON,
    POD_B,
    facts,
    gpu,
    listed,
    pod,
    process,
)

A_POD = (pod(),)
BOTH = (pod(), pod(POD_B, (CONTAINER_B,)))


def first(node: NodeFacts, pods: tuple[PodFacts, ...] | None = A_POD) -> TracedGpu:
    return trace_node(node, pods, now=NOON, lists=2).gpus[0]


def headline(node: NodeFacts, pods: tuple[PodFacts, ...] | None = A_POD) -> GpuClass:
    return first(node, pods).headline


def held(used_mib: int = 8100, *, activity: Any = None, figures: Any = None, look: Any = None, **of_process: Any) -> NodeFacts:
    """One listed process of pod A on the first GPU."""
    device = gpu(used_mib=used_mib, processes=(listed(),), activity=activity, figures=figures)
    return facts((device,), (process(**of_process),), **(look or {}))


def found(traced: TracedGpu) -> set[GpuClass]:
    return {finding.gpu_class for finding in traced.findings}
