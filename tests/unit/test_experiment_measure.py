"""What is said of a session follows from its recording: in words, as intervals, and as unknown where nobody saw."""

import json
from dataclasses import replace

import msgspec
import pytest

from experiments.zombie.ports import Glance
from experiments.zombie.recording import Mark, WatchedProcess, What
from experiments.zombie.report.measure import held_bytes, measure, timed
from experiments.zombie.report.track import Track
from experiments.zombie.results import Figure, Interval, Measured, Word
from experiments.zombie.scenarios import SCENARIOS, Row, ScenarioId
from experiments.zombie.watch.history import ALLOWANCE_BYTES
from steps.contracts.cluster_facts import ContainerFacts, Phase, PodFacts
from tests.unit.experiment_world import (
    ALL_WELL,
    BASELINE,
    GRACE_S,
    HELD,
    KILLED,
    KILLED_S,
    ORPHAN,
    POD,
    at,
    glance,
    life,
    ordinary,
    pid1,
    process,
)


def answer(track: Track, row: Row, remedies: tuple[str, ...] = (), scenario: ScenarioId = ScenarioId.S2) -> Measured:
    return next(one for one in measure(track, SCENARIOS[scenario], GRACE_S, remedies) if one.row is row)


def within(track: Track, figure: Figure) -> Interval | None:
    return next(one.within for one in timed(track) if one.figure is figure)


def log(*lines: dict[str, object]) -> str:
    return "\n".join(json.dumps({"at": at(12).isoformat(), **line}) for line in lines)


def test_a_worker_that_is_gone_in_the_next_look_was_reaped_and_the_moment_is_an_interval() -> None:
    track = life(*ordinary(*ALL_WELL))
    assert answer(track, Row.REAPED).word is Word.YES
    assert within(track, Figure.ZOMBIE_GONE) == Interval(after_s=0.0, by_s=0.2)


def test_a_worker_still_a_zombie_when_the_next_one_starts_was_not_reaped() -> None:
    zombie = process(KILLED, state="Z")
    looks = (glance(5.2, BASELINE, pid1("sleep"), zombie), glance(7.9, BASELINE, pid1("sleep"), zombie))
    track = life(*ordinary(*ALL_WELL, killed=looks))
    assert answer(track, Row.REAPED).word is Word.NO
    assert within(track, Figure.ZOMBIE_GONE) is None


def test_a_zombie_of_a_moment_was_reaped_all_the_same() -> None:
    looks = (
        glance(5.2, BASELINE, pid1(), process(KILLED, state="Z")),
        glance(5.4, BASELINE, pid1()),
        glance(7.9, BASELINE, pid1()),
    )
    track = life(*ordinary(*ALL_WELL, killed=looks))
    assert answer(track, Row.REAPED).word is Word.YES
    assert within(track, Figure.ZOMBIE_GONE) == Interval(after_s=0.2, by_s=0.4)


def test_a_worker_that_nobody_saw_is_unknown_and_not_reaped() -> None:
    assert answer(life(glance(1.0, BASELINE), glance(12.0, BASELINE)), Row.REAPED).word is Word.UNKNOWN


def test_memory_that_goes_with_the_killed_process_leaves_no_context() -> None:
    assert answer(life(*ordinary(*ALL_WELL)), Row.KILLED_CONTEXT).word is Word.NO


def test_what_the_containers_own_end_took_along_was_neither_reaped_nor_freed_by_the_kill() -> None:
    over = life(*ordinary(killed=(glance(5.2, BASELINE), glance(7.9, BASELINE))), broken_off_s=8.0)
    assert [answer(over, row).word for row in (Row.REAPED, Row.KILLED_CONTEXT)] == [Word.UNKNOWN] * 2


def test_a_device_that_was_never_seen_to_hold_anything_says_nothing_by_being_free() -> None:
    worker, orphan = process(KILLED, holds=True), process(ORPHAN, holds=True)
    track = life(
        glance(1.0, BASELINE),
        glance(4.9, BASELINE, pid1(), worker),
        glance(7.9, BASELINE, pid1()),
        glance(10.9, BASELINE, pid1(), orphan),
        *ALL_WELL,
    )
    rows = (Row.REAPED, Row.KILLED_CONTEXT, Row.AFTER_DELETION, Row.REBOOT)
    assert [answer(track, row).word for row in rows] == [Word.YES, Word.UNKNOWN, Word.UNKNOWN, Word.UNKNOWN]


