"""The idle clocks: what restarts them, and that nothing advances them."""

from datetime import datetime, timedelta

import msgspec
import pytest
from hypothesis import given as over
from hypothesis import strategies as st

from steps.contracts.decision import Memory, SessionMemory
from steps.decide.memory import Clock, Seen, clocks_of, longest_gap_of, next_memory
from tests.unit.judging import NOON, ago

SINCE, LAST_LOOK, START = ago(minutes=40), ago(minutes=5), ago(hours=6)
GAP = timedelta(minutes=30)


def seen(*, idle: bool = True, pods: tuple[str, ...] = ("pod-a-1",), started_at: datetime | None = START) -> Seen:
    return Seen(session_uid="uid-a", pod_uids=pods, idle=idle, started_at=started_at)


def memory(*, idle_since: datetime = SINCE, last_seen_at: datetime = LAST_LOOK, pods: tuple[str, ...] = ("pod-a-1",)) -> Memory:
    entry = SessionMemory(session_uid="uid-a", pod_uids=pods, idle_since=idle_since, last_seen_at=last_seen_at)
    return Memory(policy_hash="hash", written_at=last_seen_at, sessions=(entry,), first_run_under_policy="sweep-1")


def clock(before: Memory | None, now_seen: Seen) -> Clock:
    return clocks_of(before, [now_seen], NOON, GAP)["uid-a"]


def test_a_session_seen_idle_again_keeps_its_clock() -> None:
    assert clock(memory(), seen()) == Clock(SINCE)


def test_a_session_first_seen_idle_starts_its_clock_now() -> None:
    assert clock(None, seen()) == Clock(NOON)


def test_a_session_that_is_not_idle_has_no_clock_and_is_forgotten() -> None:
    clocks = clocks_of(memory(), [seen(idle=False)], NOON, GAP)
    after = next_memory(memory(), [seen(idle=False)], clocks, policy_hash="hash", run="sweep-2", now=NOON)
    assert clocks["uid-a"] == Clock(None)
    assert after.sessions == ()


def test_a_session_that_this_sweep_did_not_see_is_forgotten() -> None:
    assert next_memory(memory(), [], {}, policy_hash="hash", run="sweep-2", now=NOON).sessions == ()


@pytest.mark.parametrize(
    ("before", "now_seen", "why"),
    [
        (memory(pods=("pod-a-0",)), seen(), "its pods changed since the last look"),
        (memory(), seen(pods=("pod-a-1", "pod-a-2")), "its pods changed since the last look"),
        (memory(idle_since=NOON + timedelta(seconds=1)), seen(), "the remembered time lies in the future"),
        (memory(last_seen_at=NOON + timedelta(seconds=1)), seen(), "the remembered time lies in the future"),
        (memory(idle_since=ago(minutes=1)), seen(), "the remembered times contradict each other"),
        (memory(), seen(started_at=SINCE + timedelta(seconds=1)), "the remembered time lies before the start of its pods"),
        (memory(), seen(started_at=None), "the remembered time lies before the start of its pods"),
    ],
    ids=["other pods", "one pod more", "idle in the future", "seen in the future", "torn", "before the start", "no start"],
)
def test_a_doubtful_entry_is_discarded_and_the_clock_starts_now_with_the_reason(before: Memory, now_seen: Seen, why: str) -> None:
    assert clock(before, now_seen) == Clock(NOON, why)


@pytest.mark.parametrize(("seconds", "survives"), [(1799, True), (1800, True), (1801, False)])
def test_a_time_nobody_looked_that_is_too_long_restarts_the_clock(seconds: int, survives: bool) -> None:
    found = clock(memory(last_seen_at=ago(seconds=seconds)), seen())
    assert found.idle_since == (SINCE if survives else NOON)


def test_a_weekend_without_sweeps_is_said_and_makes_nobody_idle() -> None:
    """The last sweep of Friday found it idle for a minute; Monday's must not make 63 hours of that."""
    found = clock(memory(idle_since=ago(hours=63, minutes=1), last_seen_at=ago(hours=63)), seen(started_at=ago(hours=90)))
    why = "nobody looked for 2 d 15 h, and more than 30 min without a look proves nothing"
    assert found == Clock(NOON, why)


@pytest.mark.parametrize(("idle_after_s", "minutes"), [(0, 20), (1800, 20), (2400, 20), (2460, 20.5), (3600, 30), (86400, 720)])
def test_half_the_idle_limit_may_pass_between_two_looks_and_never_less_than_twenty_minutes(
    idle_after_s: int, minutes: float
) -> None:
    assert longest_gap_of(idle_after_s) == timedelta(minutes=minutes)


def test_a_clock_that_started_with_the_pod_itself_counts() -> None:
    assert clock(memory(), seen(started_at=SINCE)) == Clock(SINCE)


def test_what_is_remembered_is_since_when_and_for_which_pods() -> None:
    clocks = clocks_of(memory(), [seen()], NOON, GAP)
    after = next_memory(memory(), [seen()], clocks, policy_hash="hash", run="sweep-2", now=NOON)
    assert after == msgspec.structs.replace(
        memory(), written_at=NOON, sessions=(msgspec.structs.replace(memory().sessions[0], last_seen_at=NOON),)
    )


def test_a_new_policy_is_remembered_with_the_run_that_brought_it() -> None:
    after = next_memory(memory(), [], {}, policy_hash="new", run="sweep-9", now=NOON)
    assert (after.policy_hash, after.first_run_under_policy) == ("new", "sweep-9")


moments = st.datetimes(datetime(2026, 11, 29), datetime(2026, 12, 2)).map(lambda moment: moment.replace(tzinfo=NOON.tzinfo))  # noqa: DTZ001


@over(moments, moments, st.sampled_from([("pod-a-1",), ("pod-a-2",), ()]), st.one_of(st.none(), moments))
def test_no_memory_however_wrong_makes_a_session_look_idle_for_longer_than_its_pods_run(
    idle_since: datetime, last_seen_at: datetime, pods: tuple[str, ...], started_at: datetime | None
) -> None:
    found = clock(memory(idle_since=idle_since, last_seen_at=last_seen_at, pods=pods), seen(started_at=started_at)).idle_since
    assert found is not None
    assert found <= NOON
    assert found == NOON or (found == idle_since and started_at is not None and started_at <= found)
