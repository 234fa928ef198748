"""Who got a GPU after it came back, or that it is free and not taken, in the scheduler's words. Pure.

Where verify saw a new tenant on the device, that is proof. Else the API is asked; it knows which pods came to the node and
how many GPUs they asked for, not which device each was given. If the device was the node's only free one that settles it,
else the sentence says that it is open.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from steps.archive.evidence import SessionEvidence
from steps.contracts.cluster_facts import Phase, PodFacts, Waiter
from steps.contracts.release import DeviceRelease, ReleaseVerdict
from steps.contracts.run_record import HandOver
from steps.contracts.traced import Traced, TracedGpu
from steps.decide.wording import count_of, say_span

BACK: Final = frozenset({ReleaseVerdict.RETURNED, ReleaseVerdict.TAKEN_OVER})
"""Verdicts under which somebody else may have the device."""


@dataclass(frozen=True, slots=True)
class Freed:
    """A device that came back, and when its session was stopped."""

    node: str
    device: DeviceRelease
    stopped_at: datetime | None


def freed_of(sessions: Iterable[SessionEvidence]) -> tuple[Freed, ...]:
    """The devices that came back after a stop that acted."""
    return tuple(
        Freed(release.node, device, session.receipt.acted_at)
        for session in sessions
        if session.receipt is not None and session.receipt.acted
        for release in session.releases
        for device in release.devices
        if device.verdict in BACK
    )


def only_free_of(freed: Sequence[Freed], traced: Iterable[Traced]) -> frozenset[str]:
    """The freed devices that were their node's only free one: every other GPU there was given to a pod that the API knows."""
    gpus = {node.node: node.gpus for one in traced for node in one.nodes}
    alone = [one for one in freed if sum(other.node == one.node for other in freed) == 1 and one.node in gpus]
    return frozenset(
        one.device.device for one in alone if all(gpu.uuid == one.device.device or _is_taken(gpu) for gpu in gpus[one.node])
    )


def hand_overs_of(
    freed: Sequence[Freed],
    pods: Sequence[PodFacts],
    waiters: Sequence[Waiter],
    own: frozenset[str],
    only_free: frozenset[str] = frozenset(),
) -> tuple[HandOver, ...]:
    """One answer a device. pods: all pods of the nodes. own: uids of the stopped sessions' pods, which take nothing over.
    only_free: devices of which a newcomer with a GPU must have got just that one."""
    by_uid = {pod.uid: pod for pod in pods}
    proven = {one.device.taken_over_by for one in freed if one.device.taken_over_by is not None}
    newcomers = [pod for pod in pods if pod.uid not in own and pod.uid not in proven]
    seats = _Seats(newcomers)
    found = []
    for one in freed:
        taker = one.device.taken_over_by
        if taker is not None:
            found.append(_proven(one, taker, by_uid.get(taker)))
            continue
        pod = seats.take(one)
        found.append(_free(one, waiters) if pod is None else _placed(one, pod, one.device.device in only_free))
    return tuple(found)


def is_settled(hand_overs: Iterable[HandOver], waiters: Sequence[Waiter]) -> bool:
    """Whether looking again would tell nothing new: every taker runs, and no free device has somebody waiting."""
    return all(one.running_at is not None if one.pod_uid is not None else not waiters for one in hand_overs)


class _Seats:
    """The GPUs that newcomers asked for, each given to one freed device at most."""

    def __init__(self, newcomers: Iterable[PodFacts]) -> None:
        ordered = sorted(newcomers, key=lambda pod: (pod.created_at, pod.uid))
        self._left: Final = [(pod, pod.gpus_requested) for pod in ordered if pod.phase in (Phase.PENDING, Phase.RUNNING)]

    def take(self, freed: Freed) -> PodFacts | None:
        for position, (pod, left) in enumerate(self._left):
            if left > 0 and pod.node == freed.node and _came_after(pod, freed.stopped_at):
                self._left[position] = (pod, left - 1)
                return pod
        return None


def _is_taken(gpu: TracedGpu) -> bool:
    """Given to a pod that the API knows. Not known to whom: perhaps to nobody, so it may have been free."""
    given = gpu.allocated_to.known()
    return given is not None and any(one.pod is not None for one in given)


def _came_after(pod: PodFacts, stopped_at: datetime | None) -> bool:
    return stopped_at is not None and (pod.started_at is None or pod.started_at >= stopped_at.replace(microsecond=0))


def _proven(freed: Freed, uid: str, pod: PodFacts | None) -> HandOver:
    if pod is None:
        return _hand_over(freed, uid, None, f"a process or allocation of pod {uid} is on it; the API does not list that pod")
    return _hand_over(freed, uid, pod, f"pod {pod.namespace}/{pod.name} has it{_after(freed, pod)}, seen on the node")


def _placed(freed: Freed, pod: PodFacts, only_free: bool) -> HandOver:
    if only_free:
        words = f"pod {pod.namespace}/{pod.name} has it{_after(freed, pod)}: no other GPU of {freed.node} was free"
        return _hand_over(freed, pod.uid, pod, words)
    asked = count_of(pod.gpus_requested, "GPU")
    words = f"pod {pod.namespace}/{pod.name} came to {freed.node} and asked for {asked}{_after(freed, pod)}"
    return _hand_over(freed, pod.uid, pod, f"{words}; which device it was given, the API does not say")


def _free(freed: Freed, waiters: Sequence[Waiter]) -> HandOver:
    if not waiters:
        return _hand_over(freed, None, None, "free; no pod waits for a GPU")
    first = waiters[0]
    said = first.message.known()
    words = f": {said}" if said else f" (the scheduler's words are unknown: {first.message.reason})"
    who = f"{count_of(len(waiters), 'pod')} still waiting, first {first.namespace}/{first.name}{words}"
    return _hand_over(freed, None, None, f"free, not taken; {who}")


def _after(freed: Freed, pod: PodFacts) -> str:
    seconds = _after_stop_s(freed, pod)
    if seconds is None:
        return ", not running yet"
    return f", running {say_span(seconds)} after the stop"


def _after_stop_s(freed: Freed, pod: PodFacts | None) -> float | None:
    """Never negative: the kubelet's start time has whole seconds."""
    running_at = _running_at(pod)
    if running_at is None or freed.stopped_at is None:
        return None
    return max(0.0, (running_at - freed.stopped_at).total_seconds())


def _running_at(pod: PodFacts | None) -> datetime | None:
    return pod.started_at if pod is not None and pod.phase is Phase.RUNNING else None


def _hand_over(freed: Freed, uid: str | None, pod: PodFacts | None, sentence: str) -> HandOver:
    return HandOver(
        device=freed.device.device,
        node=freed.node,
        pod_uid=uid,
        pod=pod.name if pod is not None else None,
        namespace=pod.namespace if pod is not None else None,
        running_at=_running_at(pod),
        after_stop_s=_after_stop_s(freed, pod),
        sentence=sentence,
    )


def nodes_of(freed: Iterable[Freed]) -> Iterator[str]:
    """The nodes to ask about, each once."""
    yield from sorted({one.node for one in freed})
