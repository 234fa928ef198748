"""Questions to a recording: where a process was, how much memory a session's device held, and when. Pure.

Every answer is an interval between two looks, or unknown; a moment nobody looked at is not filled in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from experiments.zombie.recording import Mark, Repetition, Stretch, WatchedProcess, WatchRecording, What
from experiments.zombie.results import Interval
from experiments.zombie.watch.history import ALLOWANCE_BYTES

PAUSE: Final = "pause"


@dataclass(frozen=True)
class Track:
    """One repetition's part of the recording. stretches: from its creation to the next one's, or to the end."""

    repetition: Repetition
    stretches: tuple[Stretch, ...]
    devices: tuple[str, ...]

    def moment(self, what: What) -> datetime | None:
        """When drive noted it, the first time."""
        return next((mark.at for mark in self.repetition.marks if mark.what is what), None)

    def mark(self, what: What) -> Mark | None:
        return next((mark for mark in self.repetition.marks if mark.what is what), None)

    def worker(self, pid_in_container: int | None) -> WatchedProcess | None:
        """The session's process with this number inside its container, as first seen."""
        if pid_in_container is None:
            return None
        return next((one for s in self.stretches for one in self.own(s) if one.pid_in_container == pid_in_container), None)

    def own(self, stretch: Stretch) -> list[WatchedProcess]:
        """The processes of the session's container. The sandbox has a PID 1 of its own, in the same pod under another id."""
        mine = [one for one in stretch.processes if one.pod_uid == self.repetition.pod_uid]
        ids = {known for pod in self.repetition.pods for container in pod.containers for known in container.container_ids}
        return [one for one in mine if (one.container_id in ids if ids else one.name != PAUSE)]

    def between(self, since: datetime | None, until: datetime | None) -> list[Stretch]:
        """Stretches that reach into the interval; one that begins with its end belongs to what comes after."""
        return [
            one for one in self.stretches if (since is None or one.last_at >= since) and (until is None or one.first_at < until)
        ]

    def used(self, stretch: Stretch) -> int | None:
        """Used memory of the session's devices, in bytes; None as soon as one of them is unknown."""
        readings = [gpu.used_bytes.known() for gpu in stretch.gpus if gpu.uuid in self.devices]
        known = [one for one in readings if one is not None]
        return sum(known) if readings and len(known) == len(readings) else None

    @property
    def baseline(self) -> int | None:
        """Used memory right before the worker was started: the last look before it."""
        spawned = self.moment(What.SPAWN)
        before = [one for one in self.stretches if spawned is not None and one.first_at < spawned]
        known = [used for one in before if (used := self.used(one)) is not None]
        return min(known) if known else None

    def is_free(self, stretch: Stretch) -> bool | None:
        used, baseline = self.used(stretch), self.baseline
        return None if used is None or baseline is None else used <= baseline + ALLOWANCE_BYTES

    def first(self, since: datetime | None, until: datetime | None, holds: Callable[[Stretch], bool | None]) -> Interval | None:
        """When it came to hold for good, up to `until`, in seconds after `since`: not yet at the last look without it."""
        if since is None:
            return None
        later = self.between(since, until)
        without = [number for number, one in enumerate(later) if holds(one) is not True]
        place = without[-1] + 1 if without else 0
        if place >= len(later):
            return None
        before = later[place - 1].last_at if place else since
        by = later[place].first_at if place else max(since, later[0].first_at)
        return Interval(after_s=_after(before, since), by_s=_after(by, since))


def tracks(repetitions: Sequence[Repetition], watched: WatchRecording) -> tuple[Track, ...]:
    """The recording, cut where the sessions begin."""
    begins = [_began(one) for one in repetitions]
    found = []
    for place, repetition in enumerate(repetitions):
        since = begins[place]
        until = next((one for one in begins[place + 1 :] if one is not None), None)
        mine = tuple(
            s for s in watched.stretches if since is not None and s.last_at >= since and (until is None or s.first_at < until)
        )
        earlier = [s for s in watched.stretches if since is not None and s.last_at < since][-1:]
        devices = tuple(one.device for one in watched.given if one.pod_uid == repetition.pod_uid)
        found.append(Track(repetition, (*earlier, *mine), devices))
    return tuple(found)


def _began(repetition: Repetition) -> datetime | None:
    return next((mark.at for mark in repetition.marks if mark.what is What.CREATE), None)


def _after(moment: datetime, since: datetime) -> float:
    return round(max(0.0, (moment - since).total_seconds()), 3)
