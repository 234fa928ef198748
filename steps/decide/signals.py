"""What the facts say about a session: did any of its GPUs work, is anybody connected. Each answer may be unknown.

Used on the sweep's facts by decide and on the capture's by stop: the same code judges both. No clock, no I/O.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from steps.contracts.decision import Evidence, JudgedPod
from steps.contracts.document import Document, Sample, State
from steps.contracts.node_facts import Scan
from steps.contracts.traced import TracedGpu, TracedNode
from steps.decide.gpu_signal import Reading, Sign, read_gpu
from steps.decide.kinds import Signal
from steps.decide.wording import count_of, join_and, say_span, say_unknown

MAX_AGE_S: Final = 600
"""A reading this old says nothing about now (field case D2: newest sample ten minutes old)."""
MAX_AHEAD_S: Final = 60
"""A reading from further in the future than this means that two clocks disagree."""


class Signals(Document, frozen=True, kw_only=True):
    """working: any GPU of any pod did work. present: somebody holds a connection into any pod. True speaks before gaps:
    one busy GPU of eight, or one busy replica of two, is work. Unknown: `reason` says what is missing.

    work_words, presence_words: a clause for a person, for example "its 8 GPUs did nothing". remarks: whole clauses.
    """

    working: Sample[bool]
    present: Sample[bool]
    work_words: str
    presence_words: str
    remarks: tuple[str, ...]
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class _Named:
    """A reading with the thing it is about, in words and by id."""

    name: str
    subject: str
    source: str
    reading: Reading


def read_signals(pods: Sequence[JudgedPod], nodes: Mapping[str, TracedNode], now: datetime | None = None) -> Signals:
    """The signals of a session from its pods and the traced nodes, by node name.

    A pod that has no node yet holds no device and has no connections. A session with devices and no process is idle
    (facts/gpu-and-linux 2.1). now: judges the age of readings that say when they were taken; None: ages are not judged.
    """
    gpus = tuple(_aged(named, now) for pod in pods for named in _gpu_readings(pod, nodes))
    connections = tuple(_aged(_connection(pod, nodes), now) for pod in pods if has_started(pod))
    working, present = _together(gpus), _together(connections)
    return Signals(
        working=working,
        present=present,
        work_words=_work_words(gpus, working),
        presence_words=_presence_words(connections, present),
        remarks=tuple(f"{named.name} {named.reading.remark}" for named in gpus if named.reading.remark),
        evidence=(
            *(_evidence(Signal.GPU_ACTIVITY, named) for named in gpus),
            *(_evidence(Signal.CONNECTIONS, named) for named in connections),
        ),
    )


def has_started(pod: JudgedPod) -> bool:
    """False for a pod that waits for a node: it can hold neither device nor connection."""
    return pod.devices.state is not State.NOT_APPLICABLE


def _gpu_readings(pod: JudgedPod, nodes: Mapping[str, TracedNode]) -> Iterator[_Named]:
    """One reading a device of the pod, or one that says why its devices are not known."""
    if not has_started(pod):
        return
    devices = pod.devices.known()
    if devices is None or pod.node is None:
        unknown = Reading(Sign.UNKNOWN, f"are unknown ({pod.devices.reason or pod.devices.state.value})", pod.devices.state)
        yield _Named(f"the GPUs of pod {pod.name}", pod.uid, f"allocations on {pod.node or 'its node'}", unknown)
        return
    for device in devices:
        yield _device(device, pod.uid, pod.node, nodes.get(pod.node))


def _device(device: str, pod_uid: str, node_name: str, node: TracedNode | None) -> _Named:
    source = f"nvml on {node_name}"
    if node is None or node.problem is not None:
        return _Named(device, device, source, _silent(node_name, node))
    gpu = _find(node, device)
    if gpu is None:
        words = f"is not among the GPUs that {node_name} lists"
        return _Named(device, device, source, Reading(Sign.UNKNOWN, words, State.ABSENT))
    return _Named(f"GPU {gpu.index} of {node_name}", gpu.uuid, source, read_gpu(gpu, pod_uid))


def _find(node: TracedNode, device: str) -> TracedGpu | None:
    """A device id is the GPU's own UUID, or that of a replica of it, which only the allocation ties to the GPU."""
    for gpu in node.gpus:
        given = gpu.allocated_to.known()
        if gpu.uuid == device or (given is not None and any(allocation.device_id == device for allocation in given)):
            return gpu
    return None


def _silent(name: str, node: TracedNode | None) -> Reading:
    why = "was not looked at" if node is None else f"has nothing to say: {node.problem}"
    return Reading(Sign.UNKNOWN, f"is unknown, because node {name} {why}", State.ABSENT)


