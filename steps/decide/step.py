"""Step `decide`: judge a shard, remember, keep what may act, and hand on the orders. The only writer of the memory."""

from typing import Final

import msgspec

from steps.contracts.cluster_facts import ClusterFacts
from steps.contracts.decision import Decision, Decisions, Memory, Verdict
from steps.contracts.declaration import Inputs
from steps.contracts.document import Origin, Stamp
from steps.contracts.errors import BadInput, Exit, SourceUnavailable
from steps.contracts.files import read_limited
from steps.contracts.node_facts import NodeFacts
from steps.contracts.ports import MemoryStore, Outside
from steps.contracts.traced import Traced
from steps.decide.continuity import account_for, scene_of
from steps.decide.judge import Run, judge, orders_of
from steps.decide.policy import MAX_POLICY_BYTES, parse_policy, policy_hash
from steps.decide.recall import Place, recall
from steps.logs import log_for

MADE_BY: Final = "decide"
MOST_SHARDS: Final = 10_000
"""Where the search for memories ends, whatever the API answers."""


def run(inputs: Inputs, outside: Outside) -> Exit:
    """Judge the shard, account for what earlier sweeps saw there, and write decisions and orders.

    The memory is saved before a decision is kept and before an order is written: whoever lost the race for it orders
    nothing. Raises BadInput (broken policy or document, no such shard) and SourceUnavailable (API, or another sweep judged the
    shard).
    """
    path = inputs.path("policy")
    policy = parse_policy(read_limited(path, MAX_POLICY_BYTES), str(path))
    cluster, traced = inputs.document("cluster", ClusterFacts), inputs.document("traced", Traced)
    shard, shards = inputs.count("shard"), inputs.count("shards")
    if shard >= shards:
        raise BadInput(f"--shard={shard} of --shards={shards} does not exist; shards are numbered from 0")
    this_run = Run(inputs.text("run"), inputs.switch("dry-run"), outside.clock.now(), shard, shards)
    store = outside.memory()
    before, version = store.load(shard)
    judgement = judge(cluster, traced, before, policy, this_run)
    place = Place(shard, shards, frozenset(cluster.nodes), this_run.name, inputs.text("run-uid"))
    recalled = recall(_memories(store, before, shard, shards), place, this_run.now, lost=before is None and bool(version))
    scene = scene_of(cluster, traced, inputs.parcels("facts", NodeFacts), place, this_run.now)
    account = account_for(recalled, scene, _stamp(cluster, traced, this_run))
    _remember(outside, shard, account.remembered_in(judgement.memory, recalled, place), version)
    inputs.put("continuity", account.continuity)
    acting = tuple(decision for decision in judgement.decisions if decision.acts)

    def document(decisions: tuple[Decision, ...]) -> Decisions:
        return Decisions(
            stamp=_stamp(cluster, traced, this_run),
            run=this_run.name,
            shard=shard,
            dry_run=this_run.dry_run,
            policy_hash=policy_hash(policy),
            decisions=decisions,
        )

    if acting:
        outside.decisions().keep(document(acting), inputs.text("run-uid"))
    inputs.put("decisions", document(judgement.decisions))
    inputs.put("orders", msgspec.json.encode(orders_of(acting, shard)))
    verdicts = {verdict.value: sum(d.verdict is verdict for d in judgement.decisions) for verdict in Verdict}
    log_for(MADE_BY).info("decide.judged", run=this_run.name, shard=shard, orders=len(acting), dry_run=this_run.dry_run, **verdicts)
    log_for(MADE_BY).info(
        "decide.accounted",
        run=this_run.name,
        shard=shard,
        earlier_run=account.continuity.earlier_run,
        still_there=len(account.continuity.still_there),
        departed=len(account.continuity.departed),
        sentence=account.continuity.sentence,
    )
    return Exit.DONE


def _memories(store: MemoryStore, own: Memory | None, shard: int, shards: int) -> dict[int, Memory]:
    """All memories by shard. Shards are numbered from 0 without a gap, so those of a sweep that had more of them end where one is
    missing; one that cannot be read counts as missing, and its pods are not known."""
    found = {} if own is None else {shard: own}
    for number in range(MOST_SHARDS):
        if number == shard:
            continue
        memory, version = store.load(number)
        if memory is not None:
            found[number] = memory
        elif not version and number >= shards:
            break
    return found


def _remember(outside: Outside, shard: int, memory: Memory, version: str) -> None:
    rejected = outside.memory().save(shard, memory, if_version=version)
    if rejected is not None:
        raise SourceUnavailable(
            f"the memory of shard {shard} was not saved ({rejected.rejection.value}: {rejected.detail}), so nothing is stopped; "
            "another sweep may have judged the same shard: let one finish, then run again"
        )


def _stamp(cluster: ClusterFacts, traced: Traced, run: Run) -> Stamp:
    return Stamp(made_by=MADE_BY, made_at=run.now, origin=_origin(cluster, traced))


def _origin(cluster: ClusterFacts, traced: Traced) -> Origin:
    """Simulated as soon as one input is: a judgement is as real as the least real of what it rests on."""
    origins = {cluster.stamp.origin, traced.stamp.origin}
    return Origin.SIMULATED if Origin.SIMULATED in origins else Origin.REAL