def test_a_device_of_the_session_that_a_look_does_not_name_is_unknown_and_not_free() -> None:
    whole = life(*ordinary(*ALL_WELL))
    two = replace(whole, devices=(*whole.devices, "GPU-2"))
    assert [answer(two, row).word for row in (Row.KILLED_CONTEXT, Row.AFTER_DELETION)] == [Word.UNKNOWN] * 2


def test_memory_that_a_forked_child_keeps_is_said_with_its_holder() -> None:
    child = process(8, holds=True, name="loader")
    looks = (glance(5.2, BASELINE + HELD, pid1(), child), glance(7.9, BASELINE + HELD, pid1(), child))
    said = answer(life(*ordinary(*ALL_WELL, killed=looks)), Row.KILLED_CONTEXT)
    assert (said.word, "loader" in said.sentence, "2048 MiB" in said.sentence) == (Word.YES, True, True)


@pytest.mark.parametrize(
    ("left", "word"),
    [
        (ALLOWANCE_BYTES - 1, Word.FREE),
        (ALLOWANCE_BYTES, Word.FREE),
        (ALLOWANCE_BYTES + 1, Word.STAYS),
    ],
)
def test_memory_within_the_allowance_counts_as_free(left: int, word: Word) -> None:
    track = life(*ordinary(glance(11.2, BASELINE + left), glance(18.0, BASELINE + left)))
    assert answer(track, Row.AFTER_DELETION).word is word


def test_memory_that_could_not_be_read_at_the_end_is_unknown_and_never_free() -> None:
    track = life(*ordinary(glance(11.2, BASELINE), glance(14.0, None)))
    assert answer(track, Row.AFTER_DELETION).word is Word.UNKNOWN
    assert answer(track, Row.REBOOT).word is Word.UNKNOWN
    assert within(track, Figure.FREE_AFTER_DELETE) is None


def test_a_gap_in_the_readings_widens_the_interval_instead_of_being_filled_in() -> None:
    orphan = process(ORPHAN, holds=True)
    looks = (
        glance(11.2, BASELINE + HELD, pid1(), orphan),
        glance(11.4, None, pid1(), orphan),
        glance(11.8, BASELINE),
        glance(14.0, BASELINE),
    )
    assert within(life(*ordinary(*looks)), Figure.FREE_AFTER_DELETE) == Interval(after_s=0.4, by_s=0.8)


def test_a_look_takes_its_time_so_what_it_saw_gone_went_before_its_end_and_not_before_its_beginning() -> None:
    orphan = process(ORPHAN, holds=True)
    looks = (
        glance(11.2, BASELINE + HELD, pid1(), orphan, takes_s=0.05),
        glance(11.4, BASELINE, takes_s=0.05),
        glance(14.0, BASELINE, takes_s=0.05),
    )
    assert within(life(*ordinary(*looks)), Figure.ORPHAN_GONE) == Interval(after_s=0.2, by_s=0.45)


def held_until(seconds: float, *others: WatchedProcess) -> Track:
    """The orphan is last seen alive right before `seconds` after the deletion, and PID 1 goes with it unless named in others."""
    orphan = process(ORPHAN, holds=True)
    until = 11.0 + seconds
    return life(
        *ordinary(
            glance(11.1, BASELINE + HELD, pid1(), orphan),
            glance(until - 0.1, BASELINE + HELD, pid1(), orphan),
            glance(until, BASELINE, *others),
            glance(until + 2, BASELINE),
        ),
        gone_s=until + 2,
    )


def test_an_orphan_that_ends_in_the_look_in_which_pid_1_does_died_with_it() -> None:
    assert answer(held_until(0.4), Row.ORPHAN).word is Word.WITH_PID1


def test_an_orphan_that_ends_while_pid_1_lives_on_did_not() -> None:
    orphan = process(ORPHAN, holds=True)
    looks = (
        glance(11.2, BASELINE + HELD, pid1(), orphan),
        glance(11.4, BASELINE, pid1()),
        glance(12.4, BASELINE, pid1()),
        glance(14, BASELINE),
    )
    assert answer(life(*ordinary(*looks)), Row.ORPHAN).word is Word.ENDED


@pytest.mark.parametrize(("seconds", "word"), [(28.4, Word.WITH_PID1), (28.5, Word.AT_GRACE), (47.0, Word.AT_GRACE)])
def test_an_end_near_the_grace_is_put_down_to_its_end(seconds: float, word: Word) -> None:
    assert answer(held_until(seconds), Row.ORPHAN).word is word


