"""Which full look belongs to which moment, and what the product's own join says of it. Pure."""

from collections.abc import Sequence
from datetime import datetime

from experiments.zombie.recording import Portrait, Repetition, Stretch, WatchRecording, What
from experiments.zombie.watch.cleanliness import FREE
from steps.contracts.cluster_facts import PodFacts
from steps.contracts.traced import TracedGpu, TracedNode
from steps.trace.node import trace_node


def between(watched: WatchRecording, since: datetime | None, until: datetime | None) -> Portrait | None:
    """The last full look in the interval; None if none was made in it, or an end of it is not known."""
    if since is None or until is None:
        return None
    inside = [one for one in watched.portraits if since <= one.at <= until]
    return inside[-1] if inside else None


def at(repetition: Repetition, what: What) -> datetime | None:
    return next((mark.at for mark in repetition.marks if mark.what is what), None)


def worker_alive(repetition: Repetition, watched: WatchRecording) -> Portrait | None:
    """The worker holds its memory and lives."""
    return between(watched, at(repetition, What.SPAWN), at(repetition, What.KILL))


def after_kill(repetition: Repetition, watched: WatchRecording) -> Portrait | None:
    return between(watched, at(repetition, What.KILL), at(repetition, What.RESPAWN))


def before_delete(repetition: Repetition, watched: WatchRecording) -> Portrait | None:
    return between(watched, at(repetition, What.RESPAWN), at(repetition, What.DELETE))


def after_delete(repetition: Repetition, watched: WatchRecording, until: datetime | None) -> Portrait | None:
    """The last one after the session let go of the device, or after its deletion if it never did.

    until: where the next session begins; None: the end of the recording. What let go is seen before the object goes.
    """
    deleted = at(repetition, What.DELETE)
    last = watched.portraits[-1].at if watched.portraits else None
    if deleted is None:
        return None
    let_go = (one.first_at for one in watched.stretches if one.first_at >= deleted and not _holds(one, repetition.pod_uid))
    return between(watched, next(let_go, deleted), until or last)


def _holds(stretch: Stretch, pod_uid: str | None) -> bool:
    return any(one.pod_uid == pod_uid and (one.in_nvml is not False or one.holds is not False) for one in stretch.processes)


def traced(portrait: Portrait, pods: Sequence[PodFacts]) -> TracedNode:
    """With the session's own pods alone: of other pods the experiment knows nothing but their uid."""
    return trace_node(portrait.facts, tuple(pods), now=portrait.at)


def remedies(portrait: Portrait | None, devices: Sequence[str], pods: Sequence[PodFacts]) -> tuple[str, ...]:
    """What could mend what is still on these devices; a person decides."""
    if portrait is None:
        return ()
    gpus: Sequence[TracedGpu] = traced(portrait, pods).gpus
    left = [gpu for gpu in gpus if gpu.uuid in devices and gpu.headline not in FREE]
    return tuple(f"GPU {gpu.index} is {gpu.headline.value}: {gpu.remedy or 'no remedy known'}" for gpu in left)