def _connection(pod: JudgedPod, nodes: Mapping[str, TracedNode]) -> _Named:
    return _Named(f"pod {pod.name}", pod.uid, f"sockets on {pod.node or 'its node'}", _connected(pod, nodes))


def _connected(pod: JudgedPod, nodes: Mapping[str, TracedNode]) -> Reading:
    if pod.node is None:
        return Reading(Sign.UNKNOWN, "runs on a node that was not looked at", State.ABSENT)
    node = nodes.get(pod.node)
    if node is None or node.problem is not None:
        return _silent(pod.node, node)
    if node.scan is Scan.QUICK:
        return Reading(Sign.UNKNOWN, "has unknown connections (a quick scan does not read them)", State.ABSENT)
    return _counted(pod.uid, node)


def _counted(pod_uid: str, node: TracedNode) -> Reading:
    pods = node.connections.known()
    if pods is None:
        return Reading(Sign.UNKNOWN, f"has unknown connections ({say_unknown(node.connections)})", node.connections.state)
    mine = [connections.established for connections in pods if connections.pod_uid == pod_uid]
    if not mine:
        return Reading(Sign.UNKNOWN, "has a network namespace that could not be read", State.ABSENT)
    times = [t for established in mine if (t := established.taken_at or node.connections.taken_at) is not None]
    counts = [established.known() for established in mine]
    open_ones = sum(count for count in counts if count is not None)
    if open_ones > 0:
        return Reading(Sign.LIFE, f"has {count_of(open_ones, 'open connection')}", State.MEASURED, max(times, default=None))
    for established in mine:
        if established.known() is None:
            return Reading(Sign.UNKNOWN, f"has unknown connections ({say_unknown(established)})", established.state)
    return Reading(Sign.NONE, "has no open connection", State.MEASURED, max(times, default=None))


def _aged(named: _Named, now: datetime | None) -> _Named:
    """The same, unless it is too old or from the future: then it is unknown, whatever it said."""
    taken_at = named.reading.taken_at
    if now is None or taken_at is None:
        return named
    age_s = (now - taken_at).total_seconds()
    if -MAX_AHEAD_S <= age_s < MAX_AGE_S:
        return named
    words = (
        f"was last read {say_span(age_s)} ago, which says nothing about now"
        if age_s > 0
        else f"was read {say_span(-age_s)} in the future: the clocks of node and judge disagree"
    )
    return _Named(named.name, named.subject, named.source, Reading(Sign.UNKNOWN, words, State.STALE, taken_at))


def _together(readings: Sequence[_Named]) -> Sample[bool]:
    """Any sign of life is life; else any gap is unknown, with the first gap's words; else there is none."""
    times = [named.reading.taken_at for named in readings if named.reading.taken_at is not None]
    if any(named.reading.sign is Sign.LIFE for named in readings):
        return Sample.measured(True, taken_at=max(times, default=None))
    gaps = [named for named in readings if named.reading.sign is Sign.UNKNOWN]
    if gaps:
        more = f", and {count_of(len(gaps) - 1, 'more gap')}" if len(gaps) > 1 else ""
        reason = f"{gaps[0].name} {gaps[0].reading.words}{more}"
        return Sample(value=None, state=gaps[0].reading.state, source=gaps[0].source, reason=reason)
    return Sample.measured(False, taken_at=min(times, default=None))


def _work_words(gpus: Sequence[_Named], working: Sample[bool]) -> str:
    busy = [named for named in gpus if named.reading.sign is Sign.LIFE]
    if busy:
        first = f"{busy[0].name} shows {busy[0].reading.words}"
        if len(gpus) == 1:
            return f"its GPU worked: {first}"
        how_many = f"all its {len(gpus)}" if len(busy) == len(gpus) else f"{len(busy)} of its {len(gpus)}"
        return f"{how_many} GPUs worked: {first}"
    if working.known() is None:
        return f"whether its GPUs worked is not known: {working.reason}"
    if not gpus:
        return "it holds no GPU"
    return "its GPU did nothing" if len(gpus) == 1 else f"its {len(gpus)} GPUs did nothing"


def _presence_words(connections: Sequence[_Named], present: Sample[bool]) -> str:
    there = [f"{named.name} {named.reading.words}" for named in connections if named.reading.sign is Sign.LIFE]
    if there:
        return f"somebody is connected: {join_and(there)}"
    if present.known() is None:
        return f"whether somebody is connected is not known: {present.reason}"
    return "nobody was connected"


def _evidence(signal: Signal, named: _Named) -> Evidence:
    words = named.reading.remark or named.reading.words
    subject = "" if named.subject in named.name else f" ({named.subject})"
    return Evidence(
        signal=signal.value,
        reading=f"{named.name}{subject}: {words}",
        state=named.reading.state,
        source=named.source,
        taken_at=named.reading.taken_at,
    )
