"""How single facts are shown: unknown as unknown with its reason, never as 0 or blank. Pure."""

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from steps.contracts.decision import Verdict
from steps.contracts.document import Sample
from steps.contracts.release import ReleaseVerdict
from steps.contracts.traced import GpuClass
from steps.decide.wording import say_unknown

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shown:
    """A fact in words. tone: good, bad, warn, unknown or plain; words never depend on it."""

    text: str
    tone: str = "plain"


VERDICT_TONES: Final[Mapping[Verdict, str]] = {
    Verdict.RECLAIM: "act",
    Verdict.DEFERRED: "warn",
    Verdict.UNKNOWN: "unknown",
    Verdict.REFUSED: "warn",
    Verdict.KEEP: "plain",
}

RELEASE_TONES: Final[Mapping[ReleaseVerdict, str]] = {
    ReleaseVerdict.RETURNED: "good",
    ReleaseVerdict.TAKEN_OVER: "good",
    ReleaseVerdict.LEAKED: "bad",
    ReleaseVerdict.PENDING: "warn",
    ReleaseVerdict.UNKNOWN: "unknown",
}

LEAKING: Final = frozenset(
    {
        GpuClass.POD_GONE_LIVE,
        GpuClass.ZOMBIE_THREADED,
        GpuClass.HIDDEN_HOLDER,
        GpuClass.ORPHAN_LIVE,
        GpuClass.STUCK_D,
        GpuClass.GHOST_CONTEXT,
        GpuClass.GPU_LOST,
    }
)
"""Headlines that somebody must look at."""

DIM: Final = frozenset(
    {
        GpuClass.UNKNOWN,
        GpuClass.BLIND,
        GpuClass.ABI_MISMATCH,
        GpuClass.ACTIVITY_UNKNOWN,
        GpuClass.ACTIVITY_UNKNOWN_SHARED,
    }
)
"""Headlines that say that something is not known."""


def gpu_tone(headline: GpuClass) -> str:
    if headline in LEAKING:
        return "bad"
    if headline in DIM:
        return "unknown"
    if headline in (GpuClass.PHANTOM_UTIL, GpuClass.IDLE_HOLDER, GpuClass.LOW_EFFICIENCY, GpuClass.STALE_NVML_PID):
        return "warn"
    return "good" if headline is GpuClass.ACTIVE else "plain"


def show(sample: Sample[T], say: Callable[[T], str]) -> Shown:
    """The value in words, or `unknown` with the reason. What does not apply is said as that."""
    value = sample.known()
    return Shown(say(value)) if value is not None else Shown(f"unknown: {say_unknown(sample)}", "unknown")


def as_sentence(clause: str) -> str:
    """A clause with a capital letter and a full stop."""
    return clause[:1].upper() + clause[1:].rstrip(".") + "."


def say_moment(moment: datetime | None) -> str:
    """To the second, with date and UTC."""
    return "unknown" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def plain(text: object) -> object:
    """Foreign text without what acts on a reader's screen: control and direction marks become visible codes."""
    if not isinstance(text, str) or hasattr(text, "__html__"):  # finished HTML of the template's own macros
        return text
    return "".join(f"\\u{ord(c):04x}" if unicodedata.category(c) in ("Cc", "Cf") and c != "\n" else c for c in text)
