"""One process in full, once it is known to matter. No environment is read; the command line is redacted."""
# Paths are strings in here: they are made thousands of times a look, and a Path costs as much as the call.
# ruff: noqa: PTH115

import os
from typing import Final

from steps.adapters.procfs.adoption import Relatives, adopted
from steps.adapters.procfs.files import GONE, numbers_in, read, read_if_there
from steps.adapters.procfs.stat import Stat, Status, parse_stat, parse_status
from steps.adapters.redact import redact_command
from steps.contracts.document import Sample
from steps.contracts.node_facts import Hold, ProcessFacts

MAX_CGROUP_LINES: Final = 8
MAX_THREADS: Final = 256
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")


def stat_of(root: str, pid: int) -> Stat | None:
    """None: no such process."""
    content = read_if_there(f"{root}/{pid}/stat")
    return None if content is None else parse_stat(content)


def process_facts(root: str, pid: int, holds: tuple[Hold, ...]) -> ProcessFacts | None:
    """None if the process is gone, or its PID passed to another one while it was read."""
    before = stat_of(root, pid)
    if before is None:
        return None
    process = f"{root}/{pid}"
    task = _live_task(process, pid) if before.is_zombie and before.threads > 1 else process
    status = _status_of(root, pid)
    facts = ProcessFacts(
        pid=pid,
        start_time_ticks=before.start_time_ticks,
        parent_pid=before.parent_pid,
        process_group=before.process_group,
        session_id=before.session_id,
        state=before.state,
        name=before.name,
        executable=_executable(task, before),
        command=_command(task, before),
        threads=before.threads,
        cgroup=_cgroup(task),
        holds=holds,
        pid_in_container=status.namespace_pids[-1] if len(status.namespace_pids) > 1 else None,
        parent_executable=_link(f"{root}/{before.parent_pid}/exe"),
        adopted=adopted(before, _relatives(root, before, status), _TICKS_PER_SECOND),
        kill_pending=status.kill_pending,
        threads_in_d=_threads_in_d(process, before) if holds else (),
    )
    after = stat_of(root, pid)
    return facts if after is not None and after.start_time_ticks == before.start_time_ticks else None


def cgroup_lines(content: bytes) -> tuple[str, ...]:
    """The lines that can matter, one for each distinct path: a v1 or hybrid node repeats one path a dozen times.

    `/` stays only where it is all there is (a dying process on v1). Conflicting paths stay side by side (facts 1.2.9).
    """
    by_path: dict[str, str] = {}
    for line in content.decode("utf-8", "replace").splitlines():
        by_path.setdefault(line.split(":", 2)[-1], line)
    telling = [line for path, line in by_path.items() if path != "/"]
    return tuple(telling[:MAX_CGROUP_LINES]) or tuple(by_path.values())[:1]


def _live_task(process: str, leader: int) -> str:
    """The folder of a live thread: it keeps exe, command line and cgroup when the leader's are gone (facts 1.7, 4.2)."""
    try:
        threads = [thread for thread in numbers_in(f"{process}/task") if thread != leader]
    except OSError:
        return process
    return f"{process}/task/{threads[0]}" if threads else process


def _threads_in_d(process: str, leader: Stat) -> tuple[int, ...]:
    """Other threads of a live leader that are in uninterruptible sleep: the leader's own letter says nothing of them, and a kill
    waits for all. Of many threads the first MAX_THREADS are looked at."""
    if leader.is_zombie or leader.threads <= 1:
        return ()
    try:
        threads = [thread for thread in numbers_in(f"{process}/task") if thread != leader.pid]
    except OSError:
        return ()
    states = ((thread, read_if_there(f"{process}/task/{thread}/stat")) for thread in threads[:MAX_THREADS])
    return tuple(
        thread
        for thread, content in states
        if content is not None and (stat := parse_stat(content)) is not None and stat.state == "D"
    )


def _status_of(root: str, pid: int) -> Status:
    content = read_if_there(f"{root}/{pid}/status")
    return Status((), kill_pending=False) if content is None else parse_status(content)


def _executable(task: str, stat: Stat) -> Sample[str]:
    try:
        return Sample.measured(os.readlink(f"{task}/exe"))
    except GONE:
        return Sample.absent("a zombie has no program" if stat.is_zombie else "a kernel thread, or it just ended")
    except OSError as error:
        return Sample.error(f"exe cannot be read: {error.strerror}")


def _command(task: str, stat: Stat) -> Sample[str]:
    content = read_if_there(f"{task}/cmdline")
    if content is None:
        return Sample.error("cmdline cannot be read")
    arguments = content.rstrip(b"\0").split(b"\0")
    if arguments == [b""]:
        return Sample.absent("a zombie has no command line" if stat.is_zombie else "it has no command line")
    return Sample.measured(redact_command([argument.decode("utf-8", "replace") for argument in arguments]))


def _cgroup(task: str) -> Sample[tuple[str, ...]]:
    try:
        return Sample.measured(cgroup_lines(read(f"{task}/cgroup")))
    except OSError as error:
        return Sample.error(f"cgroup cannot be read: {error.strerror}")


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _relatives(root: str, process: Stat, status: Status) -> Relatives:
    parent_status = _status_of(root, process.parent_pid)

    def leader(pid: int) -> Stat | None:
        return process if pid == process.pid else stat_of(root, pid)

    session_leader = leader(process.session_id)
    same = process.process_group == process.session_id
    return Relatives(
        session_leader=session_leader,
        group_leader=session_leader if same else leader(process.process_group),
        parent=stat_of(root, process.parent_pid),
        parent_pid_in_namespace=parent_status.namespace_pids[-1] if parent_status.namespace_pids else None,
        parent_executable=_link(f"{root}/{process.parent_pid}/exe"),
        in_container=len(status.namespace_pids) > 1,
    )