@pytest.mark.parametrize("seconds", [47.2, 3630.0])
def test_an_end_long_after_the_grace_is_not_put_down_to_it(seconds: float) -> None:
    said = answer(held_until(seconds), Row.ORPHAN)
    assert (said.word, "outlived the grace of 30 s by more than 17 s" in said.sentence) == (Word.UNKNOWN, True)


def test_the_grace_runs_from_when_a_slow_api_had_accepted_the_deletion() -> None:
    track = held_until(60.0)
    slow = (*track.repetition.marks, Mark(at=at(11.0 + 20.0), what=What.TERMINATING))
    assert (
        answer(replace(track, repetition=msgspec.structs.replace(track.repetition, marks=slow)), Row.ORPHAN).word is Word.AT_GRACE
    )


def test_a_gap_that_reaches_far_beyond_the_grace_does_not_say_that_its_end_took_the_orphan() -> None:
    orphan = process(ORPHAN, holds=True)
    looks = (glance(40.0, BASELINE + HELD, pid1(), orphan), glance(90.0, BASELINE), glance(92.0, BASELINE))
    said = answer(life(*ordinary(*looks), gone_s=92.0), Row.ORPHAN)
    assert (said.word, "long after" in said.sentence) == (Word.UNKNOWN, True)


def blindly(one: Glance) -> Glance:
    """The same look with a list of NVML that could not be read."""
    return msgspec.structs.replace(one, gpus=tuple(msgspec.structs.replace(gpu, list_problem="error 4") for gpu in one.gpus))


@pytest.mark.parametrize(
    ("blind", "held"),
    [
        (False, "held by no process that can be seen"),
        (True, "by whom is not known: NVML's list of processes could not be read (error 4)"),
    ],
)
def test_nobody_holds_what_remains_only_if_the_list_could_be_read(blind: bool, held: str) -> None:
    last = glance(90.0, BASELINE + HELD)
    said = answer(life(*ordinary(blindly(last) if blind else last)), Row.AFTER_DELETION)
    assert (said.word, said.sentence) == (Word.STAYS, f"2048 MiB remain after the deletion, {held}")


def test_a_holder_that_may_not_be_looked_into_is_not_nobody() -> None:
    closed = msgspec.structs.replace(process(ORPHAN, state="D"), holds=None)
    said = answer(life(*ordinary(glance(90.0, BASELINE + HELD, closed))), Row.AFTER_DELETION)
    assert said.sentence.endswith("by whom is not known: what python3 (PID 4009) has open could not be read")


def test_an_orphan_that_lives_when_watching_ends_stays() -> None:
    orphan = process(ORPHAN, holds=True)
    track = life(*ordinary(glance(60.0, BASELINE + HELD, orphan)), gone_s=42.0)
    assert answer(track, Row.ORPHAN).word is Word.STAYS
    assert answer(track, Row.AFTER_DELETION).word is Word.STAYS


def test_the_sandboxs_pid_1_is_not_the_containers_even_while_it_bears_another_name() -> None:
    container = ContainerFacts(name="session", container_ids=("c" * 64,))
    sandbox = msgspec.structs.replace(process(1, name="runc:[2:INIT]"), pid=3999, container_id="5" * 64)
    track = life(glance(1.0, BASELINE, sandbox, pid1()))
    known = msgspec.structs.replace(track.repetition, pods=(pod_with(container),))
    assert Track(known, track.stretches, track.devices).worker(1) == pid1()


def pod_with(container: ContainerFacts) -> PodFacts:
    return PodFacts(
        uid=POD,
        name="gpu-zombie-tini",
        namespace="gpu-zombie-test",
        node="node-a",
        phase=Phase.RUNNING,
        created_at=at(0),
        started_at=at(0),
        deletion_requested_at=None,
        grace_s=GRACE_S,
        gpus_requested=1,
        containers=(container,),
    )


def test_a_zombie_is_not_alive() -> None:
    track = life(*ordinary(glance(11.2, BASELINE, process(ORPHAN, state="Z")), glance(14.0, BASELINE)))
    assert answer(track, Row.ORPHAN).word is not Word.STAYS


def test_the_hooks_own_words_tell_its_sigkill_from_other_ends() -> None:
    looks = ordinary(*ALL_WELL)
    killing = log({"event": "prestop.killing", "pids": f"3 {ORPHAN}"})
    assert answer(life(*looks, log=killing), Row.ORPHAN).word is Word.BY_HOOK
    other = log({"event": "prestop.killing", "pids": f"{ORPHAN}0"})
    assert answer(life(*looks, log=other), Row.ORPHAN).word is not Word.BY_HOOK


