"""What the workflow engine recorded of a run: phases and outputs of its nodes. Read by archive, real or local alike."""

from typing import Literal

import msgspec

from steps.contracts.document import Document, Instant, Sample, Stamp


class NodeRecord(Document, frozen=True, kw_only=True):
    """One node of the run's tree. inputs, outputs: parameter name -> text. message: the engine's words."""

    name: str
    template: str
    kind: str
    phase: str
    message: str | None
    started_at: Instant | None
    finished_at: Instant | None
    inputs: dict[str, str]
    outputs: dict[str, str]
    pod: str | None = None


class RunRecord(Document, frozen=True, kw_only=True):
    document: Literal["RunRecord/1"] = "RunRecord/1"
    run: str
    uid: str
    template: str
    phase: str
    message: str | None
    parameters: dict[str, str]
    started_at: Instant | None
    finished_at: Instant | None
    nodes: tuple[NodeRecord, ...]


class HandOver(Document, frozen=True, kw_only=True):
    """Who got a device after it came back. after_stop_s: from the stop to the taker's start. sentence: if nobody took it,
    the scheduler's words."""

    device: str
    node: str
    pod_uid: str | None
    pod: str | None
    namespace: str | None
    running_at: Instant | None
    after_stop_s: float | None
    sentence: str


class EvidenceSummary(Document, frozen=True, kw_only=True):
    """The summary line of a run, and `summary.json` of its evidence folder."""

    document: Literal["EvidenceSummary/1"] = "EvidenceSummary/1"
    stamp: Stamp
    run: str
    phase: str
    sessions_judged: int
    verdicts: dict[str, int]
    stops_acted: int
    stops_refused: int
    releases: dict[str, int]
    hand_overs: tuple[HandOver, ...]
    missing: tuple[str, ...]
    """What the evidence should hold and does not, each with its reason."""
    report: Sample[str]
    since: str | None = None
    """How the sweep joins the one before it, in one sentence; None where the run is no sweep."""
    departed: dict[str, int] = msgspec.field(default_factory=dict)
    """Answers on the pods that earlier sweeps saw and this one did not: how many of each."""
