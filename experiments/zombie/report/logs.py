"""The seed's log files, as text, from the recording. Pure. Foreign text is cut to one printable line."""

from collections.abc import Iterator, Sequence
from typing import Final

from experiments.zombie.observation import Observation
from experiments.zombie.recording import Portrait, Repetition
from experiments.zombie.report.portraits import traced
from steps.contracts.document import Sample
from steps.contracts.node_facts import GpuFacts
from steps.contracts.traced import GpuClass, TracedHolder

MIB: Final = 1 << 20
COLUMNS: Final = ("PID", "STATE", "GPU_MEM", "NSMI", "QOS", "POD", "NAMESPACE", "CONTAINER")


def plain(text: str) -> str:
    """Foreign text for a log: what does not print is shown as its code."""
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)


def mib(reading: int | None) -> str:
    return "unknown" if reading is None else f"{reading / MIB:.0f} MiB"


def observation(seen: Observation | None, failure: str | None) -> str:
    """The eight checks, in the seed's order."""
    if seen is None:
        return f"not observed: {plain(failure or 'the scenario did not get that far')}\n"
    return "\n".join([f"observed at {seen.at:%H:%M:%S.%f} UTC, inside the container", *_eight(seen), ""])


def _eight(seen: Observation) -> Iterator[str]:
    yield "1. PID 1"
    yield f"   {plain(seen.pid1.command) or plain(seen.pid1.name) if seen.pid1 else 'unknown: /proc/1 could not be read'}"
    yield "2. process tree (PID PPID STATE COMMAND)"
    yield from (f"   {one.pid:>6} {one.ppid:>6} {one.state}  {plain(one.command or f'[{one.name}]')}" for one in seen.tree)
    yield f"3. zombies: {_numbers(seen.zombies)}"
    yield f"4. orphans (PPID 1; original children of PID 1 look the same): {_numbers(seen.orphans)}"
    yield "5. GPU memory (v1 accounting: with what the driver reserves)"
    yield from (f"   {gpu.uuid}: {mib(gpu.used_bytes)} of {mib(gpu.total_bytes)} used" for gpu in seen.gpus.gpus)
    yield "6. compute processes, as NVML tells a container (PIDs are the host's; an empty list proves nothing here)"
    listed = [f"   {one.pid} on {gpu.uuid}: {mib(one.used_bytes)}" for gpu in seen.gpus.gpus for one in gpu.processes]
    yield from listed or ["   none listed"]
    if seen.gpus.problem:
        yield f"   unknown: {plain(seen.gpus.problem)}"
    yield "7. holders of /dev/nvidia*"
    held = [f"   {one.pid}: {', '.join(one.devices) if one.devices else f'unknown: {one.problem}'}" for one in seen.holders]
    yield from held or ["   none"]
    yield "8. verdict (in NVML / holds a device / alive in /proc)"
    judged = [
        f"   {one.pid}: {_word(one.in_nvml)} / {_word(one.holds_device)} / {_word(one.alive)} (state {one.state or '-'})"
        for one in seen.verdicts
    ]
    yield from judged or ["   no process has anything to do with the GPU"]


def pod_trace(portrait: Portrait | None, repetition: Repetition) -> str:
    """GPU PID -> container -> pod, hidden holders included, and memory without any process as a warning of its own."""
    if portrait is None:
        return "no full look was made in this interval\n"
    node = traced(portrait, repetition.pods)
    rows = [COLUMNS, *(_trace_row(holder) for gpu in node.gpus for holder in gpu.holders)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    if len(rows) == 1:
        lines.append("(no process holds a GPU)")
    lines += [f"WARNING: {words}" for words in _ghosts(portrait, repetition)]
    if node.problem:
        lines.append(f"WARNING: {plain(node.problem)}")
    return "\n".join([f"traced at {portrait.at:%H:%M:%S.%f} UTC on {portrait.facts.node}", *lines, ""])


def _trace_row(holder: TracedHolder) -> tuple[str, ...]:
    return (
        str(holder.pid),
        holder.state,
        mib(holder.gpu_memory_bytes.known()),
        {True: "yes", False: "no", None: "unknown"}[holder.known_to_nvml],
        holder.qos.value,
        plain(holder.pod or holder.pod_uid or "-"),
        plain(holder.namespace or "-"),
        plain(holder.container or "-"),
    )


def _ghosts(portrait: Portrait, repetition: Repetition) -> list[str]:
    ghosts = (GpuClass.GHOST_CONTEXT, GpuClass.STALE_NVML_PID)
    gpus = traced(portrait, repetition.pods).gpus
    return [f"GPU {gpu.index}: memory without any process, {plain(gpu.reason)}" for gpu in gpus if gpu.headline in ghosts]


def smi(portrait: Portrait | None) -> str:
    """The facts that nvidia-smi would show, read through NVML."""
    if portrait is None:
        return "no full look was made in this interval\n"
    facts = portrait.facts
    gpus = facts.gpus.known()
    driver = _said(facts.driver.driver_version)
    lines = [f"{portrait.at:%Y-%m-%d %H:%M:%S} UTC  node {facts.node}  driver {driver}  ({facts.stamp.origin.value})"]
    if gpus is None:
        lines.append(f"unknown: {plain(facts.gpus.reason or facts.gpus.state.value)}")
    for gpu in gpus or ():
        lines += _gpu_lines(gpu)
    return "\n".join([*lines, ""])


def _gpu_lines(gpu: GpuFacts) -> list[str]:
    memory = f"{mib(gpu.memory.used_bytes.known())} / {mib(gpu.memory.total_bytes.known())}"
    utilisation = gpu.activity[-1].utilisation_ratio.known()
    busy = "unknown" if utilisation is None else f"{utilisation:.0%}"
    lines = [
        f"GPU {gpu.index}  {_said(gpu.name)}  {gpu.uuid}",
        f"   memory {memory}   utilisation {busy}   health {gpu.health.value}",
    ]
    processes = gpu.processes.known()
    if processes is None:
        return [*lines, f"   processes unknown: {plain(gpu.processes.reason or gpu.processes.state.value)}"]
    listed = [f"   process {one.pid}   {mib(one.used_memory_bytes.known())}" for one in processes]
    return [*lines, *(listed or ["   no running processes found"])]


def headed(parts: Sequence[tuple[str, str]]) -> str:
    """Several texts in one file, each under its heading."""
    return "\n".join(f"== {heading} ==\n{text}" for heading, text in parts)


def _said(reading: Sample[str]) -> str:
    known = reading.known()
    return "unknown" if known is None else plain(known)


def _numbers(pids: Sequence[int]) -> str:
    return ", ".join(map(str, pids)) or "none"


def _word(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"