def test_the_workers_own_words_tell_that_it_cleaned_up() -> None:
    track = life(*ordinary(*ALL_WELL), log=log({"event": "gpu_worker_fixed.cleanup_done", "pid": ORPHAN}))
    assert (answer(track, Row.CLEAN_UP).word, answer(track, Row.ORPHAN).word) == (Word.YES, Word.LEFT)


def test_the_first_workers_words_are_not_the_second_ones() -> None:
    track = life(*ordinary(*ALL_WELL), log=log({"event": "gpu_worker_fixed.cleanup_done", "pid": KILLED}))
    assert answer(track, Row.CLEAN_UP).word is Word.NO


@pytest.mark.parametrize(
    ("words", "sentence"),
    [("", "no SIGTERM ever reached"), (log({"event": "gpu_worker.sigterm_ignored", "pid": ORPHAN}), "ignored it")],
)
def test_no_clean_up_says_whether_the_signal_came(words: str, sentence: str) -> None:
    said = answer(life(*ordinary(*ALL_WELL), log=words), Row.CLEAN_UP)
    assert (said.word, sentence in said.sentence) == (Word.NO, True)


CLEANED = log({"event": "prestop.began"}, {"event": "gpu_worker_fixed.cleanup_done", "pid": ORPHAN})
SILENT_SO_FAR = log({"event": "gpu_worker_fixed.holding", "pid": ORPHAN})


@pytest.mark.parametrize(
    ("words", "whole", "clean_up", "orphan"),
    [
        (CLEANED, True, Word.YES, Word.LEFT),
        (CLEANED, False, Word.YES, Word.LEFT),
        (SILENT_SO_FAR, False, Word.UNKNOWN, Word.UNKNOWN),
        (SILENT_SO_FAR, True, Word.NO, Word.WITH_PID1),
    ],
)
def test_what_a_log_does_not_say_counts_only_if_it_was_heard_to_its_end(
    words: str, whole: bool, clean_up: Word, orphan: Word
) -> None:
    """As seen on a busy machine: the object went before the next poll of the log, and with it the words of the handler."""
    track = life(*ordinary(*ALL_WELL), log=words, log_whole=whole)
    said = {row: answer(track, row, scenario=ScenarioId.S4).word for row in (Row.CLEAN_UP, Row.ORPHAN)}
    assert said == {Row.CLEAN_UP: clean_up, Row.ORPHAN: orphan}


def test_without_a_hook_nobody_could_have_said_anything_so_how_the_orphan_ended_needs_no_log() -> None:
    assert answer(life(*ordinary(*ALL_WELL), log=None, log_whole=False), Row.ORPHAN).word is Word.WITH_PID1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            log({"event": "prestop.began"}, {"event": "gpu_worker_fixed.cleanup_began", "pid": ORPHAN}),
            "ended before it was through",
        ),
        (SILENT_SO_FAR, "the preStop hook said nothing"),
    ],
)
def test_a_handler_that_was_cut_short_and_a_hook_that_did_not_run_are_told_apart(words: str, sentence: str) -> None:
    said = answer(life(*ordinary(*ALL_WELL), log=words), Row.CLEAN_UP, scenario=ScenarioId.S4)
    assert (said.word, sentence in said.sentence) == (Word.NO, True)


def test_two_ends_in_one_wide_gap_are_not_said_to_be_one() -> None:
    orphan = process(ORPHAN, holds=True)
    looks = (glance(11.1, BASELINE + HELD, pid1(), orphan), glance(12.7, BASELINE), glance(14, BASELINE))
    assert answer(life(*ordinary(*looks)), Row.ORPHAN).word is Word.UNKNOWN


def test_a_gap_that_reaches_over_the_end_of_grace_does_not_say_which_side_it_was() -> None:
    orphan = process(ORPHAN, holds=True)
    looks = (glance(11.1, BASELINE + HELD, pid1(), orphan), glance(42.0, BASELINE), glance(44, BASELINE))
    assert answer(life(*ordinary(*looks), gone_s=42.5), Row.ORPHAN).word is Word.UNKNOWN


def test_an_orphan_is_not_said_to_have_died_with_a_pid_1_that_nobody_saw() -> None:
    worker, orphan = process(KILLED, holds=True), process(ORPHAN, holds=True)
    looks = (
        glance(1.0, BASELINE),
        glance(2.2, BASELINE + HELD, worker),
        glance(5.2, BASELINE),
        glance(8.2, BASELINE + HELD, orphan),
        *ALL_WELL,
    )
    assert answer(life(*looks), Row.ORPHAN).word is Word.UNKNOWN


