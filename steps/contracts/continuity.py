"""How a sweep joins the one before it: the time in which nobody looked, and what became of every pod that was there then.

`Continuity` is made by decide for one shard; `Since` by archive for the whole run, with what others watched meanwhile.
"""

import enum
from typing import Literal

from steps.contracts.document import Document, Instant, Sample, Stamp
from steps.contracts.release import ReleaseVerdict
from steps.contracts.release_check import Answer
from steps.contracts.traced import GpuClass


class Departure(enum.Enum):
    """gone: the API server's list of its node lacks it. ended: listed, and it will run nothing more. out of sight: its node is in
    no part of the cluster that was looked at, so it may live."""

    GONE = "gone"
    ENDED = "ended"
    OUT_OF_SIGHT = "out of sight"


class NodeWindow(Document, frozen=True, kw_only=True):
    """The time in which no sweep looked at a node. unwatched_from: the last look that answered, None if none is remembered.
    unwatched_until: this sweep's first look, None if the node did not answer: then nobody has looked since.

    earlier_run: of the last look. unexplained_bytes: of all its GPUs now, beyond baseline and processes.
    """

    node: str
    earlier_run: str | None
    unwatched_from: Instant | None
    unwatched_until: Instant | None
    unexplained_bytes: Sample[int]
    sentence: str


class DepartedPod(Document, frozen=True, kw_only=True):
    """A pod that an earlier sweep saw and this one did not, and what this sweep's look at its node says of its GPU memory.

    It went between last_seen_at and first_missed_at. answer: in the words of Release. gpu_class: of what was left. held_bytes,
    pids: of its processes that still hold a GPU. remembered: the next sweep answers for it again; otherwise this is the last word.
    """

    uid: str
    namespace: str
    name: str
    node: str
    departure: Departure
    last_seen_at: Instant
    first_missed_at: Instant
    answer: ReleaseVerdict
    gpu_class: GpuClass | None
    held_bytes: Sample[int]
    pids: tuple[int, ...]
    taken_over_by: str | None
    pending_until: Instant | None
    sentence: str
    remembered: bool


class Continuity(Document, frozen=True, kw_only=True):
    """earlier_run: the last run whose memory this shard found, None: nothing is said of the time before this run.

    still_there: uids. Every pod remembered of earlier sweeps is in still_there or departed, once. not_remembered: pods for which
    the memory had no room; the next sweep does not miss them.
    """

    document: Literal["Continuity/1"] = "Continuity/1"
    stamp: Stamp
    run: str
    shard: int
    earlier_run: str | None
    nodes: tuple[NodeWindow, ...]
    still_there: tuple[str, ...]
    departed: tuple[DepartedPod, ...]
    not_remembered: int
    sentence: str


class Watch(Document, frozen=True, kw_only=True):
    """Somebody who looked at a departed pod's devices between two sweeps: a run of release-check, or the verify of a sweep's stop.

    answer: None if the run left none, or none on this departure (another node, too early, no deletion); `sentence` says which.
    """

    run: str
    step: str
    answer: Answer | None
    sentence: str
    watched_from: Instant | None
    watched_until: Instant | None


class Accounted(Document, frozen=True, kw_only=True):
    """A departed pod, and who watched. No watch: none of which evidence is there yet; a check may still run."""

    pod: DepartedPod
    watched: tuple[Watch, ...]
    sentence: str


class Since(Document, frozen=True, kw_only=True):
    """All shards of a run, each pod once. still_there: how many. gaps: what is not known of the time in between, and why."""

    document: Literal["Since/1"] = "Since/1"
    stamp: Stamp
    run: str
    sentence: str
    earlier_runs: tuple[str, ...]
    nodes: tuple[NodeWindow, ...]
    still_there: int
    departed: tuple[Accounted, ...]
    gaps: tuple[str, ...]
