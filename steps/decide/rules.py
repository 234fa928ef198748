"""The ordered rules: each says verdict, reason and words, or nothing; the first that speaks wins.

Signs of life speak before gaps. The dangerous verdict is a rule of its own, never what is left over. Pure: no I/O, no clock.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from steps.contracts.decision import Reason, Verdict
from steps.contracts.document import State
from steps.contracts.policy import Policy
from steps.decide.cases import Case
from steps.decide.kinds import Signal, required_of
from steps.decide.wording import count_of, join_and, later, say_span, say_time


@dataclass(frozen=True, slots=True)
class Said:
    """What a rule says. eligible_at: when it would become reclaim if nothing changed, None if time alone changes nothing."""

    verdict: Verdict
    reason: Reason
    sentence: str
    would_change: str
    eligible_at: datetime | None = None


Rule = Callable[[Case, Policy, datetime], Said | None]


def guard_refuses(case: Case, policy: Policy, now: datetime) -> Said | None:
    """Opt-out, an autoscaler or GitOps that owns the count, volumes at risk, an owner that is not known or not supported."""
    guards = case.look.session.guards
    if not guards:
        return None
    return Said(
        Verdict.REFUSED,
        Reason.GUARDED,
        f"never stopped while this holds: {'; '.join(met.detail for met in guards)}",
        f"without {join_and([met.guard.value for met in guards])} it would be judged",
    )


def stopped_keeps(case: Case, policy: Policy, now: datetime) -> Said | None:
    if case.look.session.replicas > 0:
        return None
    leaving = count_of(len(case.look.pods), "pod")
    return Said(
        Verdict.KEEP,
        Reason.ALREADY_STOPPED,
        "it is at 0 replicas already" + (f"; {leaving} still going" if case.look.pods else ""),
        "scaled up again it would be judged anew",
    )


def empty_hands_keep(case: Case, policy: Policy, now: datetime) -> Said | None:
    """A session that waits for its GPU has nothing to give back; stopping it would only take it out of the queue."""
    if not case.look.holds_nothing:
        return None
    waiting = f"; {count_of(len(case.look.pods), 'pod')} still waiting for a node" if case.look.pods else ""
    return Said(Verdict.KEEP, Reason.HOLDS_NOTHING, f"it holds no GPU{waiting}", "once it holds a GPU it is judged")


def too_young_keeps(case: Case, policy: Policy, now: datetime) -> Said | None:
    """Setting up takes time, and a restarted pod starts anew. A pod that has not started has no age: too young as well.

    Where no pod was looked at there is no age to speak of; that is a gap, and silence_keeps speaks."""
    started = case.look.youngest_start.known()
    if case.look.youngest_start.state is State.NOT_APPLICABLE:
        return None
    if started is None:
        return Said(
            Verdict.KEEP,
            Reason.TOO_YOUNG,
            f"its age is not known yet: {case.look.youngest_start.reason}",
            f"its pods must have run for {say_span(policy.minimum_age_s)}",
        )
    age_s = (now - started).total_seconds()
    if age_s >= policy.minimum_age_s:
        return None
    of_age = later(started, policy.minimum_age_s)
    return Said(
        Verdict.KEEP,
        Reason.TOO_YOUNG,
        f"its youngest pod started at {say_time(started, now)} ({say_span(max(age_s, 0))} ago; "
        f"left alone for the first {say_span(policy.minimum_age_s)})",
        f"from {say_time(of_age, now)} on it is judged by its signals",
    )


def work_keeps(case: Case, policy: Policy, now: datetime) -> Said | None:
    signals = case.look.signals
    if signals.working.known() is not True:
        return None
    change = f"no GPU of any of its pods may work for {say_span(policy.idle_after_s)}, at every look"
    return Said(Verdict.KEEP, Reason.WORKING, signals.work_words, change)


def presence_keeps(case: Case, policy: Policy, now: datetime) -> Said | None:
    signals = case.look.signals
    if signals.present.known() is not True:
        return None
    change = f"nobody may be connected for {say_span(policy.idle_after_s)}, at every look"
    return Said(Verdict.KEEP, Reason.PRESENT, signals.presence_words, change)


def silence_keeps(case: Case, policy: Policy, now: datetime) -> Said | None:
    """A required signal that is unknown: never idle. A signal that nothing reads yet is unknown for kinds that require it."""
    signals, kind = case.look.signals, case.look.session.owner.kind
    required = required_of(kind)
    gaps = []
    if Signal.GPU_ACTIVITY in required and signals.working.known() is None:
        gaps.append(signals.work_words)
    if Signal.CONNECTIONS in required and signals.present.known() is None:
        gaps.append(signals.presence_words)
    if Signal.HEARTBEAT in required:
        gaps.append(f"{kind} sessions need a heartbeat, which nothing reads")
    if not gaps:
        return None
    return Said(
        Verdict.UNKNOWN,
        Reason.SIGNAL_UNKNOWN,
        f"kept, because {join_and(gaps)}",
        f"once that can be read it must be idle for {say_span(policy.idle_after_s)}; what was not seen does not count",
    )


def short_idle_keeps(case: Case, policy: Policy, now: datetime) -> Said | None:
    since = case.clock.idle_since
    if since is None or (now - since).total_seconds() >= policy.idle_after_s:
        return None
    eligible = later(since, policy.idle_after_s)
    anew = f"; the clock started anew because {case.clock.restarted}" if case.clock.restarted else ""
    return Said(
        Verdict.KEEP,
        Reason.IDLE_TOO_SHORT,
        idle_words(case, since, policy, now) + anew,
        f"idle at every look until {say_time(eligible, now)} it would be stopped",
        eligible,
    )


def long_idle_reclaims(case: Case, policy: Policy, now: datetime) -> Said | None:
    """The only rule that ends a session: both signals read, both silent, and silent for long enough."""
    since = case.clock.idle_since
    if not case.look.is_idle or since is None or (now - since).total_seconds() < policy.idle_after_s:
        return None
    return Said(
        Verdict.RECLAIM,
        Reason.IDLE,
        idle_words(case, since, policy, now),
        "work on any of its GPUs or one open connection keeps it",
        later(since, policy.idle_after_s),
    )


def idle_words(case: Case, since: datetime, policy: Policy, now: datetime) -> str:
    """`its GPU did nothing and nobody was connected since 14:02 UTC (38 min; limit 30 min)`, and what is odd about it."""
    signals = case.look.signals
    span = say_span((now - since).total_seconds())
    clause = f"{signals.work_words} and {signals.presence_words} since {say_time(since, now)}"
    return "; ".join((f"{clause} ({span}; limit {say_span(policy.idle_after_s)})", *signals.remarks))


ORDER: Final[tuple[Rule, ...]] = (
    guard_refuses,
    stopped_keeps,
    empty_hands_keep,
    too_young_keeps,
    work_keeps,
    presence_keeps,
    silence_keeps,
    short_idle_keeps,
    long_idle_reclaims,
)


def first_word(case: Case, policy: Policy, now: datetime) -> Said:
    """What the first rule that speaks says about one session, before cap and switches are asked."""
    spoken = (rule(case, policy, now) for rule in ORDER)
    nothing = Said(Verdict.KEEP, Reason.NO_RULE, "kept, because no rule speaks about it", "a person must look at it")
    return next((said for said in spoken if said is not None), nothing)
