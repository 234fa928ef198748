"""How the orphan ended, and whether it cleaned up: from what the node saw and what the container said. Pure.

What was *not* said counts only if the log was heard to its end, and an end is put down to its moment only if the looks were close
enough to tell; else the answer is unknown.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Final, NamedTuple

from experiments.zombie.drive.words import happened, moments
from experiments.zombie.recording import Ending, What
from experiments.zombie.report.track import Track, alive, found_in, in_words, seconds_between, unknown
from experiments.zombie.results import Interval, Measured, Word
from experiments.zombie.scenarios import Row, Scenario
from steps.trace.holder_class import DRIVER_S, RUNTIME_S

NEAR_GRACE_S: Final = 1.5
"""An end within so much of the grace period, or after it, is put down to its end; LATE_S after it no more."""
LATE_S: Final = float(RUNTIME_S + DRIVER_S)
"""Facts 6: what kubelet, runtime and driver may take after the grace."""
BLIND_S: Final = 1.5
"""Two looks further apart than this do not tell which of two things between them came first, or that they came together."""


def orphan(track: Track, scenario: Scenario, grace_s: int) -> Measured:
    """What became of the worker that lived at the deletion."""
    worker, deleted = track.worker(track.repetition.orphan_pid), track.moment(What.DELETE)
    if worker is None or deleted is None:
        return unknown(Row.ORPHAN, "no second worker was seen on the node" if worker is None else "the session was not deleted")
    looks = track.between(deleted, None)
    if not looks:
        return unknown(Row.ORPHAN, "nobody looked after the deletion")
    within = track.first(deleted, None, lambda stretch: not alive(found_in(stretch, worker)))
    if within is None:
        still = f"still alive {seconds_between(looks[-1].last_at, deleted):.1f} s after the deletion"
        if not track.had_its_time(looks[-1].last_at, grace_s):
            return unknown(Row.ORPHAN, f"{still}, when watching ended before its time was over")
        return Measured(row=Row.ORPHAN, word=Word.STAYS, sentence=still)
    broken_off = track.moment(What.BROKEN_OFF)
    if broken_off is not None and deleted + timedelta(seconds=within.by_s) > broken_off:
        return unknown(Row.ORPHAN, "it lived until the session was broken off and cleaned up")
    end = End(track, scenario, within, grace_s)
    word, how = next(said for rule in RULES if (said := rule(end)) is not None)
    return Measured(row=Row.ORPHAN, word=word, sentence=f"{how}, {in_words(within)} after the deletion")


class End(NamedTuple):
    """The orphan's end: seen in which session, of which scenario, and when after the deletion."""

    track: Track
    scenario: Scenario
    within: Interval
    grace_s: int

    @property
    def log(self) -> str:
        return self.track.repetition.log.known() or ""

    @property
    def accepted_s(self) -> float:
        """From when drive sent the deletion to when it saw it accepted, and the grace run, at the latest."""
        sent, accepted = self.track.moment(What.DELETE), self.track.moment(What.TERMINATING)
        return 0.0 if sent is None or accepted is None else seconds_between(accepted, sent)

    @property
    def blind(self) -> bool:
        return self.within.by_s - self.within.after_s > BLIND_S


Said = tuple[Word, str]


def _by_its_own_words(end: End) -> Said | None:
    pid = end.track.repetition.orphan_pid
    said = pid is not None and happened(end.log, ".cleanup_done", pid)
    return (Word.LEFT, "its handler cleaned up and it left by itself") if said else None


def _by_the_hooks_words(end: End) -> Said | None:
    pid = str(end.track.repetition.orphan_pid)
    killing = [str(line.get("pids", "")).split() for _, line in moments(end.log) if line["event"] == "prestop.killing"]
    return (Word.BY_HOOK, "the preStop hook waited, then sent SIGKILL") if any(pid in pids for pids in killing) else None


