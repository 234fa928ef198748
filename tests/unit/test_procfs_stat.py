"""The texts of /proc, whose names are chosen by hostile processes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steps.adapters.procfs.stat import parse_stat, parse_status
from tests.unit.proc_tree import stat_line


@pytest.mark.parametrize("name", ["python3", "a) Z 1 (b x", ") Z 1", "((", "", "a\nb", "VLLM::EngineCor"])
def test_the_state_stands_after_the_last_bracket_whatever_the_name_says(name: str) -> None:
    stat = parse_stat(stat_line(42, name, state="S", parent=7, group=5, session=3, threads=9, start=123456).encode())
    assert stat is not None
    assert (stat.pid, stat.name, stat.state, stat.parent_pid, stat.process_group, stat.session_id) == (42, name, "S", 7, 5, 3)
    assert (stat.threads, stat.start_time_ticks, stat.is_zombie) == (9, 123456, False)


@pytest.mark.parametrize(("state", "zombie"), [("Z", True), ("X", True), ("S", False), ("D", False), ("R", False)])
def test_a_zombie_is_one_by_its_state(state: str, zombie: bool) -> None:
    stat = parse_stat(stat_line(1, state=state).encode())
    assert stat is not None
    assert stat.is_zombie is zombie


@pytest.mark.parametrize("content", [b"", b"42", b"42 (name", b"42 (name) S 1 2", b"x (y) S " + b"1 " * 20, b")("])
def test_a_stat_line_that_is_cut_short_is_none(content: bytes) -> None:
    assert parse_stat(content) is None


@given(st.binary(max_size=300))
def test_no_text_makes_the_parser_raise(content: bytes) -> None:
    parse_stat(content)


@pytest.mark.parametrize(
    ("signals", "pending"),
    [
        ("SigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\n", True),
        ("SigPnd:\t0000000000000100\nShdPnd:\t0000000000000000\n", True),
        ("SigPnd:\t0000000000000000\nShdPnd:\t0000000000004000\n", False),  # SIGTERM only
        ("", False),
    ],
)
def test_a_kill_that_was_sent_and_not_acted_on_is_seen(signals: str, pending: bool) -> None:
    assert parse_status(f"Name:\tx\n{signals}".encode()).kill_pending is pending


def test_the_pids_of_all_namespaces_are_read() -> None:
    assert parse_status(b"Name:\tx\nNSpid:\t4711\t17\t1\n").namespace_pids == (4711, 17, 1)
    assert parse_status(b"Name:\tx\n").namespace_pids == ()
