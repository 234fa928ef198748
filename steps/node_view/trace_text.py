"""The text of `gpu-reclaim trace`: the table, what is on each GPU, warnings, and the answer. Pure."""

from collections.abc import Iterator

from steps.contracts.node_facts import VisibilityLevel
from steps.contracts.traced import GpuClass, TracedGpu
from steps.node_view.picture import PROBLEMS, UNJUDGED, NodePicture, ghost_warning
from steps.node_view.rows import COLUMNS, SHRINKING, WIDE_COLUMNS, narrow_rows, wide_rows
from steps.node_view.words import paragraph, printable, table, why
from steps.trace.memory import mib


def trace_text(picture: NodePicture, *, wide: bool, width: int | None) -> str:
    """Everything, without the answer's own sentences: those tell what exit code comes. width None: as long as it is."""
    header, rows = (WIDE_COLUMNS, wide_rows(picture)) if wide else (COLUMNS, narrow_rows(picture))
    lines = table([header, *rows], width=None if wide else width, may_shrink=SHRINKING)
    lines += ["", *(line for gpu in picture.traced.gpus for line in _gpu(gpu, width))]
    lines += [line for words in warnings(picture) for line in paragraph(words, width=width, first="warning: ", rest="         ")]
    lines += paragraph(f"pod names: {printable(picture.names_from)}", width=width, rest="           ")
    return "\n".join(lines) + "\n"


def _gpu(gpu: TracedGpu, width: int | None) -> Iterator[str]:
    used, total = gpu.used_bytes.known(), gpu.total_bytes.known()
    memory = f"{'unknown' if used is None else mib(used)} of {'unknown' if total is None else mib(total)}"
    head = f"GPU {gpu.index}  {printable(gpu.uuid)}  {memory}  {gpu.headline.value}"
    yield from paragraph(head, width=width, rest="       ")
    if not any(holder.reason == gpu.reason for holder in gpu.holders):
        yield from _detail(gpu.reason, width)
    for holder in gpu.holders:
        yield from _detail(f"PID {holder.pid} ({holder.name}): {holder.gpu_class.value}, {holder.reason}", width)
    said = {holder.reason for holder in gpu.holders}
    for finding in gpu.findings:
        if finding.detail.partition(": ")[2] not in said:
            yield from _detail(f"{finding.gpu_class.value}: {finding.detail}", width)
    if gpu.remedy is not None and (gpu.headline in PROBLEMS or gpu.headline in UNJUDGED or gpu.headline is GpuClass.PHANTOM_UTIL):
        yield from _detail(f"remedy: {gpu.remedy}", width)


def _detail(words: str, width: int | None) -> list[str]:
    return paragraph(printable(words), width=width, first="       ", rest="         ")


def warnings(picture: NodePicture) -> Iterator[str]:
    """Memory without a process, what could not be seen, and records that could not be read."""
    for gpu in picture.traced.gpus:
        ghost = ghost_warning(gpu, picture.facts)
        if ghost is not None:
            yield printable(ghost)
    facts = picture.facts
    if facts.visibility.level is not VisibilityLevel.FULL:
        yield printable(f"visibility is {facts.visibility.level.value}: {'; '.join(facts.visibility.reasons)}")
    if facts.allocations.known() is None:
        yield printable(f"who was given a device is unknown: {why(facts.allocations)}")
