"""Whether one device came back, from all looks at it (facts/gpu-and-linux section 6). Pure: time is in the looks.

*Returned* needs two looks in a row; *leaked* needs the deadline and the rule of its class; what is neither is pending until
a named moment, or unknown. Unknown is never returned.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Final

from steps.contracts.document import Sample
from steps.contracts.release import DeviceRelease, ReleaseVerdict
from steps.contracts.traced import GpuClass, TracedHolder
from steps.trace.remedies import REMEDY
from steps.verify.plan import Device, Plan
from steps.verify.sighting import Seen, Sighting

RELEASED_LOOKS: Final = 2
UNREADABLE_LOOKS: Final = 2
CLASS_RULE_LOOKS: Final = 3
CLASS_RULE_S: Final = 60.0
"""A ghost, and a holder stuck in D, must be seen in 3 samples over 60 s."""

_FAULTS: Final = (GpuClass.ZOMBIE_THREADED, GpuClass.HIDDEN_HOLDER, GpuClass.ORPHAN_LIVE)


def judge_release(device: Device, sightings: Sequence[Sighting], plan: Plan) -> DeviceRelease:
    """The verdict as of the last sighting, oldest first, at least one. Pending says until when nothing can be concluded."""
    last = sightings[-1]
    if last.released:
        return _released(device, sightings)
    if last.seen is Seen.UNREADABLE:
        return _unreadable(device, sightings, plan)
    return _not_back(device, sightings, plan)


def _trail(sightings: Sequence[Sighting], same: Callable[[Sighting], bool]) -> list[Sighting]:
    """The unbroken run of such sightings up to the last one, oldest first."""
    return list(takewhile(same, reversed(sightings)))[::-1]


def _released(device: Device, sightings: Sequence[Sighting]) -> DeviceRelease:
    last = sightings[-1]
    trail = _trail(sightings, lambda one: one.released)
    if len(trail) < RELEASED_LOOKS:
        words = f"{last.sentence}; pending: {RELEASED_LOOKS} looks in a row must say so"
        return _release(device, sightings, ReleaseVerdict.PENDING, _headline(last), words, until=last.at)
    held = _last_held(device, sightings)
    span = "it was not seen held" if held is None else f"last seen held {held:%H:%M:%S}, first seen free {trail[0].at:%H:%M:%S} UTC"
    verdict = ReleaseVerdict.TAKEN_OVER if last.seen is Seen.TAKEN else ReleaseVerdict.RETURNED
    return _release(device, sightings, verdict, _headline(last), f"{last.sentence}; {span}", free=trail[0].at)


def _unreadable(device: Device, sightings: Sequence[Sighting], plan: Plan) -> DeviceRelease:
    last = sightings[-1]
    trail = _trail(sightings, lambda one: one.seen is Seen.UNREADABLE)
    if last.final or (last.at >= plan.deadline and len(trail) >= UNREADABLE_LOOKS):
        return _release(device, sightings, ReleaseVerdict.UNKNOWN, _headline(last), last.sentence)
    words = f"{last.sentence}; pending: it may become readable"
    return _release(device, sightings, ReleaseVerdict.PENDING, _headline(last), words, until=max(plan.deadline, last.at))


def _not_back(device: Device, sightings: Sequence[Sighting], plan: Plan) -> DeviceRelease:
    """Held, or memory without anyone: a leak once deadline and class rule are both met."""
    last = sightings[-1]
    due, seen_enough = plan.deadline, True
    if last.seen is Seen.UNEXPLAINED or last.stuck:
        trail = _trail(sightings, lambda one: one.seen is last.seen and one.stuck == last.stuck)
        due = max(due, trail[0].at + timedelta(seconds=CLASS_RULE_S))
        seen_enough = len(trail) >= CLASS_RULE_LOOKS
    if last.at < due or not seen_enough:
        words = f"{last.sentence}; pending until {due:%H:%M:%S} UTC"
        return _release(device, sightings, ReleaseVerdict.PENDING, _held_class(last), words, until=max(due, last.at))
    late = f"termination overdue: the deadline was {plan.deadline:%H:%M:%S} UTC"
    gpu_class = _leak_class(last)
    return _release(
        device, sightings, ReleaseVerdict.LEAKED, gpu_class, f"{last.sentence}; {late}", remedy=_remedy(gpu_class, last)
    )


def _headline(sighting: Sighting) -> GpuClass:
    return GpuClass.UNKNOWN if sighting.gpu is None else sighting.gpu.headline


def _held_class(sighting: Sighting) -> GpuClass:
    """Of the holders that must go, a fault before an activity class; without any, what the single look says."""
    classes = [holder.gpu_class for holder in sighting.own]
    return next((fault for fault in _FAULTS if fault in classes), classes[0] if classes else _headline(sighting))


def _leak_class(sighting: Sighting) -> GpuClass:
    if sighting.seen is Seen.UNEXPLAINED:
        return GpuClass.GHOST_CONTEXT
    return GpuClass.STUCK_D if sighting.stuck else _held_class(sighting)


def _remedy(gpu_class: GpuClass, sighting: Sighting) -> str:
    """A live process that outlived its session's stop is ended like one whose pod is gone, once the API says that it is."""
    if gpu_class in (GpuClass.GHOST_CONTEXT, GpuClass.STUCK_D, GpuClass.ZOMBIE_THREADED):
        return REMEDY[gpu_class]
    return f"see that the pod is gone from the API, then {REMEDY[GpuClass.POD_GONE_LIVE]}"


def _last_held(device: Device, sightings: Sequence[Sighting]) -> datetime | None:
    seen = [one.at for one in sightings if one.seen in (Seen.HELD, Seen.UNEXPLAINED)]
    if seen:
        return seen[-1]
    return device.before.at if device.before is not None and device.before.held else None


def _release(
    device: Device,
    sightings: Sequence[Sighting],
    verdict: ReleaseVerdict,
    gpu_class: GpuClass,
    sentence: str,
    *,
    free: datetime | None = None,
    until: datetime | None = None,
    remedy: str | None = None,
) -> DeviceRelease:
    last = sightings[-1]
    holders: tuple[TracedHolder, ...] = () if last.gpu is None else last.gpu.holders
    no_capture: Sample[int] = Sample.absent("no capture of this device")
    return DeviceRelease(
        device=device.name,
        verdict=verdict,
        gpu_class=gpu_class,
        sentence=sentence,
        used_before_bytes=no_capture if device.before is None else device.before.used_bytes,
        used_after_bytes=last.used_bytes,
        last_seen_held=_last_held(device, sightings),
        first_seen_free=free,
        taken_over_by=last.taker if verdict is ReleaseVerdict.TAKEN_OVER else None,
        holders=last.own if verdict is ReleaseVerdict.LEAKED else holders,
        remedy=remedy,
        pending_until=until,
    )
