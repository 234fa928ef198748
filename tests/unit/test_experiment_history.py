"""Minutes of looks become a few stretches, and nothing that mattered is lost in that."""

from experiments.zombie.watch.history import History
from tests.unit.experiment_world import BASELINE, GPU, HELD, KILLED, POD, at, glance, pid1, process

OLD = ("11111111-0000-4000-8000-000000000000", "session", GPU)
NEW = (POD, "session", GPU)


def test_looks_that_saw_the_same_are_one_stretch_with_its_ends() -> None:
    history = History()
    for tenth in range(10):
        history.add(glance(tenth / 10, BASELINE, pid1()))
    (stretch,) = history.stretches
    assert (stretch.first_at, stretch.last_at, stretch.looks, history.looks) == (at(0), at(0.9), 10, 10)


def test_a_change_of_one_look_is_kept() -> None:
    history = History()
    for seconds, used in ((0, BASELINE), (0.1, BASELINE + HELD), (0.2, BASELINE)):
        history.add(glance(seconds, used))
    assert [stretch.looks for stretch in history.stretches] == [1, 1, 1]


def test_the_longest_gap_is_what_was_kept_and_not_what_was_hoped_for() -> None:
    history = History()
    for seconds in (0, 0.15, 0.75, 0.9):
        history.add(glance(seconds, BASELINE))
    assert history.longest_gap_s == 0.6


def test_only_devices_given_while_we_watch_make_a_session() -> None:
    history = History()
    history.add(glance(0, BASELINE, given=[OLD]))
    history.add(glance(0.1, BASELINE, given=[OLD, NEW]))
    history.add(glance(0.2, BASELINE, given=[NEW]))
    assert (history.pods, [one.at for one in history.given]) == ((POD,), [at(0.1)])


def test_a_helper_that_comes_and_goes_is_no_reason_for_a_full_look_but_a_zombie_is() -> None:
    history = History()
    history.add(glance(0, BASELINE, pid1()))
    assert not history.add(glance(0.1, BASELINE, pid1(), process(30, name="observe")))
    assert history.add(glance(0.2, BASELINE, pid1(), process(KILLED, state="Z")))


def test_memory_left_over_is_noticed_and_so_is_memory_that_cannot_be_read() -> None:
    for last, left_over in ((BASELINE, False), (BASELINE + HELD, True), (None, True)):
        history = History()
        history.add(glance(0, BASELINE))
        history.add(glance(1, last))
        assert history.left_over is left_over
