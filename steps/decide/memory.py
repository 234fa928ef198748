"""The idle clocks between sweeps. Pure: what was remembered and what is seen now give what to remember next.

A clock says "at every look since". Whatever breaks that proof restarts it: a sign of life, a look that could not tell,
other pods, a lost memory, and a time that nobody looked which is too long to vouch for. Nothing ever advances it; entries
from the future or from before the pods' start are discarded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from steps.contracts.decision import Memory, SessionMemory
from steps.decide.wording import say_span

ALWAYS_ALLOWED_GAP: Final = timedelta(minutes=20)
"""However short the idle limit is, sweeps this far apart count: nobody sweeps a cluster every few seconds."""


FULL_EVERY: Final = 6
"""At least every so many sweeps is a full one."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look says to the clock. pod_uids: sorted. started_at: of the youngest pod, None if not known.
    untold: a quick look without a sign of life, which can tell neither; the clock stays as if nobody had looked."""

    session_uid: str
    pod_uids: tuple[str, ...]
    idle: bool
    started_at: datetime | None
    untold: bool = False


@dataclass(frozen=True, slots=True)
class Clock:
    """idle_since: None while it is not idle. restarted: why an earlier clock does not count, None if none was lost."""

    idle_since: datetime | None
    restarted: str | None = None


def clocks_of(memory: Memory | None, seen: Sequence[Seen], now: datetime, longest_gap: timedelta) -> Mapping[str, Clock]:
    """The clock of every session seen, by session uid. longest_gap: what may lie between two looks (`longest_gap_of`)."""
    remembered = {} if memory is None else {entry.session_uid: entry for entry in memory.sessions}
    return {one.session_uid: _clock(remembered.get(one.session_uid), one, now, longest_gap) for one in seen}


def longest_gap_of(idle_after_s: int) -> timedelta:
    """The longest time between two looks that the idle clock survives: half the idle limit, so that a session is seen idle at
    least three times, or 20 minutes. Sweeps that pause over a weekend must not find everybody idle since Friday."""
    return max(timedelta(seconds=idle_after_s / 2), ALWAYS_ALLOWED_GAP)


def next_memory(
    memory: Memory | None,
    seen: Sequence[Seen],
    clocks: Mapping[str, Clock],
    *,
    policy_hash: str,
    run: str,
    now: datetime,
    quick: bool = False,
) -> Memory:
    """What to remember until the next sweep: the idle sessions of this look, and those of which a quick one could not tell.
    quick: whether any node was looked at quickly."""
    last_seen = {} if memory is None else {entry.session_uid: entry.last_seen_at for entry in memory.sessions}
    known_policy = memory is not None and memory.policy_hash == policy_hash
    sessions = []
    for one in sorted(seen, key=lambda s: s.session_uid):
        since = clocks[one.session_uid].idle_since
        if since is not None:
            seen_at = last_seen[one.session_uid] if one.untold else now
            sessions.append(
                SessionMemory(session_uid=one.session_uid, pod_uids=one.pod_uids, idle_since=since, last_seen_at=seen_at)
            )
    return Memory(
        policy_hash=policy_hash,
        written_at=now,
        sessions=tuple(sessions),
        first_run_under_policy=memory.first_run_under_policy if known_policy and memory is not None else run,
        quick_sweeps=quick_before(memory) + 1 if quick else 0,
    )


def why_too_quick(memory: Memory | None, *, quick: bool) -> str | None:
    """Why this sweep has to be a full one; None if it is, or need not be. What a quick one does not see must not stay unseen."""
    before = quick_before(memory)
    if not quick or before + 1 < FULL_EVERY:
        return None
    return f"the last {before} sweeps were quick, and every {FULL_EVERY}th at least must be full: run it with scan=full"


def quick_before(memory: Memory | None) -> int:
    """A count: nothing remembered is no quick sweep."""
    return 0 if memory is None else memory.quick_sweeps


def is_new_policy(memory: Memory | None, policy_hash: str, run: str) -> bool:
    """Whether this run is the first under this policy; a second try of the same run still is."""
    return memory is None or memory.policy_hash != policy_hash or memory.first_run_under_policy == run


def _clock(entry: SessionMemory | None, seen: Seen, now: datetime, longest_gap: timedelta) -> Clock:
    if seen.untold and entry is not None and _doubt(entry, seen, now, longest_gap) is None:
        return Clock(entry.idle_since)
    if not seen.idle:
        return Clock(None)
    if entry is None:
        return Clock(now)
    why_not = _doubt(entry, seen, now, longest_gap)
    return Clock(entry.idle_since) if why_not is None else Clock(now, why_not)


def _doubt(entry: SessionMemory, seen: Seen, now: datetime, longest_gap: timedelta) -> str | None:
    if entry.pod_uids != seen.pod_uids:
        return "its pods changed since the last look"
    if entry.idle_since > now or entry.last_seen_at > now:
        return "the remembered time lies in the future"
    if entry.idle_since > entry.last_seen_at:
        return "the remembered times contradict each other"
    if seen.started_at is None or entry.idle_since < seen.started_at:
        return "the remembered time lies before the start of its pods"
    gap = now - entry.last_seen_at
    if gap > longest_gap:
        return (
            f"nobody looked for {say_span(gap.total_seconds())}, and more than {say_span(longest_gap.total_seconds())} "
            "without a look proves nothing"
        )
    return None
