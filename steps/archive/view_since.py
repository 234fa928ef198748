"""The time since the earlier sweep as the report and a terminal show it. Pure."""

from dataclasses import dataclass
from typing import Final

from steps.archive.evidence import RunEvidence
from steps.archive.shown import RELEASE_TONES, Shown, as_sentence, show
from steps.contracts.continuity import Accounted, NodeWindow
from steps.decide.wording import say_bytes

GRAVITY: Final = ("bad", "unknown", "warn", "good")


@dataclass(frozen=True, slots=True)
class WindowRow:
    node: str
    window: Shown
    unexplained: Shown


@dataclass(frozen=True, slots=True)
class DepartedRow:
    """sentence: when it went, who is known to have watched, and what this sweep finds. held: by processes of its own."""

    pod: str
    uid: str
    node: str
    answer: Shown
    sentence: str
    held: Shown
    remembered: str


@dataclass(frozen=True, slots=True)
class SinceView:
    lead: str
    windows: tuple[WindowRow, ...]
    departed: tuple[DepartedRow, ...]
    gaps: tuple[str, ...]


def since_view(evidence: RunEvidence) -> SinceView | None:
    """None where the run is no sweep, or an older one without an account. What somebody must look at comes first."""
    since = evidence.since
    if since is None:
        return None
    return SinceView(
        lead=as_sentence(since.sentence),
        windows=tuple(_window(node) for node in since.nodes),
        departed=tuple(sorted(map(_departed, since.departed), key=lambda row: (GRAVITY.index(row.answer.tone), row.node, row.pod))),
        gaps=since.gaps,
    )


def _window(node: NodeWindow) -> WindowRow:
    known = node.unwatched_from is not None and node.unwatched_until is not None
    return WindowRow(
        node=node.node,
        window=Shown(as_sentence(node.sentence), "plain" if known else "unknown"),
        unexplained=show(node.unexplained_bytes, say_bytes),
    )


def _departed(one: Accounted) -> DepartedRow:
    pod = one.pod
    return DepartedRow(
        pod=f"{pod.namespace}/{pod.name}",
        uid=pod.uid,
        node=pod.node,
        answer=Shown(pod.answer.value, RELEASE_TONES[pod.answer]),
        sentence=as_sentence(one.sentence),
        held=show(pod.held_bytes, say_bytes),
        remembered="the next sweep answers for it again" if pod.remembered else "this is the last word on it",
    )
