"""The judgement of one shard: every session gets a verdict; the cap and the switches say which verdicts act.

Pure: facts, memory, policy and the time go in, decisions, orders and the next memory come out.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from steps.contracts.cluster_facts import ClusterFacts, Session
from steps.contracts.decision import Decision, Evidence, Memory, Reason, StopOrder, Verdict
from steps.contracts.document import State
from steps.contracts.errors import BadInput
from steps.contracts.node_facts import Scan
from steps.contracts.policy import Mode, Policy
from steps.contracts.traced import Traced
from steps.decide.cap import part_of
from steps.decide.cases import Case, looks_of
from steps.decide.kinds import not_applicable_to
from steps.decide.memory import clocks_of, is_new_policy, longest_gap_of, next_memory, why_too_quick
from steps.decide.policy import policy_hash
from steps.decide.rules import Said, first_word
from steps.decide.wording import count_of, join_and

GRAVITY: Final[Mapping[Verdict, int]] = {
    Verdict.RECLAIM: 0,
    Verdict.DEFERRED: 1,
    Verdict.UNKNOWN: 2,
    Verdict.REFUSED: 3,
    Verdict.KEEP: 4,
}
"""The order in which people want to see verdicts."""


@dataclass(frozen=True, slots=True)
class Run:
    """Which run judges, and whether it may act at all. shard, shards: which part of its nodes this is, of how many."""

    name: str
    dry_run: bool
    now: datetime
    shard: int = 0
    shards: int = 1


@dataclass(frozen=True, slots=True)
class Judgement:
    decisions: tuple[Decision, ...]
    memory: Memory


def judge(cluster: ClusterFacts, traced: Traced, memory: Memory | None, policy: Policy, run: Run) -> Judgement:
    """Verdicts on all sessions of the facts, gravest first, and what to remember. Raises BadInput if a full look was due."""
    quick = any(node.scan is Scan.QUICK for node in traced.nodes)
    if (why := why_too_quick(memory, quick=quick)) is not None:
        raise BadInput(why)
    digest = policy_hash(policy)
    looks = looks_of(cluster, traced, run.now)
    seen = [look.seen for look in looks]
    clocks = clocks_of(memory, seen, run.now, longest_gap_of(policy.idle_after_s))
    cases = [Case(look, clocks[look.session.owner.uid]) for look in looks]
    capped = _apply_cap([(case, first_word(case, policy, run.now)) for case in cases], policy, run)
    holding_back = _why_not_act(policy, run, is_new_policy(memory, digest, run.name))
    decisions = [_decision(case, _hold_back(said, holding_back), digest, run) for case, said in capped]
    return Judgement(
        decisions=tuple(sorted(decisions, key=lambda d: (GRAVITY[d.verdict], d.owner.namespace, d.owner.name, d.owner.uid))),
        memory=next_memory(memory, seen, clocks, policy_hash=digest, run=run.name, now=run.now, quick=quick),
    )


def orders_of(decisions: Sequence[Decision], shard: int) -> tuple[StopOrder, ...]:
    """One order a decision that acts; it names an id and where to look, never the decision."""
    return tuple(
        StopOrder(
            decision=decision.decision_id,
            shard=shard,
            session_uid=decision.owner.uid,
            nodes=tuple(sorted({pod.node for pod in decision.pods if pod.node is not None})),
        )
        for decision in decisions
        if decision.acts
    )


def decision_id(run: str, session: Session, digest_of_policy: str) -> str:
    """The same judgement has the same id, so that a step that runs again cannot order a second stop."""
    text = "\n".join((run, session.owner.uid, session.judged_digest, digest_of_policy))
    return f"d-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _apply_cap(spoken: Sequence[tuple[Case, Said]], policy: Policy, run: Run) -> list[tuple[Case, Said]]:
    """Idle for longest first, then by uid: beyond this shard's part of the cap a reclaim is deferred to a later sweep."""
    part = part_of(policy.max_stops_per_sweep, run.shard, run.shards, run.name)
    due = sorted(
        (case.clock.idle_since, case.look.session.owner.uid)
        for case, said in spoken
        if said.verdict is Verdict.RECLAIM and case.clock.idle_since is not None
    )
    first = {uid for _, uid in due[:part]}
    why = _cap_words(policy.max_stops_per_sweep, part, run.shards)
    return [
        (case, said if said.verdict is not Verdict.RECLAIM or case.look.session.owner.uid in first else _deferred(said, why))
        for case, said in spoken
    ]


def _cap_words(cap: int, part: int, shards: int) -> str:
    longer = ", and others were idle for longer" if part else ""
    if cap == 0 or shards == 1:
        return f"the policy stops at most {count_of(cap, 'session')} a sweep{longer}"
    return f"the policy stops at most {count_of(cap, 'session')} a sweep, {part} of them in this one of {shards} shards{longer}"


def _deferred(said: Said, why: str) -> Said:
    return replace(
        said,
        verdict=Verdict.DEFERRED,
        reason=Reason.CAP_REACHED,
        sentence=f"{said.sentence}; not in this sweep: {why}",
        would_change="a later sweep, or a higher max_stops_per_sweep; " + said.would_change,
    )


def _why_not_act(policy: Policy, run: Run, new_policy: bool) -> tuple[tuple[Reason, str, str], ...]:
    """(reason, why nothing is stopped, what would change it), the most lasting first."""
    switches = (
        (policy.mode is not Mode.ACT, Reason.OBSERVE_ONLY, "the policy only observes", "policy mode act"),
        (run.dry_run, Reason.DRY_RUN, "this run is a dry run", "a run with dry-run=false"),
        (new_policy, Reason.NEW_POLICY, "the first sweep under a new policy is a dry run", "the next sweep"),
    )
    return tuple((reason, why, change) for holds, reason, why, change in switches if holds)


def _hold_back(said: Said, holding_back: Sequence[tuple[Reason, str, str]]) -> Said:
    """A reclaim stays a reclaim in words; its reason says why this run does not carry it out."""
    if said.verdict is not Verdict.RECLAIM or not holding_back:
        return said
    return replace(
        said,
        reason=holding_back[0][0],
        sentence=f"{said.sentence}; not stopped, because {join_and([why for _, why, _ in holding_back])}",
        would_change=f"{join_and([change for _, _, change in holding_back])} would stop it; {said.would_change}",
    )


def _decision(case: Case, said: Said, digest_of_policy: str, run: Run) -> Decision:
    session = case.look.session
    return Decision(
        decision_id=decision_id(run.name, session, digest_of_policy),
        run=run.name,
        decided_at=run.now,
        owner=session.owner,
        judged_digest=session.judged_digest,
        replicas=session.replicas,
        pods=case.look.pods,
        verdict=said.verdict,
        reason=said.reason,
        sentence=said.sentence,
        evidence=(*case.look.signals.evidence, *_not_applicable(session)),
        idle_since=case.clock.idle_since,
        eligible_at=said.eligible_at,
        would_change=said.would_change,
        policy_hash=digest_of_policy,
        acts=said.verdict is Verdict.RECLAIM and said.reason is Reason.IDLE,
    )


def _not_applicable(session: Session) -> tuple[Evidence, ...]:
    kind = session.owner.kind
    return tuple(
        Evidence(signal=signal.value, reading=why_not, state=State.NOT_APPLICABLE, source=f"kind {kind}", taken_at=None)
        for signal, why_not in not_applicable_to(kind)
    )
