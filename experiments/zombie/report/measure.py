"""One repetition, measured: a word and a sentence for every row, from what was recorded and nothing else. Pure."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from experiments.zombie.recording import Stretch, WatchedGpu, What
from experiments.zombie.report.ending import cleaned_up, orphan
from experiments.zombie.report.track import Track, alive, found_in, in_words, seconds_between, unknown
from experiments.zombie.results import Figure, Interval, Measured, Timed, Word
from experiments.zombie.scenarios import Row, Scenario
from steps.trace.holder_class import DRIVER_S

MIB: Final = 1 << 20
NOBODY: Final = "no process that can be seen"
CONTAINER_ENDED: Final = "the container ended after kill -9, and its end takes every process and its memory along"
NEVER_HELD: Final = "the device was never seen to hold the worker's memory, so that it is free says nothing"
CUT_SHORT: Final = "it was broken off before the state after kill -9 had been watched for its time"


def measure(track: Track, scenario: Scenario, grace_s: int, remedies: tuple[str, ...]) -> tuple[Measured, ...]:
    """All rows, in their order; unknown where the recording does not say."""
    after = _after_deletion(track, grace_s)
    return (
        _reaped(track),
        orphan(track, scenario, grace_s),
        cleaned_up(track, scenario),
        _killed_context(track),
        after,
        _reboot(after, remedies),
    )


def timed(track: Track) -> tuple[Timed, ...]:
    """Every figure; None where it was not seen."""
    killed, until, deleted = track.moment(What.KILL), track.kill_watched_until, track.moment(What.DELETE)
    gone = track.mark(What.GONE)
    object_gone: Interval | None = None
    if gone is not None and deleted is not None:
        ends = gone.until or gone.at
        object_gone = Interval(after_s=seconds_between(gone.at, deleted), by_s=seconds_between(ends, deleted))
    after_kill = None if until is None else killed
    return (
        Timed(figure=Figure.ZOMBIE_GONE, within=track.first(after_kill, until, _absent(track, track.repetition.killed_pid))),
        Timed(figure=Figure.FREE_AFTER_KILL, within=track.first(after_kill, until, track.is_free)),
        Timed(figure=Figure.ORPHAN_GONE, within=track.first(deleted, None, _not_alive(track, track.repetition.orphan_pid))),
        Timed(figure=Figure.FREE_AFTER_DELETE, within=track.first(deleted, None, track.is_free)),
        Timed(figure=Figure.OBJECT_GONE, within=object_gone),
    )


def held_bytes(track: Track) -> int | None:
    """What the first worker added to the devices, right before it was killed."""
    killed, baseline = track.moment(What.KILL), track.baseline
    before = [used for one in track.between(None, killed) if (used := track.used(one)) is not None]
    return None if baseline is None or not before or killed is None else max(before) - baseline


def _reaped(track: Track) -> Measured:
    killed, until = track.moment(What.KILL), track.kill_watched_until
    worker = track.worker(track.repetition.killed_pid)
    looks = [] if killed is None or until is None else track.between(killed, until)
    if killed is None or worker is None or not looks:
        return unknown(Row.REAPED, "the killed worker was not seen on the node")
    last = found_in(looks[-1], worker)
    if last is None and track.container_ended_by(looks[-1]):
        return unknown(Row.REAPED, CONTAINER_ENDED)
    if last is None:
        within = track.first(killed, until, _absent(track, track.repetition.killed_pid))
        return Measured(row=Row.REAPED, word=Word.YES, sentence=f"gone from the process table {in_words(within)} after kill -9")
    if track.kill_cut_short:
        return unknown(Row.REAPED, CUT_SHORT)
    if alive(last):
        return unknown(Row.REAPED, f"the worker is still in state {last.state} after kill -9")
    zombie_s = seconds_between(looks[-1].last_at, killed)
    return Measured(row=Row.REAPED, word=Word.NO, sentence=f"still a zombie {zombie_s:.1f} s after kill -9; nobody waits for it")


def _killed_context(track: Track) -> Measured:
    killed, until = track.moment(What.KILL), track.kill_watched_until
    looks = [] if killed is None or until is None else track.between(killed, until)
    free = track.is_free(looks[-1]) if looks else None
    if killed is None or free is None:
        return unknown(Row.KILLED_CONTEXT, "the device's memory after kill -9 is not known")
    if free:
        return _came_back(track, killed, looks[-1])
    if track.kill_cut_short:
        return unknown(Row.KILLED_CONTEXT, CUT_SHORT)
    size, holders = _left(track, looks[-1])
    held = _held_by(track, looks[-1], holders)
    watched_s = seconds_between(looks[-1].last_at, killed)
    if not holders and watched_s < DRIVER_S:
        return unknown(
            Row.KILLED_CONTEXT,
            f"{size} remain {watched_s:.1f} s after kill -9, {held}; a driver may take {DRIVER_S} s: watch each state for longer",
        )
    return Measured(row=Row.KILLED_CONTEXT, word=Word.YES, sentence=f"{size} remain after kill -9, {held}")


def _came_back(track: Track, killed: datetime, last: Stretch) -> Measured:
    if track.container_ended_by(last):
        return unknown(Row.KILLED_CONTEXT, CONTAINER_ENDED)
    if not _held_before(track, killed):
        return unknown(Row.KILLED_CONTEXT, NEVER_HELD)
    within = track.first(killed, track.kill_watched_until, track.is_free)
    return Measured(row=Row.KILLED_CONTEXT, word=Word.NO, sentence=f"the memory was back {in_words(within)} after kill -9")


def _after_deletion(track: Track, grace_s: int) -> Measured:
    deleted = track.moment(What.DELETE)
    looks = [] if deleted is None else track.between(deleted, None)
    free = track.is_free(looks[-1]) if looks else None
    if deleted is None or free is None:
        return unknown(Row.AFTER_DELETION, "the device's memory after the deletion is not known")
    if free and not _held_before(track, deleted):
        return unknown(Row.AFTER_DELETION, NEVER_HELD)
    if free:
        within = track.first(deleted, None, track.is_free)
        return Measured(
            row=Row.AFTER_DELETION, word=Word.FREE, sentence=f"free {in_words(within)} after the deletion was asked for"
        )
    size, holders = _left(track, looks[-1])
    last_s = seconds_between(looks[-1].last_at, deleted)
    if not track.had_its_time(looks[-1].last_at, grace_s):
        return unknown(
            Row.AFTER_DELETION,
            f"{size} remain {last_s:.1f} s after the deletion, when watching ended before the time that this may take was over",
        )
    return Measured(
        row=Row.AFTER_DELETION, word=Word.STAYS, sentence=f"{size} remain after the deletion, {_held_by(track, looks[-1], holders)}"
    )


def _held_before(track: Track, moment: datetime) -> bool:
    """A look before that moment saw more on the device than is called free."""
    return any(track.is_free(one) is False for one in track.between(None, moment))


def _reboot(after: Measured, remedies: tuple[str, ...]) -> Measured:
    if after.word is Word.FREE:
        return Measured(row=Row.REBOOT, word=Word.NOT_NEEDED, sentence="nothing was left behind, so there was nothing to mend")
    if after.word is Word.UNKNOWN:
        return unknown(Row.REBOOT, after.sentence)
    named = "; ".join(remedies) or "look at the node: nothing in the recording names a remedy"
    return Measured(row=Row.REBOOT, word=Word.PROPOSED, sentence=f"proposed, not done: {named}")


def _left(track: Track, stretch: Stretch) -> tuple[str, str]:
    """(how much, by whom; empty if by nobody that can be seen)."""
    used, baseline = track.used(stretch), track.baseline
    size = "an unknown amount" if used is None or baseline is None else f"{(used - baseline) / MIB:.0f} MiB"
    return size, ", ".join(f"{one.name} (PID {one.pid})" for one in stretch.processes if one.holds or one.in_nvml)


def _held_by(track: Track, stretch: Stretch, holders: str) -> str:
    """That nobody holds it is said only of a look that could see everybody."""
    lists = [f"NVML's list of processes could not be read ({one.list_problem})" for one in stretch.gpus if _unlisted(track, one)]
    closed = [one for one in stretch.processes if one.holds is None and not one.in_nvml]
    blind = [*lists, *(f"what {one.name} (PID {one.pid}) has open could not be read" for one in closed)]
    if not blind:
        return f"held by {holders or NOBODY}"
    return f"{f'held by {holders} at least' if holders else 'by whom is not known'}: {'; '.join(dict.fromkeys(blind))}"


def _unlisted(track: Track, gpu: WatchedGpu) -> bool:
    return gpu.uuid in track.devices and gpu.list_problem is not None


def _absent(track: Track, pid: int | None) -> Callable[[Stretch], bool | None]:
    worker = track.worker(pid)
    return lambda stretch: None if worker is None else found_in(stretch, worker) is None


def _not_alive(track: Track, pid: int | None) -> Callable[[Stretch], bool | None]:
    worker = track.worker(pid)
    return lambda stretch: None if worker is None else not alive(found_in(stretch, worker))