def _words_are_missing(end: End) -> Said | None:
    if not end.scenario.prestop or end.track.repetition.log_whole:
        return None
    return Word.UNKNOWN, "it ended; by what would stand in the pod log, which was not heard to its end"


def _at_the_end_of_grace(end: End) -> Said | None:
    near_s = end.grace_s - NEAR_GRACE_S
    if end.within.by_s < near_s or _forced(end.track):
        return None
    late_s = end.accepted_s + end.grace_s + LATE_S
    if end.within.after_s > late_s:
        return Word.UNKNOWN, f"it outlived the grace of {end.grace_s} s by more than {LATE_S:g} s, so by what it ended is not known"
    if end.blind and end.within.after_s < near_s:
        return Word.UNKNOWN, "it ended before the end of grace or with it: the looks were too far apart to tell"
    if end.blind and end.within.by_s > late_s:
        return Word.UNKNOWN, "it ended with the end of grace or long after it: the looks were too far apart to tell"
    return Word.AT_GRACE, f"the kubelet's SIGKILL to PID 1 at the end of the grace of {end.grace_s} s took it along"


def _with_pid1(end: End) -> Said | None:
    """PID 1 of the container was alive in the last look with the orphan and is gone in the first without it, or one later."""
    pid1 = end.track.worker(1)
    if pid1 is None:
        return Word.UNKNOWN, "it ended; PID 1 was not seen, so whether with it is not known"
    ended = end.track.first(end.track.moment(What.DELETE), None, lambda stretch: not alive(found_in(stretch, pid1)))
    if ended is None or ended.after_s > end.within.by_s or end.within.after_s > ended.by_s:
        return None
    if end.blind:
        return Word.UNKNOWN, "it and PID 1 ended: the looks were too far apart to tell whether together"
    return Word.WITH_PID1, "it died in the same moment as PID 1, whose end kills its whole PID namespace"


def _while_pid1_lived(_: End) -> Said:
    return Word.ENDED, "it ended while PID 1 lived on"


RULES: Final[tuple[Callable[[End], Said | None], ...]] = (
    _by_its_own_words,
    _by_the_hooks_words,
    _words_are_missing,
    _at_the_end_of_grace,
    _with_pid1,
    _while_pid1_lived,
)
"""The first that speaks."""


def _forced(track: Track) -> bool:
    return any(mark.what is What.DELETE and mark.detail == Ending.FORCE.value for mark in track.repetition.marks)


def cleaned_up(track: Track, scenario: Scenario) -> Measured:
    """Whether SIGTERM led to the CUDA clean-up: the worker's own words."""
    log, pid = track.repetition.log.known(), track.repetition.orphan_pid
    if log is None or pid is None or track.moment(What.DELETE) is None:
        return unknown(Row.CLEAN_UP, "the pod log could not be read" if log is None else "the session was not deleted")
    if happened(log, ".cleanup_done", pid):
        return _cleaned(Word.YES, "the worker's own words: memory dropped, cache emptied, then it exited")
    if happened(log, ".sigterm_ignored", pid):
        return _cleaned(Word.NO, "SIGTERM reached the worker, which ignored it")
    if not track.repetition.log_whole:
        return unknown(Row.CLEAN_UP, "the pod log says nothing of it as far as it was read, which was not to its end")
    return _cleaned(Word.NO, _why_nothing_was_said(log, pid, scenario))


def _why_nothing_was_said(log: str, pid: int, scenario: Scenario) -> str:
    if happened(log, ".cleanup_began", pid):
        return "SIGTERM reached the worker, whose handler began and was ended before it was through"
    if scenario.prestop and not any(line["event"] == "prestop.began" for _, line in moments(log)):
        return "no SIGTERM ever reached the worker: the preStop hook said nothing, so it did not run"
    return "no SIGTERM ever reached the worker: it is neither PID 1 nor the init's own child"


def _cleaned(word: Word, sentence: str) -> Measured:
    return Measured(row=Row.CLEAN_UP, word=word, sentence=sentence)
