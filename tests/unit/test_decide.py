"""The verdict on a session: which rule speaks, in which words, and what never becomes a stop."""

from datetime import datetime, timedelta

import msgspec
import pytest

from steps.contracts.cluster_facts import Guard, GuardMet, Phase
from steps.contracts.decision import Reason, Verdict
from steps.contracts.document import Sample
from steps.contracts.policy import Mode
from steps.contracts.traced import GpuClass
from steps.decide.judge import decision_id, orders_of
from tests.unit.judging import ACTING, NOON, Sweep, ago, entry, gpu, holder, node, owner, pod, session, waiter


def with_policy(**changes: object) -> Sweep:
    return Sweep(policy=msgspec.structs.replace(ACTING, **changes))


def test_an_idle_session_without_a_connection_is_reclaimed_and_its_sentence_says_since_when() -> None:
    decision = Sweep(idle_since=ago(minutes=38)).decision()
    assert (decision.verdict, decision.reason, decision.acts) == (Verdict.RECLAIM, Reason.IDLE, True)
    assert decision.sentence == "its GPU did nothing and nobody was connected since 11:22 UTC (38 min; limit 30 min)"


def test_an_order_names_the_decision_and_the_nodes_to_look_at_and_nothing_else() -> None:
    decision = Sweep().decision()
    (order,) = orders_of([decision], 3)
    assert msgspec.to_builtins(order) == {
        "decision": decision.decision_id,
        "shard": 3,
        "session_uid": "uid-a",
        "nodes": ("node-a",),
    }


def test_a_session_with_a_device_and_no_process_is_idle() -> None:
    empty = gpu(headline=GpuClass.BASELINE, holders=())
    assert Sweep(nodes=[node(empty)]).decision().verdict is Verdict.RECLAIM


@pytest.mark.parametrize(
    ("idle_s", "verdict"), [(1799, Verdict.KEEP), (1800, Verdict.RECLAIM), (1801, Verdict.RECLAIM)], ids=["before", "at", "after"]
)
def test_a_session_is_reclaimed_once_it_was_idle_for_exactly_the_limit(idle_s: int, verdict: Verdict) -> None:
    assert Sweep(idle_since=ago(seconds=idle_s)).decision().verdict is verdict


def test_an_idle_session_below_the_limit_says_when_it_would_be_stopped() -> None:
    decision = Sweep(idle_since=ago(minutes=12)).decision()
    assert (decision.verdict, decision.reason) == (Verdict.KEEP, Reason.IDLE_TOO_SHORT)
    assert decision.eligible_at == NOON + timedelta(minutes=18)
    assert decision.sentence == "its GPU did nothing and nobody was connected since 11:48 UTC (12 min; limit 30 min)"
    assert "12:18 UTC" in decision.would_change


@pytest.mark.parametrize(
    ("age_s", "reason"), [(1799, Reason.TOO_YOUNG), (1800, Reason.IDLE), (1801, Reason.IDLE)], ids=["before", "at", "after"]
)
def test_a_session_younger_than_the_minimum_age_is_left_alone(age_s: int, reason: Reason) -> None:
    young = Sweep(pods=[pod("a-1", started=ago(seconds=age_s))], idle_since=ago(seconds=age_s))
    assert young.but(policy=msgspec.structs.replace(ACTING, idle_after_s=60)).decision().reason is reason


def test_the_youngest_pod_gives_the_age_so_a_restart_starts_it_anew() -> None:
    sweep = Sweep(
        sessions=[session(pods=("a-1", "a-2"), replicas=2)],
        pods=[pod("a-1"), pod("a-2", started=ago(minutes=5))],
        nodes=[node(gpu(0), gpu(1, to=("a-2",)), connected={"a-1": 0, "a-2": 0})],
    )
    decision = sweep.decision()
    assert decision.reason is Reason.TOO_YOUNG
    assert "5 min ago" in decision.sentence


def test_a_pod_that_has_not_started_has_no_age_and_is_too_young() -> None:
    starting = msgspec.structs.replace(pod("a-1"), started_at=None)
    assert Sweep(pods=[starting]).decision().reason is Reason.TOO_YOUNG


