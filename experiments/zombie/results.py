"""The results of the experiment, machine-readable: expected beside measured, n of N, and why they differ. Made by zombie-report."""

import enum
from datetime import datetime
from typing import Literal

from experiments.zombie.recording import Settings
from experiments.zombie.scenarios import Row, ScenarioId
from steps.contracts.document import Document, Sample, Stamp


class Word(enum.Enum):
    """What was measured, in one word or two; each belongs to the rows where it makes sense."""

    YES = "yes"
    NO = "no"
    FREE = "free"
    STAYS = "stays"
    LEFT = "left by itself"
    BY_HOOK = "until the preStop hook's SIGKILL"
    WITH_PID1 = "died with PID 1"
    AT_GRACE = "until the end of grace"
    ENDED = "ended, by what is not clear"
    NOT_NEEDED = "not needed"
    PROPOSED = "a remedy is proposed"
    UNKNOWN = "not measured"


class Judgement(enum.Enum):
    """open: the expectation left both ways open, and the measurement decides. mixed: repetitions disagree."""

    AS_EXPECTED = "as expected"
    OTHERWISE = "otherwise"
    OPEN = "was open, now measured"
    MIXED = "not stable"
    UNKNOWN = "not measured"


class Interval(Document, frozen=True, kw_only=True):
    """Seconds after the act: not yet at `after_s`, so at `by_s`. No single instant is claimed between two looks."""

    after_s: float
    by_s: float


class Figure(enum.Enum):
    """What is timed in every repetition."""

    ZOMBIE_GONE = "killed worker gone from the process table, after kill -9"
    FREE_AFTER_KILL = "memory free, after kill -9"
    ORPHAN_GONE = "orphan ended, after the deletion"
    FREE_AFTER_DELETE = "memory free, after the deletion"
    OBJECT_GONE = "object gone from the API, after the deletion"


class Measured(Document, frozen=True, kw_only=True):
    """One row in one repetition. sentence: with the evidence."""

    row: Row
    word: Word
    sentence: str


class Timed(Document, frozen=True, kw_only=True):
    """within None: it did not happen while we watched, or could not be seen."""

    figure: Figure
    within: Interval | None


class RepetitionResult(Document, frozen=True, kw_only=True):
    number: int
    pod_uid: str | None
    image_id: str | None
    measured: tuple[Measured, ...]
    timed: tuple[Timed, ...]
    held_bytes: int | None
    """Device memory that the worker added, as the node saw it."""
    recreated: tuple[str, ...]
    remedies: tuple[str, ...]
    """What a person may do about what stayed; proposed, never done."""
    failure: str | None


class Verdict(Document, frozen=True, kw_only=True):
    """One row of a scenario over its repetitions.

    measured: the word that most of those have that measured it, n of them. of: all repetitions, those that measured nothing too.
    """

    row: Row
    expected: str
    measured: Word
    n: int
    of: int
    judgement: Judgement
    sentence: str
    why: str


class ScenarioResult(Document, frozen=True, kw_only=True):
    """problem: why nothing was measured, or not all."""

    scenario: ScenarioId
    number: int
    title: str
    pid1: Sample[str]
    """What the container's PID 1 really was, read inside it."""
    verdicts: tuple[Verdict, ...]
    repetitions: tuple[RepetitionResult, ...]
    looks: int
    longest_gap_s: float | None
    problem: str | None


class Provenance(Document, frozen=True, kw_only=True):
    run: str
    tag: str
    commit: str
    node: str | None
    kernel: Sample[str]
    driver: Sample[str]
    gpus: tuple[str, ...]
    backend: str | None
    images: tuple[str, ...]
    waited_s: float
    """What the experiment waited for on purpose: graces and windows of observation. The rest of its time is its own cost."""
    took_s: float | None
    started_at: datetime | None
    finished_at: datetime | None


class ZombieResults(Document, frozen=True, kw_only=True):
    document: Literal["ZombieResults/1"] = "ZombieResults/1"
    stamp: Stamp
    provenance: Provenance
    settings: Settings | None
    scenarios: tuple[ScenarioResult, ...]
    missing: tuple[str, ...]
    """Scenarios that were asked for and left no recording, each with its reason."""


class ZombieSummary(Document, frozen=True, kw_only=True):
    """The summary line of a run. judgements: how many verdicts of each kind."""

    document: Literal["ZombieSummary/1"] = "ZombieSummary/1"
    run: str
    scenarios: int
    measured: int
    judgements: dict[str, int]
    problems: tuple[str, ...]
    report: str
