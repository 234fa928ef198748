"""One repetition, measured: a word and a sentence for every row, from what was recorded and nothing else. Pure."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from experiments.zombie.drive.words import happened, moments
from experiments.zombie.recording import Ending, Stretch, WatchedProcess, What
from experiments.zombie.report.track import Track
from experiments.zombie.results import Figure, Interval, Measured, Timed, Word
from experiments.zombie.scenarios import Row

NEAR_GRACE_S: Final = 1.5
"""An end within so much of the grace period, or after it, is put down to its end."""
MIB: Final = 1 << 20


def measure(track: Track, grace_s: int, remedies: tuple[str, ...]) -> tuple[Measured, ...]:
    """All rows, in their order; unknown where the recording does not say."""
    return (
        _reaped(track),
        _orphan(track, grace_s),
        _clean_up(track),
        _killed_context(track),
        _after_deletion(track),
        _reboot(track, remedies),
    )


def timed(track: Track) -> tuple[Timed, ...]:
    killed, respawned, deleted = (track.moment(what) for what in (What.KILL, What.RESPAWN, What.DELETE))
    gone = track.mark(What.GONE)
    object_gone: Interval | None = None
    if gone is not None and deleted is not None:
        until = gone.until or gone.at
        object_gone = Interval(after_s=_seconds(gone.at, deleted), by_s=_seconds(until, deleted))
    return (
        Timed(figure=Figure.ZOMBIE_GONE, within=track.first(killed, respawned, _absent(track, track.repetition.killed_pid))),
        Timed(figure=Figure.FREE_AFTER_KILL, within=track.first(killed, respawned, track.is_free)),
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
    killed, respawned = track.moment(What.KILL), track.moment(What.RESPAWN)
    worker = track.worker(track.repetition.killed_pid)
    looks = track.between(killed, respawned)
    if killed is None or worker is None or not looks:
        return _unknown(Row.REAPED, "the killed worker was not seen on the node")
    last = _in(looks[-1], worker)
    if last is not None and last.state in "ZX":
        zombie_s = _seconds(looks[-1].last_at, killed)
        return Measured(
            row=Row.REAPED, word=Word.NO, sentence=f"still a zombie {zombie_s:.1f} s after kill -9; nobody waits for it"
        )
    if last is not None:
        return _unknown(Row.REAPED, f"the worker is still in state {last.state} after kill -9")
    within = track.first(killed, respawned, _absent(track, track.repetition.killed_pid))
    return Measured(row=Row.REAPED, word=Word.YES, sentence=f"gone from the process table {_words(within)} after kill -9")


def _orphan(track: Track, grace_s: int) -> Measured:
    worker, deleted = track.worker(track.repetition.orphan_pid), track.moment(What.DELETE)
    if worker is None or deleted is None:
        return _unknown(Row.ORPHAN, "no second worker was seen on the node")
    within = track.first(deleted, None, _not_alive(track, track.repetition.orphan_pid))
    if within is None:
        last_s = _seconds(track.stretches[-1].last_at, deleted)
        return Measured(row=Row.ORPHAN, word=Word.STAYS, sentence=f"still alive {last_s:.1f} s after the deletion")
    word, how = _how_it_ended(track, within, grace_s)
    return Measured(row=Row.ORPHAN, word=word, sentence=f"{how}, {_words(within)} after the deletion")


def _how_it_ended(track: Track, within: Interval, grace_s: int) -> tuple[Word, str]:
    log, pid = track.repetition.log.known() or "", track.repetition.orphan_pid
    if pid is not None and happened(log, ".cleanup_done", pid):
        return Word.LEFT, "its handler cleaned up and it left by itself"
    if pid is not None and _hook_killed(log, pid):
        return Word.BY_HOOK, "the preStop hook waited, then sent SIGKILL"
    if within.by_s >= grace_s - NEAR_GRACE_S and not _forced(track):
        return Word.AT_GRACE, f"the kubelet's SIGKILL to PID 1 at the end of the grace of {grace_s} s took it along"
    if _pid1_went_too(track, within):
        return Word.WITH_PID1, "it died in the same moment as PID 1, whose end kills its whole PID namespace"
    return Word.ENDED, "it ended"


def _forced(track: Track) -> bool:
    return any(mark.what is What.DELETE and mark.detail == Ending.FORCE.value for mark in track.repetition.marks)


def _hook_killed(log: str, pid: int) -> bool:
    return any(line["event"] == "prestop.killing" and str(pid) in str(line.get("pids", "")).split() for _, line in moments(log))


def _pid1_went_too(track: Track, within: Interval) -> bool:
    """PID 1 of the container was alive in the last look with the orphan and is gone in the first without it, or one later."""
    deleted = track.moment(What.DELETE)
    pid1 = track.worker(1)
    if deleted is None or pid1 is None:
        return False
    ended = track.first(deleted, None, lambda stretch: not _alive(_in(stretch, pid1)))
    return ended is not None and ended.after_s <= within.by_s and within.after_s <= ended.by_s


def _clean_up(track: Track) -> Measured:
    log, pid = track.repetition.log.known(), track.repetition.orphan_pid
    if log is None or pid is None or track.moment(What.DELETE) is None:
        return _unknown(Row.CLEAN_UP, "the pod log could not be read" if log is None else "the session was not deleted")
    if happened(log, ".cleanup_done", pid):
        return Measured(
            row=Row.CLEAN_UP, word=Word.YES, sentence="the worker's own words: memory dropped, cache emptied, then it exited"
        )
    if happened(log, ".sigterm_ignored", pid):
        return Measured(row=Row.CLEAN_UP, word=Word.NO, sentence="SIGTERM reached the worker, which ignored it")
    return Measured(
        row=Row.CLEAN_UP, word=Word.NO, sentence="no SIGTERM ever reached the worker: it is neither PID 1 nor the init's own child"
    )


def _killed_context(track: Track) -> Measured:
    killed, respawned = track.moment(What.KILL), track.moment(What.RESPAWN)
    looks = track.between(killed, respawned)
    free = track.is_free(looks[-1]) if killed is not None and looks else None
    if free is None:
        return _unknown(Row.KILLED_CONTEXT, "the device's memory after kill -9 is not known")
    if free:
        within = track.first(killed, respawned, track.is_free)
        return Measured(row=Row.KILLED_CONTEXT, word=Word.NO, sentence=f"the memory was back {_words(within)} after kill -9")
    left, holders = _left(track, looks[-1])
    return Measured(row=Row.KILLED_CONTEXT, word=Word.YES, sentence=f"{left} remain after kill -9, held by {holders}")


def _after_deletion(track: Track) -> Measured:
    deleted = track.moment(What.DELETE)
    free = track.is_free(track.stretches[-1]) if deleted is not None and track.stretches else None
    if free is None or not track.between(deleted, None):
        return _unknown(Row.AFTER_DELETION, "the device's memory after the deletion is not known")
    if free:
        within = track.first(deleted, None, track.is_free)
        return Measured(row=Row.AFTER_DELETION, word=Word.FREE, sentence=f"free {_words(within)} after the deletion was asked for")
    left, holders = _left(track, track.stretches[-1])
    return Measured(row=Row.AFTER_DELETION, word=Word.STAYS, sentence=f"{left} remain after the deletion, held by {holders}")


def _reboot(track: Track, remedies: tuple[str, ...]) -> Measured:
    after = _after_deletion(track)
    if after.word is Word.FREE:
        return Measured(row=Row.REBOOT, word=Word.NOT_NEEDED, sentence="nothing was left behind, so there was nothing to mend")
    if after.word is Word.UNKNOWN:
        return _unknown(Row.REBOOT, after.sentence)
    named = "; ".join(remedies) or "look at the node: nothing in the recording names a remedy"
    return Measured(row=Row.REBOOT, word=Word.PROPOSED, sentence=f"proposed, not done: {named}")


def _left(track: Track, stretch: Stretch) -> tuple[str, str]:
    used, baseline = track.used(stretch), track.baseline
    size = "an unknown amount" if used is None or baseline is None else f"{(used - baseline) / MIB:.0f} MiB"
    holders = [f"{one.name} (PID {one.pid})" for one in stretch.processes if one.holds or one.in_nvml]
    return size, ", ".join(holders) or "no process that can be seen"


def _absent(track: Track, pid: int | None) -> Callable[[Stretch], bool | None]:
    worker = track.worker(pid)
    return lambda stretch: None if worker is None else _in(stretch, worker) is None


def _not_alive(track: Track, pid: int | None) -> Callable[[Stretch], bool | None]:
    worker = track.worker(pid)
    return lambda stretch: None if worker is None else not _alive(_in(stretch, worker))


def _in(stretch: Stretch, process: WatchedProcess) -> WatchedProcess | None:
    """The same process in another stretch: by PID and start time."""
    same = (process.pid, process.start_time_ticks)
    return next((one for one in stretch.processes if (one.pid, one.start_time_ticks) == same), None)


def _alive(process: WatchedProcess | None) -> bool:
    return process is not None and process.state not in "ZX"


def _words(within: Interval | None) -> str:
    """An interval as a person reads it."""
    if within is None:
        return "at an unknown time"
    if within.after_s < 0.005:
        return f"within {within.by_s:.2f} s"
    return f"between {within.after_s:.2f} and {within.by_s:.2f} s"


def _seconds(moment: datetime, since: datetime) -> float:
    return round(max(0.0, (moment - since).total_seconds()), 3)


def _unknown(row: Row, reason: str) -> Measured:
    return Measured(row=row, word=Word.UNKNOWN, sentence=reason)
