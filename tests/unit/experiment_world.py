"""A session's recording, told look by look: what deviates stands in the test, the ordinary here."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from experiments.zombie.ports import Glance
from experiments.zombie.recording import Given, Mark, Repetition, Stretch, WatchedGpu, WatchedProcess, What
from experiments.zombie.report.track import Track
from experiments.zombie.watch.history import History
from steps.contracts.document import Sample

NOON: Final = datetime(2026, 11, 30, 12, tzinfo=UTC)
GPU: Final = "GPU-1"
POD: Final = "0a1b2c3d-0000-4000-8000-000000000001"
BASELINE: Final = 4 << 20
HELD: Final = 2048 << 20
KILLED: Final = 7
ORPHAN: Final = 9

SPAWNED_S: Final = 2.0
KILLED_S: Final = 5.0
RESPAWNED_S: Final = 8.0
DELETED_S: Final = 11.0
GRACE_S: Final = 30


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def process(pid: int, *, state: str = "S", holds: bool = False, name: str = "python3", pod: str | None = POD) -> WatchedProcess:
    """A process of the session, its number inside the container being `pid`."""
    return WatchedProcess(
        pid=4000 + pid,
        start_time_ticks=100 + pid,
        parent_pid=4001,
        state=state,
        name=name,
        pid_in_container=pid,
        pod_uid=pod,
        container_id="c" * 64,
        holds=holds,
        in_nvml=holds,
        nvml_bytes=HELD if holds else None,
    )


def pid1(name: str = "tini") -> WatchedProcess:
    return process(1, name=name)


def glance(
    seconds: float,
    used: int | None,
    *processes: WatchedProcess,
    given: Sequence[tuple[str, str, str]] = (),
    takes_s: float = 0.0,
) -> Glance:
    reading: Sample[int] = Sample.error("NVML did not answer") if used is None else Sample.measured(used)
    gpus = (WatchedGpu(uuid=GPU, used_bytes=reading),)
    return Glance(at=at(seconds), done_at=at(seconds + takes_s), gpus=gpus, processes=processes, given=tuple(given))


def stretches(*glances: Glance) -> tuple[Stretch, ...]:
    history = History()
    for one in glances:
        history.add(one)
    return history.stretches


def life(
    *glances: Glance,
    log: str | None = "",
    log_whole: bool = True,
    gone_s: float | None = 12.0,
    broken_off_s: float | None = None,
) -> Track:
    """A session that began at 0, with a worker at 2 that was killed at 5, a second one at 8, and its deletion at 11 s.

    broken_off_s: when it was broken off; of what was to come after that, nothing was done.
    """
    marks = [
        Mark(at=at(0), what=What.CREATE),
        Mark(at=at(SPAWNED_S), what=What.SPAWN),
        Mark(at=at(KILLED_S), what=What.KILL),
        Mark(at=at(RESPAWNED_S), what=What.RESPAWN),
        Mark(at=at(DELETED_S), what=What.DELETE, detail="delete"),
    ]
    if broken_off_s is not None:
        marks = [*(one for one in marks if one.at <= at(broken_off_s)), Mark(at=at(broken_off_s), what=What.BROKEN_OFF)]
    elif gone_s is not None:
        marks.append(Mark(at=at(gone_s - 0.2), until=at(gone_s), what=What.GONE))
    repetition = Repetition(
        number=1,
        pod_uid=POD,
        pods=(),
        image_id="sha256:abc",
        marks=tuple(marks),
        killed_pid=KILLED,
        orphan_pid=ORPHAN,
        after_spawn=None,
        after_kill=None,
        before_delete=None,
        log=Sample.absent("not read") if log is None else Sample.measured(log),
        log_whole=log_whole,
        recreated=(),
        failure=None,
    )
    return Track(repetition, stretches(*glances), (GPU,))


def ordinary(*after_delete: Glance, killed: Sequence[Glance] | None = None) -> tuple[Glance, ...]:
    """Looks up to the deletion in which all went well, then those given. killed: those between the kill and the second worker."""
    worker, orphan = process(KILLED, holds=True), process(ORPHAN, holds=True)
    gone = (glance(5.2, BASELINE, pid1()), glance(7.9, BASELINE, pid1()))
    return (
        glance(1.0, BASELINE),
        glance(2.2, BASELINE + HELD, pid1(), worker),
        glance(4.9, BASELINE + HELD, pid1(), worker),
        *(gone if killed is None else killed),
        glance(8.2, BASELINE + HELD, pid1(), orphan),
        glance(10.9, BASELINE + HELD, pid1(), orphan),
        *after_delete,
    )


ALL_WELL: Final = (glance(11.2, BASELINE), glance(14.0, BASELINE))
GIVEN: Final = Given(at=at(0.5), pod_uid=POD, container="session", device=GPU)
