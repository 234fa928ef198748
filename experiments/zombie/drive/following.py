"""Follows a pod's object from its deletion to its end, and keeps what its log says before it goes with it."""

from collections.abc import Callable
from datetime import datetime

from experiments.zombie.ports import Sessions, SessionSeen
from experiments.zombie.recording import Mark, What
from steps.contracts.cluster_facts import PodFacts
from steps.contracts.document import Sample


class Following:
    """look() once a poll. A pod of the same name and another uid means that ours is gone."""

    def __init__(self, sessions: Sessions, session: SessionSeen, now: Callable[[], datetime]) -> None:
        self._sessions, self._session, self._now = sessions, session, now
        self._last_there = now()
        self._accepted = False
        self.marks: list[Mark] = []
        self.seen: list[PodFacts] = []
        self.log: Sample[str] = Sample.absent("the log could not be read after the deletion was asked for")

    def look(self) -> bool:
        """True once the object is gone."""
        asked_at = self._now()
        found = self._sessions.pod(self._session.facts.name)
        if found is None or found.facts.uid != self._session.facts.uid:
            self.marks.append(Mark(at=self._last_there, until=self._now(), what=What.GONE))
            return True
        self._last_there = asked_at
        if found.facts.deletion_requested_at is not None and not self._accepted:
            self._accepted = True
            self.marks.append(Mark(at=self._now(), what=What.TERMINATING))
        self.seen = [found.facts]
        log = self._sessions.log(found.facts.name)
        if log.known() is not None:
            self.log = log
        return False