def test_a_start_in_the_future_is_too_young_and_never_an_age() -> None:
    assert Sweep(pods=[pod("a-1", started=NOON + timedelta(hours=1))]).decision().reason is Reason.TOO_YOUNG


def test_a_guard_refuses_whatever_the_gpus_do_and_the_sentence_names_it() -> None:
    guarded = session(guards=[GuardMet(guard=Guard.AUTOSCALED, detail="HorizontalPodAutoscaler team/a owns the count")])
    decision = Sweep(sessions=[guarded]).decision()
    assert (decision.verdict, decision.reason, decision.acts) == (Verdict.REFUSED, Reason.GUARDED, False)
    assert "HorizontalPodAutoscaler team/a" in decision.sentence


def test_a_session_at_zero_is_kept_as_stopped() -> None:
    assert Sweep(sessions=[session(replicas=0)]).decision().reason is Reason.ALREADY_STOPPED


def test_a_session_that_waits_for_its_gpu_is_never_stopped() -> None:
    sweep = Sweep(sessions=[session("b", pods=("b-1",))], waiters=[waiter("b-1")], pods=[])
    decision = sweep.decision()
    assert (decision.verdict, decision.reason) == (Verdict.KEEP, Reason.HOLDS_NOTHING)


def test_a_pending_replica_beside_an_idle_one_holds_nothing_and_saves_nobody() -> None:
    sweep = Sweep(sessions=[session(pods=("a-1", "a-2"), replicas=2)], waiters=[waiter("a-2")])
    only_placed = session(pods=("a-1",))
    sweep.memory = msgspec.structs.replace(sweep.remembered(), sessions=(entry(only_placed, ago(hours=1)),))
    assert sweep.decision().verdict is Verdict.RECLAIM


def test_a_pod_that_nobody_looked_at_makes_the_session_unknown() -> None:
    decision = Sweep(sessions=[session(pods=("a-1", "elsewhere"), replicas=2)]).decision()
    assert (decision.verdict, decision.reason) == (Verdict.UNKNOWN, Reason.SIGNAL_UNKNOWN)


def test_a_session_of_which_no_pod_was_looked_at_is_unknown_and_not_merely_young() -> None:
    assert Sweep(pods=[]).decision().verdict is Verdict.UNKNOWN


def test_a_pod_that_ended_is_no_part_of_the_session_although_the_kubelet_still_books_its_device() -> None:
    sweep = Sweep(
        sessions=[session(pods=("a-1", "a-0"))],
        pods=[pod("a-1"), pod("a-0", phase=Phase.FAILED)],
        nodes=[node(gpu(0), gpu(1, to=("a-0",)))],
    )
    sweep.memory = msgspec.structs.replace(sweep.remembered(), sessions=(entry(session(), ago(hours=1)),))
    decision = sweep.decision()
    assert decision.verdict is Verdict.RECLAIM
    assert [one.name for one in decision.pods] == ["a-1"]


def test_d1_one_busy_gpu_of_eight_keeps_the_session() -> None:
    gpus = [gpu(index, utilisation=0.63 if index == 5 else 0.0, sm=0.4 if index == 5 else 0.0) for index in range(8)]
    decision = Sweep(pods=[pod("a-1", gpus=8)], nodes=[node(*gpus)]).decision()
    assert (decision.verdict, decision.reason) == (Verdict.KEEP, Reason.WORKING)
    assert decision.sentence == "1 of its 8 GPUs worked: GPU 5 of node-a shows 40 % of its SMs active"


def test_d1_one_busy_replica_of_two_keeps_both() -> None:
    sweep = Sweep(
        sessions=[session(pods=("a-1", "a-2"), replicas=2)],
        pods=[pod("a-1"), pod("a-2", node="node-b")],
        nodes=[node(gpu()), node(gpu(node="node-b", to=("a-2",), sm=0.9), name="node-b", connected={"a-2": 0})],
    )
    assert sweep.decision().reason is Reason.WORKING


def test_a_connection_into_one_pod_keeps_the_session() -> None:
    decision = Sweep(nodes=[node(gpu(), connected={"a-1": 2})]).decision()
    assert (decision.verdict, decision.reason) == (Verdict.KEEP, Reason.PRESENT)
    assert decision.sentence == "somebody is connected: pod a-1 has 2 open connections"


