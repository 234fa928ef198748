"""The policy a platform engineer writes. Small now; unknown fields are refused with a sentence."""

import enum
from typing import Annotated

import msgspec

from steps.contracts.document import Document


class Mode(enum.Enum):
    """observe: decide and report only. act: stop, if the run also says dry-run=false."""

    OBSERVE = "observe"
    ACT = "act"


Seconds = Annotated[int, msgspec.Meta(ge=0, le=31 * 86400)]
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")]
AnnotationName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z", max_length=317
    ),
]
"""What the API server takes as the key of an annotation: any other would be an opt-out that nobody can set."""


class OptOut(Document, frozen=True, kw_only=True):
    """The annotation, on the top owner or on its namespace, that takes a session out."""

    annotation: AnnotationName = "gpu-reclaim.dev/exclude"


class Policy(Document, frozen=True, kw_only=True):
    """namespaces: the ones that opted in, by name; an empty list means none."""

    mode: Mode
    namespaces: tuple[Name, ...]
    idle_after_s: Seconds = 3600
    minimum_age_s: Seconds = 1800
    opt_out: OptOut = OptOut()
    max_stops_per_sweep: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 1
