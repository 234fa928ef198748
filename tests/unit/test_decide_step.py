"""The step decide: what it keeps, what it hands on, and what it does when another sweep was faster."""

from pathlib import Path

import msgspec
import pytest

from steps.contracts.cluster_facts import ClusterFacts
from steps.contracts.continuity import Continuity
from steps.contracts.decision import Decisions, Reason, StopOrder, Verdict
from steps.contracts.declaration import Inputs
from steps.contracts.document import decode, encode
from steps.contracts.errors import BadInput, Exit, SourceUnavailable
from steps.contracts.traced import Traced
from steps.decide.declaration import STEP
from steps.decide.policy import parse_policy, policy_hash
from steps.decide.step import run
from tests.unit import continuing
from tests.unit.judging import NOON, Sweep, gpu, node, pod, stamp
from tests.unit.outside_double import FakeMemory, FakeOutside

POLICY = b"mode: act\nnamespaces: [team]\nidle_after_s: 1800\nminimum_age_s: 1800\n"


def inputs(folder: Path, sweep: Sweep | None = None, *, policy: bytes = POLICY, dry_run: str = "false", shard: str = "0") -> Inputs:
    sweep = sweep or Sweep()
    names = tuple(one.node for one in sweep.nodes)
    cluster = ClusterFacts(stamp=stamp(), nodes=names, pods=tuple(sweep.pods), sessions=tuple(sweep.sessions), waiters=())
    (folder / "cluster.json").write_bytes(encode(cluster))
    (folder / "traced.json").write_bytes(encode(Traced(stamp=stamp(), nodes=tuple(sweep.nodes))))
    (folder / "facts.json").write_bytes(b"[]")
    (folder / "policy.yaml").write_bytes(policy)
    values = {
        "run": "sweep-2",
        "run-uid": "1111-2222",
        "shard": shard,
        "dry-run": dry_run,
        "policy": str(folder / "policy.yaml"),
        "facts": str(folder / "facts.json"),
        "cluster": str(folder / "cluster.json"),
        "traced": str(folder / "traced.json"),
    }
    return Inputs(STEP, values, {name: str(folder / f"out-{name}.json") for name in ("orders", "decisions", "continuity")})


def accounted(folder: Path) -> Continuity:
    return decode((folder / "out-continuity.json").read_bytes(), Continuity, "continuity")


def orders(folder: Path) -> tuple[StopOrder, ...]:
    return msgspec.json.decode((folder / "out-orders.json").read_bytes(), type=tuple[StopOrder, ...])


def decided(folder: Path) -> Decisions:
    return decode((folder / "out-decisions.json").read_bytes(), Decisions, "decisions")


def outside_that_saw_it_idle() -> FakeOutside:
    memory = msgspec.structs.replace(Sweep().remembered(), policy_hash=policy_hash(parse_policy(POLICY, "policy.yaml")))
    return FakeOutside(memory_store=FakeMemory(kept=memory, version=7))


def test_an_acting_decision_is_kept_for_stop_and_ordered(tmp_path: Path) -> None:
    outside = outside_that_saw_it_idle()
    assert run(inputs(tmp_path), outside) is Exit.DONE
    (order,) = orders(tmp_path)
    (kept,) = outside.decision_store.kept
    assert [one.decision_id for one in kept.decisions] == [order.decision]
    assert decided(tmp_path).decisions == kept.decisions
    assert outside.memory_store.version == 8


def test_a_dry_run_orders_nothing_keeps_nothing_and_remembers(tmp_path: Path) -> None:
    outside = outside_that_saw_it_idle()
    run(inputs(tmp_path, dry_run="true"), outside)
    assert (orders(tmp_path), outside.decision_store.kept) == ((), [])
    assert [(one.verdict, one.reason) for one in decided(tmp_path).decisions] == [(Verdict.RECLAIM, Reason.DRY_RUN)]
    assert outside.memory_store.version == 8


def test_only_acting_decisions_are_kept_for_stop(tmp_path: Path) -> None:
    outside = outside_that_saw_it_idle()
    run(inputs(tmp_path, Sweep(nodes=[node(gpu(sm=0.8))])), outside)
    assert outside.decision_store.kept == []
    assert orders(tmp_path) == ()