def test_work_speaks_before_a_gap_so_a_busy_gpu_beside_a_silent_node_is_working() -> None:
    sweep = Sweep(
        sessions=[session(pods=("a-1", "a-2"), replicas=2)],
        pods=[pod("a-1"), pod("a-2", node="node-b")],
        nodes=[node(gpu(sm=0.5)), node(name="node-b", problem="it did not answer within 60 s")],
    )
    assert sweep.decision().reason is Reason.WORKING


def test_a_connection_speaks_before_unknown_gpu_activity() -> None:
    broken = gpu(headline=GpuClass.GPU_LOST, utilisation=Sample.error("lost"), sm=Sample.error("lost"))
    assert Sweep(nodes=[node(broken, connected={"a-1": 1})]).decision().reason is Reason.PRESENT


def test_a_silent_node_keeps_its_sessions_as_unknown_and_is_named() -> None:
    decision = Sweep(nodes=[node(name="node-a", problem="it did not answer within 60 s")]).decision()
    assert (decision.verdict, decision.acts) == (Verdict.UNKNOWN, False)
    assert "node-a" in decision.sentence
    assert "did not answer within 60 s" in decision.sentence


def test_an_unknown_reading_breaks_the_proof_of_idleness_and_restarts_the_clock() -> None:
    silent = Sweep(nodes=[node(name="node-a", problem="it did not answer")]).judge()
    assert silent.memory.sessions == ()


def test_the_phantom_of_a_stuck_counter_is_not_work_and_is_said() -> None:
    stuck = gpu(headline=GpuClass.PHANTOM_UTIL, utilisation=1.0, holders=())
    decision = Sweep(nodes=[node(stuck)]).decision()
    assert decision.verdict is Verdict.RECLAIM
    assert "reads 100 % utilisation, but its memory is empty and no process holds it" in decision.sentence


def test_the_cap_defers_all_but_those_idle_for_longest() -> None:
    names = ("a", "b", "c")
    sessions = [session(name, pods=(f"{name}-1",)) for name in names]
    gpus = [gpu(index, to=(f"{name}-1",)) for index, name in enumerate(names)]
    sweep = Sweep(
        sessions=sessions,
        pods=[pod(f"{name}-1") for name in names],
        nodes=[node(*gpus, connected={f"{name}-1": 0 for name in names})],
    )
    clocks = zip(sessions, (60, 180, 120), strict=True)
    sweep.memory = msgspec.structs.replace(
        sweep.remembered(), sessions=tuple(entry(one, ago(minutes=minutes)) for one, minutes in clocks)
    )
    verdicts = {d.owner.name: (d.verdict, d.reason, d.acts) for d in sweep.judge().decisions}
    deferred = (Verdict.DEFERRED, Reason.CAP_REACHED, False)
    assert verdicts == {"b": (Verdict.RECLAIM, Reason.IDLE, True), "a": deferred, "c": deferred}


def test_the_shards_of_one_sweep_share_the_cap_and_the_one_without_a_part_defers() -> None:
    decisions = [Sweep(shard=shard, shards=2).decision() for shard in range(2)]
    assert sorted(decision.verdict.value for decision in decisions) == ["deferred", "reclaim"]
    (deferred,) = [decision for decision in decisions if decision.verdict is Verdict.DEFERRED]
    assert "the policy stops at most 1 session a sweep, 0 of them in this one of 2 shards" in deferred.sentence
    assert not deferred.acts


def test_a_cap_of_zero_stops_nobody() -> None:
    decision = with_policy(max_stops_per_sweep=0).decision()
    assert (decision.verdict, decision.acts) == (Verdict.DEFERRED, False)


@pytest.mark.parametrize(
    ("sweep", "reason", "words"),
    [
        (with_policy(mode=Mode.OBSERVE), Reason.OBSERVE_ONLY, "the policy only observes"),
        (Sweep(dry_run=True), Reason.DRY_RUN, "this run is a dry run"),
        (Sweep(run="sweep-1"), Reason.NEW_POLICY, "the first sweep under a new policy is a dry run"),
    ],
    ids=["observe", "dry run", "new policy"],
)
def test_a_switch_turns_the_act_off_and_the_verdict_stays_what_it_is(sweep: Sweep, reason: Reason, words: str) -> None:
    decision = sweep.decision()
    assert (decision.verdict, decision.reason, decision.acts) == (Verdict.RECLAIM, reason, False)
    assert words in decision.sentence
    assert orders_of([decision], 0) == ()


