"""Did its launcher die? Often nobody can know, and then nobody may say so."""

import pytest

from steps.adapters.procfs.adoption import START_MARGIN_S, Relatives, adopted
from steps.adapters.procfs.stat import Stat
from steps.contracts.document import State

TICKS = 100
MARGIN = int(START_MARGIN_S * TICKS)


def process(*, pid: int = 50, parent: int = 10, group: int = 50, session: int = 50, start: int = 5000, state: str = "S") -> Stat:
    return Stat(pid, "train", state, parent, group, session, 1, start)


def around(
    *,
    session_leader: Stat | None = None,
    group_leader: Stat | None = None,
    parent: Stat | None = None,
    parent_pid_in_namespace: int | None = 7,
    parent_executable: str | None = "/usr/bin/bash",
    in_container: bool = True,
) -> Relatives:
    return Relatives(session_leader, group_leader, parent, parent_pid_in_namespace, parent_executable, in_container)


def leader(pid: int, start: int = 100, state: str = "S", session: int | None = None) -> Stat:
    session = pid if session is None else session
    return process(pid=pid, parent=1, group=pid, session=session, start=start, state=state)


def test_with_its_leaders_and_a_parent_of_its_own_alive_there_is_no_sign() -> None:
    family = around(session_leader=leader(20), group_leader=leader(30), parent=leader(30, session=20))
    assert adopted(process(group=30, session=20), family, TICKS).known() is False


@pytest.mark.parametrize("dead", [None, leader(20, state="Z"), leader(20, start=5001)])
def test_a_session_leader_that_is_gone_a_zombie_or_younger_is_dead(dead: Stat | None) -> None:
    assert adopted(process(session=20), around(session_leader=dead, parent=leader(10)), TICKS).known() is True


def test_a_session_leader_of_the_same_age_lives() -> None:
    family = around(session_leader=leader(20, start=5000), parent=leader(10))
    assert adopted(process(session=20), family, TICKS).known() is False


def test_a_dead_group_leader_and_a_parent_of_another_session_is_an_orphan() -> None:
    family = around(session_leader=leader(20), parent=leader(10, session=10))
    assert adopted(process(group=30, session=20), family, TICKS).known() is True


def test_a_dead_group_leader_below_the_shell_of_the_session_can_be_the_end_of_a_pipeline() -> None:
    family = around(session_leader=leader(20), parent=leader(20))
    sample = adopted(process(parent=20, group=30, session=20), family, TICKS)
    assert (sample.value, sample.state) == (None, State.ABSENT)


def test_a_child_of_a_containers_pid_1_looks_the_same_as_an_adopted_one() -> None:
    sample = adopted(process(), around(parent=leader(10, start=100), parent_pid_in_namespace=1), TICKS)
    assert (sample.value, sample.state) == (None, State.ABSENT)


@pytest.mark.parametrize(
    ("late_ticks", "known"), [(MARGIN - 1, None), (MARGIN, None), (MARGIN + 1, True)], ids=["before", "exactly", "after"]
)
@pytest.mark.parametrize("init", ["/sbin/tini", "/usr/bin/dumb-init", "/pause", "/tini (deleted)"])
def test_a_child_of_an_init_that_only_adopts_is_adopted_if_it_started_late(init: str, late_ticks: int, known: bool | None) -> None:
    family = around(parent=leader(10, start=5000 - late_ticks), parent_pid_in_namespace=1, parent_executable=init)
    assert adopted(process(start=5000), family, TICKS).known() is known


def test_a_child_of_an_application_as_pid_1_may_have_been_started_late_by_it() -> None:
    family = around(parent=leader(10, start=0), parent_pid_in_namespace=1, parent_executable="/opt/venv/bin/python3")
    assert adopted(process(start=10**9), family, TICKS).known() is None


def test_a_service_below_the_hosts_pid_1_is_no_orphan() -> None:
    family = around(parent=leader(1), parent_pid_in_namespace=1, in_container=False, parent_executable="/usr/lib/systemd/systemd")
    assert adopted(process(parent=1), family, TICKS).known() is False


@pytest.mark.parametrize(("group", "session"), [(0, 50), (50, 0)])
def test_leaders_outside_the_readers_namespace_are_not_dead_but_unknown(group: int, session: int) -> None:
    assert adopted(process(group=group, session=session), around(parent=leader(10)), TICKS).known() is None
