"""What is said of a session follows from its recording: in words, as intervals, and as unknown where nobody saw."""

import json

import msgspec
import pytest

from experiments.zombie.recording import WatchedProcess
from experiments.zombie.report.measure import held_bytes, measure, timed
from experiments.zombie.report.track import Track
from experiments.zombie.results import Figure, Interval, Measured, Word
from experiments.zombie.scenarios import Row
from experiments.zombie.watch.history import ALLOWANCE_BYTES
from steps.contracts.cluster_facts import ContainerFacts, Phase, PodFacts
from tests.unit.experiment_world import (
    ALL_WELL,
    BASELINE,
    GRACE_S,
    HELD,
    KILLED,
    ORPHAN,
    POD,
    at,
    glance,
    life,
    ordinary,
    pid1,
    process,
)


def answer(track: Track, row: Row, remedies: tuple[str, ...] = ()) -> Measured:
    return next(one for one in measure(track, GRACE_S, remedies) if one.row is row)


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
    track = life(*ordinary(glance(11.2, BASELINE + left), glance(14.0, BASELINE + left)))
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


@pytest.mark.parametrize(("seconds", "word"), [(28.4, Word.WITH_PID1), (28.5, Word.AT_GRACE), (30.2, Word.AT_GRACE)])
def test_an_end_near_the_grace_is_put_down_to_its_end(seconds: float, word: Word) -> None:
    assert answer(held_until(seconds), Row.ORPHAN).word is word


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