def test_another_policy_than_the_remembered_one_is_a_forced_dry_run_and_keeps_the_idle_clock() -> None:
    sweep = Sweep()
    sweep.memory = msgspec.structs.replace(sweep.remembered(), policy_hash="another")
    assert sweep.decision().reason is Reason.NEW_POLICY
    assert sweep.judge().memory.sessions[0].idle_since == ago(minutes=60)


def test_a_lost_memory_is_a_forced_dry_run_whose_clocks_start_now() -> None:
    judgement = Sweep().judge(lost_memory=True)
    assert [(d.verdict, d.reason) for d in judgement.decisions] == [(Verdict.KEEP, Reason.IDLE_TOO_SHORT)]
    assert [one.idle_since for one in judgement.memory.sessions] == [NOON]


def test_the_second_try_of_the_first_run_under_a_policy_is_still_a_dry_run() -> None:
    first = Sweep(policy=msgspec.structs.replace(ACTING, idle_after_s=0), run="sweep-1").judge(lost_memory=True)
    again = Sweep(policy=msgspec.structs.replace(ACTING, idle_after_s=0), run="sweep-1", memory=first.memory)
    assert again.decision().reason is Reason.NEW_POLICY
    assert again.but(run="sweep-2").decision().acts


def test_the_same_judgement_has_the_same_id_and_another_run_another() -> None:
    one = session()
    assert decision_id("run", one, "hash") == decision_id("run", one, "hash")
    others = [
        decision_id("run-2", one, "hash"),
        decision_id("run", one, "hash-2"),
        decision_id("run", msgspec.structs.replace(one, judged_digest="moved"), "hash"),
        decision_id("run", msgspec.structs.replace(one, owner=owner("b")), "hash"),
    ]
    assert decision_id("run", one, "hash") not in others
    assert len(set(others)) == 4


def test_decisions_come_gravest_first_and_are_the_same_whatever_the_order_of_the_facts() -> None:
    names = ("a", "b")
    sweep = Sweep(
        sessions=[session(name, pods=(f"{name}-1",)) for name in names],
        pods=[pod(f"{name}-1") for name in names],
        nodes=[node(gpu(0, sm=0.9), gpu(1, to=("b-1",)), connected={"a-1": 0, "b-1": 0})],
    )
    judgement = sweep.judge()
    assert [d.owner.name for d in judgement.decisions] == ["b", "a"]
    assert sweep.but(sessions=sweep.sessions[::-1], pods=sweep.pods[::-1]).judge() == judgement


def test_a_deployment_says_that_no_heartbeat_applies_to_it() -> None:
    (line,) = [e for e in Sweep().decision().evidence if e.signal == "heartbeat"]
    assert line.reading == "a plain Deployment has no heartbeat"


def test_a_kind_nobody_described_requires_every_signal_and_is_unknown() -> None:
    notebook = msgspec.structs.replace(session(), owner=owner("a", kind="Notebook"))
    decision = Sweep(sessions=[notebook]).decision()
    assert decision.verdict is Verdict.UNKNOWN
    assert "need a heartbeat, which nothing reads" in decision.sentence


def test_the_evidence_names_gpu_source_and_time() -> None:
    (line,) = [e for e in Sweep().decision().evidence if e.signal == "gpu activity"]
    assert (line.reading, line.source, line.taken_at) == (
        "GPU 0 of node-a (GPU-node-a-0): did nothing",
        "nvml on node-a",
        ago(seconds=20),
    )


@pytest.mark.parametrize("moment", [ago(seconds=10), None])
def test_a_session_of_a_terminating_pod_is_judged_like_any_other(moment: datetime | None) -> None:
    going = msgspec.structs.replace(pod("a-1"), deletion_requested_at=moment)
    assert Sweep(pods=[going], nodes=[node(gpu(holders=[holder()], sm=0.2))]).decision().reason is Reason.WORKING
