"""Nodes and GPUs of a run as the report shows them. Pure."""

from dataclasses import dataclass

from steps.archive.evidence import RunEvidence
from steps.archive.shown import Shown, as_sentence, gpu_tone, show
from steps.contracts.traced import AllocatedTo, TracedGpu, TracedHolder, TracedNode
from steps.decide.wording import say_bytes, say_ratio


@dataclass(frozen=True, slots=True)
class HolderRow:
    """Columns of the trace: PID STATE GPU_MEM NSMI QOS POD NAMESPACE CONTAINER, and what the process is."""

    pid: int
    state: str
    memory: Shown
    known_to_nvml: str
    qos: str
    pod: str
    namespace: str
    container: str
    name: str
    gpu_class: Shown
    reason: str


@dataclass(frozen=True, slots=True)
class GpuRow:
    """used_percent, explained_percent: widths of the memory bar, None where the memory is unknown."""

    index: int
    uuid: str
    headline: Shown
    reason: str
    remedy: str | None
    findings: tuple[Shown, ...]
    given_to: Shown
    used: Shown
    total: Shown
    unexplained: Shown
    utilisation: Shown
    sm: Shown
    holders: tuple[HolderRow, ...]
    used_percent: float | None


@dataclass(frozen=True, slots=True)
class NodeRow:
    name: str
    problem: str | None
    gpus: tuple[GpuRow, ...]

    @property
    def needs_attention(self) -> bool:
        return self.problem is not None or any(gpu.headline.tone in ("bad", "unknown") for gpu in self.gpus)


def node_rows(evidence: RunEvidence) -> tuple[NodeRow, ...]:
    """All nodes that were asked, those that need somebody's attention first."""
    rows = [_node(node) for shard in evidence.shards if shard.traced is not None for node in shard.traced.nodes]
    return tuple(sorted(rows, key=lambda row: (not row.needs_attention, row.name)))


def gpu_names(evidence: RunEvidence) -> dict[str, str]:
    """`GPU 0 of node-a` by UUID."""
    traced = [shard.traced for shard in evidence.shards if shard.traced is not None]
    return {gpu.uuid: f"GPU {gpu.index} of {node.node}" for one in traced for node in one.nodes for gpu in node.gpus}


def _node(node: TracedNode) -> NodeRow:
    return NodeRow(name=node.node, problem=node.problem, gpus=tuple(_gpu(gpu) for gpu in node.gpus))


def _gpu(gpu: TracedGpu) -> GpuRow:
    used, total = gpu.used_bytes.known(), gpu.total_bytes.known()
    percent = None if used is None or not total else min(100.0, round(used / total * 100, 1))
    return GpuRow(
        index=gpu.index,
        uuid=gpu.uuid,
        headline=Shown(gpu.headline.value, gpu_tone(gpu.headline)),
        reason=as_sentence(gpu.reason),
        remedy=None if gpu.remedy is None else as_sentence(gpu.remedy),
        findings=tuple(Shown(_finding(f.gpu_class.value, f.detail, f.remedy), gpu_tone(f.gpu_class)) for f in gpu.findings),
        given_to=show(gpu.allocated_to, _given_to),
        used=show(gpu.used_bytes, say_bytes),
        total=show(gpu.total_bytes, say_bytes),
        unexplained=show(gpu.unexplained_bytes, say_bytes),
        utilisation=show(gpu.utilisation_ratio, say_ratio),
        sm=show(gpu.sm_active_ratio, say_ratio),
        holders=tuple(holder_row(holder) for holder in gpu.holders),
        used_percent=percent,
    )


def _finding(gpu_class: str, detail: str, remedy: str | None) -> str:
    return f"{gpu_class}: {as_sentence(detail)}" + (f" Remedy: {as_sentence(remedy)}" if remedy else "")


def _given_to(given: tuple[AllocatedTo, ...]) -> str:
    names = [f"{one.namespace}/{one.pod}" if one.pod is not None else f"pod {one.pod_uid} (not in the API)" for one in given]
    return ", ".join(dict.fromkeys(names)) if names else "nobody"


def holder_row(holder: TracedHolder) -> HolderRow:
    return HolderRow(
        pid=holder.pid,
        state=holder.state,
        memory=show(holder.gpu_memory_bytes, say_bytes),
        known_to_nvml={True: "yes", False: "no", None: "unknown"}[holder.known_to_nvml],
        qos=holder.qos.value,
        pod=holder.pod or holder.pod_uid or holder.attribution.value,
        namespace=holder.namespace or "–",
        container=holder.container or "–",
        name=holder.name,
        gpu_class=Shown(holder.gpu_class.value, gpu_tone(holder.gpu_class)),
        reason=holder.reason,
    )