def test_whoever_lost_the_race_for_the_memory_orders_nothing(tmp_path: Path) -> None:
    outside = outside_that_saw_it_idle()
    outside.memory_store.moved_meanwhile = True
    with pytest.raises(SourceUnavailable, match="another sweep may have judged the same shard"):
        run(inputs(tmp_path), outside)
    assert outside.decision_store.kept == []
    assert not (tmp_path / "out-orders.json").exists()
    assert not (tmp_path / "out-continuity.json").exists()


def test_the_first_sweep_under_a_changed_policy_stops_nothing_and_the_next_one_does(tmp_path: Path) -> None:
    outside = outside_that_saw_it_idle()
    changed = POLICY + b"max_stops_per_sweep: 2\n"
    run(inputs(tmp_path, policy=changed), outside)
    assert [one.reason for one in decided(tmp_path).decisions] == [Reason.NEW_POLICY]
    again = inputs(tmp_path, policy=changed)
    run(again, outside)
    assert orders(tmp_path) == (), "a second try of the same run is still the forced dry run"


def test_a_broken_policy_stops_the_step_before_anything_is_remembered(tmp_path: Path) -> None:
    outside = outside_that_saw_it_idle()
    with pytest.raises(BadInput, match=r"policy\.yaml line 1: mode is 'maybe'"):
        run(inputs(tmp_path, policy=b"mode: maybe\nnamespaces: []\n"), outside)
    assert outside.memory_store.version == 7


def test_a_shard_that_the_sweep_does_not_have_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--shard=1 of --shards=1 does not exist"):
        run(inputs(tmp_path, shard="1"), outside_that_saw_it_idle())


def test_equal_inputs_give_equal_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        run(inputs(folder), outside_that_saw_it_idle())
    for name in ("out-orders.json", "out-decisions.json", "out-continuity.json"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_the_pods_of_a_sweep_are_remembered_and_asked_for_by_the_next(tmp_path: Path) -> None:
    outside = FakeOutside()
    run(inputs(tmp_path), outside)
    kept = outside.memory_store.kept
    assert kept is not None
    assert (kept.run, kept.run_uid, [one.name for node_ in kept.nodes for one in node_.pods]) == ("sweep-2", "1111-2222", ["a-1"])
    outside.memory_store.kept = msgspec.structs.replace(kept, run="sweep-1", run_uid="of-another-run")
    run(inputs(tmp_path, Sweep(pods=[], sessions=[])), outside)
    found = accounted(tmp_path)
    assert (found.earlier_run, [one.name for one in found.departed]) == ("sweep-1", ["a-1"])


def test_a_second_try_of_a_run_asks_for_the_same_pods_although_the_first_one_saved(tmp_path: Path) -> None:
    store = FakeMemory(kept=continuing.memory(continuing.seen_node(continuing.seen_pod())))
    outside = FakeOutside(memory_store=store)
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        run(inputs(folder, Sweep(pods=[], sessions=[])), outside)
    assert [one.name for one in accounted(first).departed] == ["a-1"]
    assert accounted(second) == accounted(first)


def test_the_memories_of_other_shards_are_asked_for_the_nodes_of_this_one(tmp_path: Path) -> None:
    """Shards 1 and 2 are left over from a sweep that had three."""
    left_over = continuing.memory(continuing.seen_node(continuing.seen_pod("z-1")))
    store = FakeMemory(others={1: continuing.memory(), 2: left_over})
    run(inputs(tmp_path, Sweep(pods=[pod("a-1")])), FakeOutside(memory_store=store))
    found = accounted(tmp_path)
    assert (found.earlier_run, [(one.name, one.node) for one in found.departed]) == ("sweep-1", [("z-1", "node-a")])


def test_a_memory_that_cannot_be_read_is_said_to_be_lost_and_replaced(tmp_path: Path) -> None:
    outside = FakeOutside(memory_store=FakeMemory(broken=True, version=7))
    run(inputs(tmp_path), outside)
    assert accounted(tmp_path).sentence.startswith("what this shard remembered cannot be read and is lost")
    assert outside.memory_store.kept is not None


def test_a_memory_of_the_version_before_this_one_makes_no_claim_about_pods(tmp_path: Path) -> None:
    run(inputs(tmp_path), outside_that_saw_it_idle())
    assert (accounted(tmp_path).earlier_run, accounted(tmp_path).nodes[0].unwatched_from) == (None, None)
    assert accounted(tmp_path).stamp.made_at == NOON
