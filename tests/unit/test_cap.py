"""The cap of a sweep: its shards share it, and all of them together never exceed it."""

from hypothesis import example, given
from hypothesis import strategies as st

from steps.decide.cap import part_of


@given(st.integers(0, 1000), st.integers(1, 80), st.text(min_size=1, max_size=20))
@example(1000, 500, "sweep-1")
@example(3, 500, "sweep-1")
def test_the_parts_of_all_shards_add_up_to_the_cap_and_differ_by_one_at_most(cap: int, shards: int, run: str) -> None:
    parts = [part_of(cap, shard, shards, run) for shard in range(shards)]
    assert sum(parts) == cap
    assert max(parts) - min(parts) <= 1


def test_a_single_shard_has_the_whole_cap() -> None:
    assert part_of(3, 0, 1, "sweep-1") == 3


def test_a_second_try_of_a_run_gets_the_same_part() -> None:
    assert [part_of(2, 4, 7, "sweep-1") for _ in range(2)] == [part_of(2, 4, 7, "sweep-1")] * 2


def test_with_a_cap_of_one_every_shard_gets_its_turn_within_some_runs() -> None:
    turns = {shard for number in range(60) for shard in range(5) if part_of(1, shard, 5, f"sweep-{number}")}
    assert turns == {0, 1, 2, 3, 4}
