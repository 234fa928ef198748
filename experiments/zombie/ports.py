"""What the experiment touches beside the steps' own outside: sessions it may make and end, fast looks, and its partner step."""

import enum
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from experiments.zombie.recording import Ending, WatchedGpu, WatchedProcess
from steps.contracts.cluster_facts import PodFacts
from steps.contracts.document import Document, Sample
from steps.contracts.ports import DeviceNode, Outside, Rejected


class Executed(Document, frozen=True, kw_only=True):
    """A command that ran in a container. code None: the server did not say."""

    code: int | None
    stdout: str
    stderr: str


class SessionSeen(Document, frozen=True, kw_only=True):
    """One pod of a session. started: its container runs. made_by: kind/name of its controller. problem: why it does not start."""

    facts: PodFacts
    started: bool
    image_id: str | None
    made_by: str | None
    labels: Mapping[str, str]
    problem: str | None


class LogToItsEnd(Protocol):
    """A pod log that is being read along."""

    def whole(self, within_s: float) -> Sample[str] | None:
        """The log with everything the container said; None if its end was not heard within so many seconds."""


class Sessions(Protocol):
    """The experiment's own namespace. Nothing outside of it can be reached through this."""

    def create(self, manifest: Mapping[str, object]) -> Rejected | None: ...
    def pods(self) -> tuple[SessionSeen, ...]:
        """All pods of the namespace. Raises SourceUnavailable."""

    def pod(self, name: str) -> SessionSeen | None: ...
    def execute(self, pod: str, argv: Sequence[str], *, timeout_s: float) -> Executed:
        """Raises SourceUnavailable if the command could not be started or did not end in time."""

    def log(self, pod: str) -> Sample[str]:
        """What the container has said so far."""

    def follow_log(self, pod: str) -> LogToItsEnd:
        """Read along from now on: the last words of a container go with its object, in a moment that no poll is sure to meet."""

    def end(self, pod: SessionSeen, how: Ending) -> Rejected | None:
        """End this very pod, by uid. GONE is a value."""

    def remove_deployment(self, name: str) -> Rejected | None: ...


class Watching(enum.Enum):
    """What drive knows of watch. refused: watch ended before it was ready, the GPU was not clean."""

    NOT_YET = "not yet"
    READY = "ready"
    ENDED = "ended"


class Partner(Protocol):
    """How the two pods of a scenario know of each other; neither needs a right over the other."""

    def watching(self) -> Watching: ...
    def driving(self) -> bool:
        """Whether drive of this scenario runs on this node now."""

    def say_ready(self) -> None: ...


class Glance(Document, frozen=True, kw_only=True):
    """One fast look, from `at` until `done_at`: what it saw may be of any moment between.

    given: (pod uid, container, device id) of every allocation there is.
    """

    at: datetime
    done_at: datetime
    gpus: tuple[WatchedGpu, ...]
    processes: tuple[WatchedProcess, ...]
    given: tuple[tuple[str, str, str], ...]


class Glances(Protocol):
    """Fast looks, from one opening of the driver's library to its closing."""

    def look(self, pods: Sequence[str]) -> Glance:
        """GPUs, holders, and every process of these pods."""

    def close(self) -> None: ...


class ZombieOutside(Protocol):
    """The outside of drive, watch and report."""

    @property
    def base(self) -> Outside: ...
    def sessions(self, namespace: str) -> Sessions: ...
    def partner(self, run: str, scenario: str) -> Partner: ...
    def glances(self, devices: Sequence[DeviceNode]) -> Glances:
        """devices: the driver's nodes as the full look found them. Raises SourceUnavailable."""

    def under_way(self, run: str) -> bool:
        """Whether a pod of drive or watch of this run has not ended. Raises SourceUnavailable."""

    def kernel(self) -> Sample[str]: ...
    def beside(self, work: Callable[[], None]) -> threading.Thread:
        """Begin work beside the fast looks, in a thread that keeps no process alive. On the simulator it is through at once."""

    def pace(self, seconds: float) -> None:
        """Let time pass between two acts of drive, or two looks of watch; on the simulator watch sets the pace."""
