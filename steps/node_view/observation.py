"""The document of `gpu-reclaim observe`: eight checks, whom they suspect, what follows. A check that could not be made says so."""

import enum
from typing import Literal

from steps.contracts.document import Document, Sample
from steps.contracts.node_facts import NodeFacts
from steps.contracts.ports import ProcessTree
from steps.node_view.picture import Answer


class Outcome(enum.Enum):
    """fine, problem, or not seen: the check could not be made, or not wholly, from here."""

    FINE = "fine"
    PROBLEM = "problem"
    NOT_SEEN = "not seen"


class Check(Document, frozen=True, kw_only=True):
    number: int
    title: str
    outcome: Outcome
    lines: tuple[str, ...]


class Suspect(Document, frozen=True, kw_only=True):
    """A process that has to do with a GPU, or is dead. in_nvml, holds_device: unknown where this place cannot tell."""

    pid: int
    name: str
    state: str | None
    alive: bool
    in_nvml: Sample[bool]
    holds_device: Sample[bool]
    verdict: str
    problem: bool


class Observation(Document, frozen=True, kw_only=True):
    """place: container or node. tree and facts are what the checks were made of."""

    document: Literal["Observation/1"] = "Observation/1"
    place: str
    checks: tuple[Check, ...]
    suspects: tuple[Suspect, ...]
    answer: Answer
    tree: ProcessTree
    facts: NodeFacts