@pytest.mark.parametrize("row", [Row.ORPHAN, Row.AFTER_DELETION, Row.REBOOT])
def test_what_is_still_there_when_watching_ends_too_early_does_not_stay(row: Row) -> None:
    orphan = process(ORPHAN, holds=True)
    track = life(*ordinary(glance(20.0, BASELINE + HELD, orphan)), gone_s=None)
    assert answer(track, row).word is Word.UNKNOWN


def test_nobody_looked_after_the_deletion_is_unknown_and_not_alive() -> None:
    assert answer(life(*ordinary()), Row.ORPHAN).word is Word.UNKNOWN


@pytest.mark.parametrize(("seconds", "word"), [(4.9, Word.UNKNOWN), (5.0, Word.YES)])
def test_memory_without_a_process_is_left_over_only_after_the_drivers_own_time(seconds: float, word: Word) -> None:
    looks = (
        glance(1.0, BASELINE),
        glance(2.2, BASELINE + HELD, pid1(), process(KILLED, holds=True)),
        glance(KILLED_S + seconds, BASELINE + HELD, pid1()),
    )
    track = life(*looks)
    later = [msgspec.structs.replace(one, at=at(20.0)) if one.what is What.RESPAWN else one for one in track.repetition.marks]
    repetition = msgspec.structs.replace(track.repetition, marks=tuple(later))
    assert answer(Track(repetition, track.stretches, track.devices), Row.KILLED_CONTEXT).word is word


BROKEN_OFF_S = 6.0
CLEANED_UP = (glance(6.5, BASELINE), glance(9.0, BASELINE))


@pytest.mark.parametrize(
    ("after_kill", "reaped", "context"),
    [
        (glance(5.4, BASELINE, pid1()), Word.YES, Word.NO),
        (glance(5.4, BASELINE, pid1(), process(KILLED, state="Z")), Word.UNKNOWN, Word.NO),
        (glance(5.4, BASELINE + HELD, pid1(), process(KILLED, state="Z")), Word.UNKNOWN, Word.UNKNOWN),
    ],
)
def test_of_a_session_that_was_broken_off_only_what_was_seen_before_counts(after_kill: Glance, reaped: Word, context: Word) -> None:
    """The clean-up ends everything: what is gone after it says nothing about who reaps."""
    before = (glance(1.0, BASELINE), glance(2.2, BASELINE + HELD, pid1(), process(KILLED, holds=True)))
    track = life(*before, after_kill, *CLEANED_UP, broken_off_s=BROKEN_OFF_S, log_whole=False)
    assert {row: answer(track, row).word for row in Row} == {
        Row.REAPED: reaped,
        Row.ORPHAN: Word.UNKNOWN,
        Row.CLEAN_UP: Word.UNKNOWN,
        Row.KILLED_CONTEXT: context,
        Row.AFTER_DELETION: Word.UNKNOWN,
        Row.REBOOT: Word.UNKNOWN,
    }


def test_an_orphan_that_the_clean_up_ended_was_not_ended_by_the_deletion() -> None:
    orphan = process(ORPHAN, holds=True)
    looks = (glance(11.2, BASELINE + HELD, pid1(), orphan), glance(13.0, BASELINE + HELD, pid1(), orphan), glance(13.2, BASELINE))
    assert answer(life(*ordinary(*looks), broken_off_s=12.5), Row.ORPHAN).word is Word.UNKNOWN


def test_a_log_that_was_not_read_says_nothing_about_clean_up() -> None:
    assert answer(life(*ordinary(*ALL_WELL), log=None), Row.CLEAN_UP).word is Word.UNKNOWN


def test_what_stays_is_answered_by_a_proposal_and_by_no_act() -> None:
    track = life(*ordinary(glance(60.0, BASELINE + HELD)))
    said = answer(track, Row.REBOOT, ("GPU 0 is GHOST_CONTEXT: reset that GPU",))
    assert (said.word, said.sentence) == (Word.PROPOSED, "proposed, not done: GPU 0 is GHOST_CONTEXT: reset that GPU")


def test_what_the_worker_held_is_what_it_added() -> None:
    assert held_bytes(life(*ordinary(*ALL_WELL))) == HELD


def test_the_end_of_the_object_is_an_interval_too() -> None:
    assert within(life(*ordinary(*ALL_WELL)), Figure.OBJECT_GONE) == Interval(after_s=0.8, by_s=1.0)
