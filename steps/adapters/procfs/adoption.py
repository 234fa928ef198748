"""Did the process that launched this one die? Pure; facts 4.6 and 4.7.

"Its parent is PID 1" alone says nothing: original children look the same. So the answer is often that nobody can know.
"""

from typing import Final, NamedTuple

from steps.adapters.procfs.stat import Stat
from steps.contracts.document import Sample, State

PURE_INITS: Final = frozenset({"tini", "tini-static", "docker-init", "dumb-init", "catatonit", "pause", "s6-svscan"})
"""PID 1s that start one program and then only adopt. A shell, or an application, also starts children late."""
START_MARGIN_S: Final = 60.0
"""A pure init's own child starts with it; one that starts this much later was adopted."""


class Relatives(NamedTuple):
    """What could be read around a process. None: no such process, or not readable from here.

    parent_pid_in_namespace: 1 if the parent is the PID 1 of a container; in_container: the process has a PID namespace of its own.
    """

    session_leader: Stat | None
    group_leader: Stat | None
    parent: Stat | None
    parent_pid_in_namespace: int | None
    parent_executable: str | None
    in_container: bool


def adopted(process: Stat, around: Relatives, ticks_per_second: int) -> Sample[bool]:
    """True: its launcher died. False: no sign of it. Absent: it looks the same either way, with the reason."""
    if process.session_id <= 0 or process.process_group <= 0:
        return Sample.absent("its session or process group lies outside the reader's PID namespace")
    if _leader_died(process, process.session_id, around.session_leader):
        return _yes("its session leader is dead")
    if _leader_died(process, process.process_group, around.group_leader):
        return _without_group_leader(process, around)
    if _is_child_of_pid_1(around):
        return _below_pid_1(process, around, ticks_per_second)
    return Sample.measured(False)


def _without_group_leader(process: Stat, around: Relatives) -> Sample[bool]:
    outsider = around.parent is None or around.parent.session_id != process.session_id
    if outsider or _is_child_of_pid_1(around):
        return _yes("its process group leader is dead and its parent did not launch the group")
    return Sample.absent("its process group leader is gone; the end of a shell pipeline looks the same")


def _below_pid_1(process: Stat, around: Relatives, ticks_per_second: int) -> Sample[bool]:
    if around.parent is not None and _is_pure_init(around.parent_executable):
        late_s = (process.start_time_ticks - around.parent.start_time_ticks) / ticks_per_second
        if late_s > START_MARGIN_S:
            return _yes(f"its parent is an init that only adopts, and it started {late_s:.0f} s after it")
    return Sample.absent("its parent is the container's PID 1: an original child and an adopted one look the same")


def _yes(reason: str) -> Sample[bool]:
    return Sample(value=True, state=State.MEASURED, reason=reason)


def _is_child_of_pid_1(around: Relatives) -> bool:
    return around.in_container and around.parent_pid_in_namespace == 1


def _leader_died(process: Stat, leader_pid: int, leader: Stat | None) -> bool:
    """No such process, a zombie, or a younger process that got its number. One that leads itself has no dead leader."""
    if leader_pid == process.pid:
        return False
    return leader is None or leader.is_zombie or leader.start_time_ticks > process.start_time_ticks


def _is_pure_init(executable: str | None) -> bool:
    return executable is not None and executable.removesuffix(" (deleted)").rsplit("/", 1)[-1] in PURE_INITS
