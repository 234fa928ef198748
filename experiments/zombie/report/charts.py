"""One session as a picture: who lived when, how much memory the device held, what was done. Geometry only, no markup. Pure.

Times are seconds since the session was created; a moment between two looks is drawn as the interval it is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from experiments.zombie.drive.words import Line, moments
from experiments.zombie.recording import Stretch, WatchedProcess, What
from experiments.zombie.report.track import Track, found_in

WIDTH: Final = 480.0
LEFT: Final = 8.0
RIGHT: Final = 8.0
TOP: Final = 30.0
LANE: Final = 34.0
MEMORY_HEIGHT: Final = 110.0
AXIS: Final = 26.0
GIB: Final = 1 << 30
MIB: Final = 1 << 20
TICKS_S: Final = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
SAID: Final = {
    "prestop.began": "preStop hook: SIGTERM",
    "prestop.killing": "preStop hook: SIGKILL",
    "gpu_worker.sigterm_ignored": "worker ignores SIGTERM",
    "gpu_worker_fixed.cleanup_done": "worker has cleaned up",
}
ACTS: Final = {
    What.SPAWN: "parent starts the worker and leaves",
    What.KILL: "kill -9 to the worker",
    What.RESPAWN: "a second worker is started",
    What.DELETE: "the session is deleted",
    What.GONE: "object gone from the API",
    What.RECREATED: "somebody made it again",
}


@dataclass(frozen=True)
class Segment:
    """kind: alive, zombie, stuck, object, or unsure."""

    x: float
    width: float
    kind: str


@dataclass(frozen=True)
class Lane:
    y: float
    label: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class Act:
    """A numbered moment: a line in the picture, words below it."""

    number: int
    x: float
    badge_x: float
    after_s: float
    words: str


@dataclass(frozen=True)
class Tick:
    place: float
    words: str


@dataclass(frozen=True)
class Chart:
    width: float
    height: float
    lanes: tuple[Lane, ...]
    acts: tuple[Act, ...]
    memory: tuple[str, ...]
    """Paths of the filled area; one for each unbroken run of known readings."""
    unknown: tuple[Segment, ...]
    memory_top: float
    memory_bottom: float
    y_ticks: tuple[Tick, ...]
    x_ticks: tuple[Tick, ...]
    words: str
    """What the picture shows, for who cannot see it."""


def chart(track: Track) -> Chart | None:
    """None if there is no session to draw."""
    began, stretches = track.moment(What.CREATE), track.stretches
    if began is None or not stretches:
        return None
    ends = stretches[-1].last_at
    gone = track.mark(What.GONE)
    span_s = max(1.0, (ends - began).total_seconds())

    def x(moment: datetime) -> float:
        share = min(1.0, max(0.0, (moment - began).total_seconds() / span_s))
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    until = ends if gone is None else gone.until or gone.at
    lanes = [Lane(TOP, "pod object", (_segment(x, began, until, "object"),))]
    for place, (label, process) in enumerate(_cast(track), start=1):
        lanes.append(Lane(TOP + place * LANE, label, tuple(_life(track, process, x))))
    top = TOP + len(lanes) * LANE + 22
    bottom = top + MEMORY_HEIGHT
    highest = max([used for one in stretches if (used := track.used(one)) is not None], default=MIB)
    scale = _nice(highest)
    return Chart(
        width=WIDTH,
        height=bottom + AXIS,
        lanes=tuple(lanes),
        acts=tuple(_acts(track, began, x)),
        memory=tuple(_areas(track, x, top, bottom, scale)),
        unknown=tuple(_segment(x, one.first_at, one.last_at, "unsure") for one in stretches if track.used(one) is None),
        memory_top=top,
        memory_bottom=bottom,
        y_ticks=tuple(_y_ticks(scale, bottom)),
        x_ticks=tuple(_x_ticks(span_s, lambda s: round(LEFT + s / span_s * (WIDTH - LEFT - RIGHT), 1))),
        words=f"{len(lanes) - 1} processes and the memory of the device over {span_s:.0f} s",
    )


def _cast(track: Track) -> Iterator[tuple[str, WatchedProcess]]:
    """Who is drawn: PID 1, the worker that is killed, the one that lives at the deletion, and whoever else had the device."""
    shown: set[int] = set()
    known = ((1, "PID 1"), (track.repetition.killed_pid, "first worker"), (track.repetition.orphan_pid, "second worker"))
    for number, label in known:
        process = track.worker(number)
        if process is not None and process.pid not in shown:
            shown.add(process.pid)
            yield f"{label} ({_name(track, process)})", process
    for stretch in track.stretches:
        for process in stretch.processes:
            if (process.holds or process.in_nvml) and process.pid not in shown:
                shown.add(process.pid)
                yield f"child {process.name} ({process.pid_in_container or process.pid})", process


def _name(track: Track, process: WatchedProcess) -> str:
    """The last one it had: a container's first process is the runtime's until it becomes the program."""
    seen = [found.name for stretch in track.stretches if (found := found_in(stretch, process)) is not None]
    return seen[-1] if seen else process.name


def _life(track: Track, process: WatchedProcess, x: Callable[[datetime], float]) -> Iterator[Segment]:
    """Its time in each state, joined over the looks that saw the same."""
    runs: list[tuple[str, datetime, datetime]] = []
    for stretch in track.stretches:
        kind = _kind(stretch, process)
        if kind is None:
            continue
        if runs and runs[-1][0] == kind:
            runs[-1] = (kind, runs[-1][1], stretch.last_at)
        else:
            runs.append((kind, stretch.first_at, stretch.last_at))
    yield from (_segment(x, since, until, kind) for kind, since, until in runs)


def _kind(stretch: Stretch, process: WatchedProcess) -> str | None:
    found = found_in(stretch, process)
    if found is None:
        return None
    return {"Z": "zombie", "X": "zombie", "D": "stuck"}.get(found.state, "alive")


def _segment(x: Callable[[datetime], float], since: datetime, until: datetime, kind: str) -> Segment:
    return Segment(x(since), round(max(1.5, x(until) - x(since)), 1), kind)


def _acts(track: Track, began: datetime, x: Callable[[datetime], float]) -> Iterator[Act]:
    known = [(mark.at, ACTS[mark.what]) for mark in track.repetition.marks if mark.what in ACTS]
    known += [(at, SAID[line["event"]]) for at, line in _said(track) if line["event"] in SAID]
    room = 0.0
    for number, (at, words) in enumerate(sorted(known, key=lambda one: one[0]), start=1):
        place = x(at)
        badge = min(WIDTH - 9, max(place, room + 17, 9))
        room = badge
        yield Act(number, place, round(badge, 1), round((at - began).total_seconds(), 1), words)


def _said(track: Track) -> Sequence[tuple[datetime, Line]]:
    log = track.repetition.log.known()
    return [] if log is None else moments(log)


def _areas(track: Track, x: Callable[[datetime], float], top: float, bottom: float, scale: float) -> Iterator[str]:
    """Steps: a reading holds until the next look that saw another."""
    run: list[tuple[datetime, datetime, int]] = []
    for stretch in track.stretches:
        used = track.used(stretch)
        if used is None:
            if run:
                yield _path(run, x, top, bottom, scale)
            run = []
        else:
            run.append((stretch.first_at, stretch.last_at, used))
    if run:
        yield _path(run, x, top, bottom, scale)


def _path(
    run: Sequence[tuple[datetime, datetime, int]], x: Callable[[datetime], float], top: float, bottom: float, scale: float
) -> str:
    points = [f"M{x(run[0][0])} {bottom}"]
    for since, until, used in run:
        y = round(bottom - min(1.0, used / scale) * (bottom - top), 1)
        points += [f"L{x(since)} {y}", f"L{x(until)} {y}"]
    return " ".join([*points, f"L{x(run[-1][1])} {bottom}", "Z"])


def _nice(highest: int) -> float:
    """A round top for the memory axis, above the highest reading."""
    step = 512 * MIB
    while highest * 1.08 / step > 6:
        step *= 2
    return float((int(highest * 1.08) // step + 1) * step)


def _y_ticks(scale: float, bottom: float) -> Iterator[Tick]:
    step = next((one * MIB for one in (256, 512, 1024, 2048, 4096, 8192, 16384) if scale / (one * MIB) < 4), 20 * GIB)
    for number in range(1, int(scale // step) + 1):
        yield Tick(round(bottom - number * step / scale * MEMORY_HEIGHT, 1), _size(number * step))


def _size(reading: float) -> str:
    return f"{reading / GIB:.3g} GiB"


def _x_ticks(span_s: float, x: Callable[[float], float]) -> Iterator[Tick]:
    step = next((one for one in TICKS_S if span_s / one <= 8), TICKS_S[-1])
    for number in range(int(span_s // step) + 1):
        yield Tick(x(number * step), f"{number * step} s")
