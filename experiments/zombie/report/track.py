"""Questions to a recording: where a process was, how much memory a session's device held, and when. Pure.

Every answer is an interval between two looks, or unknown; a moment nobody looked at is not filled in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from experiments.zombie.recording import Ending, Mark, Repetition, Stretch, WatchedProcess, WatchRecording, What
from experiments.zombie.results import Interval, Measured, Word
from experiments.zombie.scenarios import Row
from experiments.zombie.watch.history import ALLOWANCE_BYTES
from steps.trace.holder_class import DRIVER_S, RUNTIME_S

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

    @property
    def kill_watched_until(self) -> datetime | None:
        """Until when the state after kill -9 was left to itself: the second worker, or the clean-up of what was broken off."""
        return self.moment(What.RESPAWN) or self.moment(What.BROKEN_OFF)

    def container_ended_by(self, stretch: Stretch) -> bool:
        """Its PID 1 was seen before and is not alive in this look: then its end took along whatever else is gone."""
        pid1 = self.worker(1)
        return pid1 is not None and not alive(found_in(stretch, pid1))

    @property
    def kill_cut_short(self) -> bool:
        return self.moment(What.RESPAWN) is None

    def had_its_time(self, moment: datetime, grace_s: int) -> bool:
        """Whether by then everything must have let go: the end of the containers, by the kubelet's word or by the grace that was
        given, and the driver's time after it. An object that was deleted by force says nothing of its containers."""
        deleted, gone = self.mark(What.DELETE), self.mark(What.GONE)
        if deleted is None:
            return False
        limits = [deleted.at + timedelta(seconds=grace_s + RUNTIME_S)]
        if gone is not None and deleted.detail != Ending.FORCE.value:
            limits.append(gone.until or gone.at)
        return moment >= min(limits) + timedelta(seconds=DRIVER_S)

    def used(self, stretch: Stretch) -> int | None:
        """Used memory of the session's devices, in bytes; None as soon as one of them is unknown or not in the look."""
        readings = [gpu.used_bytes.known() for gpu in stretch.gpus if gpu.uuid in self.devices]
        known = [one for one in readings if one is not None]
        return sum(known) if known and len(known) == len(set(self.devices)) else None

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
        """When it came to hold for good, up to `until`, in seconds after `since`: not yet when the last look without it began, and
        when the first one with it was through."""
        if since is None:
            return None
        later = self.between(since, until)
        without = [number for number, one in enumerate(later) if holds(one) is not True]
        place = without[-1] + 1 if without else 0
        if place >= len(later):
            return None
        before = later[place - 1].last_at if place else since
        by = later[place].first_done_at if place else max(since, later[0].first_done_at)
        return Interval(after_s=seconds_between(before, since), by_s=seconds_between(by, since))


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
        earlier = () if mine and since is not None and mine[0].first_at <= since else _last_before(watched.stretches, since)
        devices = tuple(one.device for one in watched.given if one.pod_uid == repetition.pod_uid)
        found.append(Track(repetition, (*earlier, *mine), devices))
    return tuple(found)


def found_in(stretch: Stretch, process: WatchedProcess) -> WatchedProcess | None:
    """The same process in another stretch: by PID and start time."""
    same = (process.pid, process.start_time_ticks)
    return next((one for one in stretch.processes if (one.pid, one.start_time_ticks) == same), None)


def alive(process: WatchedProcess | None) -> bool:
    return process is not None and process.state not in "ZX"


def in_words(within: Interval | None) -> str:
    """An interval as a person reads it."""
    if within is None:
        return "at an unknown time"
    if within.after_s < 0.005:
        return f"within {within.by_s:.2f} s"
    return f"between {within.after_s:.2f} and {within.by_s:.2f} s"


def seconds_between(moment: datetime, since: datetime) -> float:
    return round(max(0.0, (moment - since).total_seconds()), 3)


def unknown(row: Row, reason: str) -> Measured:
    return Measured(row=row, word=Word.UNKNOWN, sentence=reason)


def _last_before(stretches: Sequence[Stretch], moment: datetime | None) -> tuple[Stretch, ...]:
    """What was seen right before; it is not this session's where a look reaches over its beginning."""
    return tuple(one for one in stretches if moment is not None and one.last_at < moment)[-1:]


def _began(repetition: Repetition) -> datetime | None:
    return next((mark.at for mark in repetition.marks if mark.what is What.CREATE), None)
