"""The account of earlier sweeps: no pod lost, none twice; windows; second tries; lost memories; shards cut anew; bounds."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
import pytest
from hypothesis import given as over
from hypothesis import strategies as st

from steps.adapters.kubernetes.documents import LIMIT_BYTES
from steps.contracts.continuity import Continuity, Departure
from steps.contracts.decision import Memory, SeenNode, SeenPod
from steps.contracts.document import Sample, encode
from steps.contracts.release import ReleaseVerdict
from steps.contracts.traced import GpuClass
from steps.decide.recall import KEPT, MOST_BYTES, fitting
from tests.unit.continuing import EARLIER, LATER, Shard, free_node, looked, memory, seen_node, seen_pod
from tests.unit.judging import NOON, ago, given, gpu, holder, node, pod

SILENT = node(problem="it did not answer within 60 s")


def window(shard: Shard) -> tuple[datetime | None, datetime | None, str | None]:
    (one,) = shard.account().continuity.nodes
    return one.unwatched_from, one.unwatched_until, one.earlier_run


def answers(continuity: Continuity) -> dict[str, tuple[str, str]]:
    return {one.name: (one.departure.value, one.answer.value) for one in continuity.departed}


# --- the window


def test_the_window_is_from_the_earlier_last_look_to_this_first_one() -> None:
    assert window(Shard()) == (EARLIER, NOON, "sweep-1")
    assert Shard().account().continuity.nodes[0].sentence == (
        "no sweep looked from 2026-11-30 11:50:00 UTC to 2026-11-30 12:00:00 UTC, 10 min"
    )


def test_the_window_of_a_node_that_did_not_answer_stays_open() -> None:
    silent = Shard(nodes=[SILENT], facts=[])
    assert window(silent) == (EARLIER, None, "sweep-1")
    assert silent.account().continuity.nodes[0].unexplained_bytes.reason == "it did not answer within 60 s"


def test_a_silent_sweep_does_not_shorten_the_window_of_the_next_one() -> None:
    silent = Shard(nodes=[SILENT], facts=[]).memory()
    after = Shard(memories={0: silent}, run="sweep-3", now=LATER, facts=[looked(at=LATER)])
    assert window(after) == (EARLIER, LATER, "sweep-1")


def test_a_first_sweep_says_that_none_is_remembered() -> None:
    first = Shard(memories={})
    assert window(first) == (None, NOON, None)
    found = first.account().continuity
    assert (found.earlier_run, found.still_there, found.departed) == (None, (), ())
    assert found.sentence == "no earlier sweep is remembered: nothing is said of the time before this one"


def test_a_memory_that_cannot_be_read_is_said_to_be_lost() -> None:
    found = Shard(memories={}, lost=True).account().continuity
    assert found.sentence.startswith("what this shard remembered cannot be read and is lost; no earlier sweep is remembered")


def test_a_node_that_is_new_has_no_window_beside_one_that_has() -> None:
    found = Shard(nodes=[free_node(), free_node("node-b")], facts=[looked(), looked("node-b")]).account().continuity
    assert [(one.node, one.unwatched_from) for one in found.nodes] == [("node-a", EARLIER), ("node-b", None)]


def test_a_look_from_the_future_gives_no_window_and_loses_no_pod() -> None:
    ahead = Shard(memories={0: memory(seen_node(seen_pod(), told_at=LATER))})
    (one,) = ahead.account().continuity.nodes
    assert (one.unwatched_from, "lies in the future" in one.sentence) == (None, True)
    assert ahead.departed().answer is ReleaseVerdict.RETURNED


# --- every pod once


def test_what_is_remembered_is_each_pod_that_asked_for_a_gpu_was_given_or_holds_one() -> None:
    device = gpu(to=("a-1",), holders=(holder("c-1"), holder("d-1", GpuClass.SYSTEM_HOLDER)))
    pods = [pod("a-1"), pod("b-1", gpus=1), pod("c-1", gpus=0), pod("d-1", gpus=0), pod("e-1", gpus=0)]
    (kept,) = Shard(memories={}, nodes=[node(device)], pods=pods).memory().nodes
    assert {one.name: one.devices for one in kept.pods} == {"a-1": ("GPU-node-a-0",), "b-1": (), "c-1": ("GPU-node-a-0",)}
    assert {one.seen_at for one in kept.pods} == {NOON}


def test_a_pod_whose_gpus_are_not_all_known_is_remembered_without_any() -> None:
    (kept,) = Shard(memories={}, nodes=[node(gpu())], pods=[pod("a-1", gpus=2)]).memory().nodes
    assert [one.devices for one in kept.pods] == [()]


names = st.sampled_from(["a-1", "b-1", "c-1", "d-1", "e-1"])


@over(
    st.lists(names, unique=True),
    st.lists(names, unique=True),
    st.sampled_from([[free_node()], [SILENT], [node(gpu(to=("a-1",), holders=(holder("a-1", GpuClass.POD_GONE_LIVE),)))]]),
    st.booleans(),
)
def test_every_remembered_pod_is_still_there_or_departed_with_an_answer_and_none_is_twice(
    remembered: Sequence[str], present: Sequence[str], nodes: list[object], elsewhere: bool
) -> None:
    where = "node-z" if elsewhere else "node-a"
    before = memory(seen_node(*(seen_pod(name) for name in remembered), name=where))
    shard = Shard(memories={0: before}, nodes=nodes, facts=[looked()], pods=[pod(name) for name in present])  # type: ignore[arg-type]
    found = shard.account().continuity
    told = Counter([*found.still_there, *(one.uid for one in found.departed)])
    assert told == Counter(f"pod-{name}" for name in remembered)
    kept = Counter(one.uid for one in (pod_ for node_ in shard.memory().nodes for pod_ in node_.pods))
    again = {one.uid for one in found.departed if one.remembered} | {f"pod-{name}" for name in present}
    assert set(kept) == again
    assert set(kept.values()) <= {1} or elsewhere


def test_an_answer_that_is_not_final_is_asked_for_until_it_is() -> None:
    first = Shard(nodes=[SILENT], facts=[])
    assert answers(first.account().continuity) == {"a-1": ("gone", "unknown")}
    second = Shard(memories={0: first.memory()}, run="sweep-3", now=LATER, facts=[looked(at=LATER)])
    assert answers(second.account().continuity) == {"a-1": ("gone", "returned")}
    assert second.departed().first_missed_at == NOON
    third = second.but(memories={0: second.memory()}, run="sweep-4")
    assert answers(third.account().continuity) == {}


# --- a second try


def test_a_second_try_of_a_run_says_the_same_as_the_first() -> None:
    first = Shard()
    second = first.but(memories={0: first.memory()}, now=NOON + timedelta(minutes=2))
    assert second.account().continuity == first.account().continuity
    assert second.but(memories={0: second.memory()}).account().continuity == first.account().continuity


def test_another_run_of_the_same_name_is_no_second_try() -> None:
    again = Shard(memories={0: msgspec.structs.replace(Shard().memory(), run_uid="of an earlier one")}, run="sweep-2")
    assert (again.account().continuity.earlier_run, again.account().continuity.departed) == ("sweep-2", ())


def test_equal_inputs_give_an_equal_account() -> None:
    assert encode(Shard().account().continuity) == encode(Shard().account().continuity)
    assert encode(Shard().memory()) == encode(Shard().memory())


# --- shards cut anew


def test_a_node_that_moved_to_another_shard_is_answered_for_there() -> None:
    """node-b was in shard 0 and is in shard 1 now; whichever judge saves first, its pod is told once with an answer."""
    old = memory(seen_node(seen_pod()), seen_node(seen_pod("b-1", devices=("GPU-node-b-0",)), name="node-b"))
    left = Shard(memories={0: old}, shards=2)
    gets = Shard(memories={0: old}, shard=1, shards=2, nodes=[free_node("node-b")], facts=[looked("node-b")])
    assert answers(gets.account().continuity) == {"b-1": ("gone", "returned")}
    assert gets.account().continuity.nodes[0].unwatched_from == EARLIER
    assert answers(left.account().continuity) == {"a-1": ("gone", "returned"), "b-1": ("out of sight", "unknown")}
    after_left = gets.but(memories={0: left.memory()})
    assert answers(after_left.account().continuity) == answers(gets.account().continuity)
    after_gets = left.but(memories={0: old, 1: gets.memory()})
    assert answers(after_gets.account().continuity) == {"a-1": ("gone", "returned")}


def test_a_shard_keeps_what_it_handed_on_until_it_sees_that_the_other_has_it() -> None:
    old = memory(seen_node(seen_pod("b-1"), name="node-b"))
    left = Shard(memories={0: old}, shards=2).memory()
    assert [one.node for one in left.nodes] == ["node-a", "node-b"]
    taken = Shard(memories={0: left}, shard=1, shards=2, nodes=[free_node("node-b")], facts=[looked("node-b")]).memory()
    later = Shard(memories={0: left, 1: taken}, shards=2, run="sweep-3", now=LATER)
    assert [one.node for one in later.memory().nodes] == ["node-a"]
    assert later.account().continuity.departed == ()


def test_a_node_that_moved_and_is_silent_stays_remembered_by_the_shard_that_has_it() -> None:
    old = memory(seen_node(seen_pod("b-1"), name="node-b"))
    quiet = node(name="node-b", problem="silent")
    taken = Shard(memories={0: old}, shard=1, shards=2, nodes=[quiet], facts=[]).memory()
    later = Shard(memories={0: old, 1: taken}, shard=1, shards=2, nodes=[quiet], facts=[], run="sweep-3", now=LATER)
    (answer,) = later.account().continuity.departed
    assert (answer.departure, answer.answer, answer.first_missed_at) == (Departure.GONE, ReleaseVerdict.UNKNOWN, NOON)


def test_the_first_shard_takes_over_from_shards_that_the_run_no_longer_has() -> None:
    old = {0: memory(seen_node(seen_pod())), 1: memory(seen_node(seen_pod("z-1"), name="node-z"))}
    now = Shard(memories=old)
    assert answers(now.account().continuity)["z-1"] == ("out of sight", "unknown")
    later = Shard(memories={0: now.memory(), 1: old[1]}, run="sweep-3", now=LATER)
    assert answers(later.account().continuity) == {"z-1": ("out of sight", "unknown")}


def test_a_pod_out_of_sight_is_missed_only_once_its_own_node_is_read() -> None:
    kept = Shard(memories={0: memory(seen_node(seen_pod("z-1"), name="node-z"))}).memory()
    assert [one.missed_at for node_ in kept.nodes for one in node_.pods] == [None]
    back = Shard(memories={0: kept}, nodes=[free_node("node-z")], facts=[looked("node-z")], pods=[pod("z-1", "node-z")], now=LATER)
    assert back.account().continuity.still_there == ("pod-z-1",)


def test_a_record_from_the_future_of_another_shard_wins_nothing() -> None:
    ahead = memory(seen_node(seen_pod("x-1"), told_at=NOON + timedelta(hours=1)))
    assert answers(Shard(memories={0: memory(seen_node(seen_pod())), 1: ahead}, shards=2).account().continuity) == {
        "a-1": ("gone", "returned")
    }


# --- bounds


@pytest.mark.parametrize(("over_s", "remembered"), [(-1, True), (0, True), (1, False)])
def test_a_pod_without_a_final_answer_is_dropped_after_a_week_and_its_last_answer_says_so(over_s: int, remembered: bool) -> None:
    old = seen_pod(seen_at=NOON - KEPT - timedelta(seconds=over_s), missed_at=ago(days=6))
    answer = Shard(memories={0: memory(seen_node(old))}, nodes=[SILENT], facts=[]).departed()
    assert (answer.answer, answer.remembered) == (ReleaseVerdict.UNKNOWN, remembered)
    assert ("the memory drops it now" in answer.sentence) is not remembered


def test_what_was_dropped_does_not_come_back_from_the_memory_of_a_shard_that_is_no_more() -> None:
    stale = memory(seen_node(seen_pod("z-1", seen_at=ago(days=8)), name="node-z", told_at=ago(days=8)), written_at=ago(days=8))
    dropping = Shard(memories={0: memory(written_at=ago(days=2)), 1: stale})
    assert [one.remembered for one in dropping.account().continuity.departed] == [False]
    later = Shard(memories={0: dropping.memory(), 1: stale}, run="sweep-3", now=LATER)
    assert (later.account().continuity.departed, [one.node for one in later.memory().nodes]) == ((), ["node-a"])


def longest_pod(number: int, missed_at: datetime | None) -> SeenPod:
    """As long as names may be, with all GPUs of a machine of sixteen."""
    return SeenPod(
        uid=f"{number:036d}",
        namespace="n" * 63,
        name="p" * 253,
        grace_s=10**9,
        devices=tuple(f"GPU-{device:036d}" for device in range(16)),
        seen_at=EARLIER.replace(microsecond=123456),
        missed_at=missed_at,
    )


def test_a_memory_as_full_as_can_be_fits_a_config_map_twice_and_leaves_room_for_the_clocks() -> None:
    gone = ago(minutes=1).replace(microsecond=123456)
    nodes = [
        SeenNode(
            node=f"{number:0253d}",
            run="r" * 253,
            told_at=EARLIER,
            looked_at=EARLIER,
            looked_run="r" * 253,
            pods=tuple(longest_pod(1000 * number + one, gone if one % 2 else None) for one in range(200)),
        )
        for number in range(10)
    ]
    cut, dropped = fitting(nodes)
    full = Memory(policy_hash="h" * 64, written_at=NOON, sessions=(), run="r" * 253, run_uid="u" * 36, nodes=cut, before=cut)
    assert dropped == 2000 - sum(len(one.pods) for one in cut) > 0
    assert len(encode(full)) < 2 * MOST_BYTES + 4096 < LIMIT_BYTES * 3 / 4


def test_pods_of_a_usual_large_shard_all_fit() -> None:
    pods = [
        SeenPod(
            uid=f"{n:036d}", namespace="research", name=f"notebook-{n:05d}-0", grace_s=30, devices=(f"GPU-{n:036d}",), seen_at=NOON
        )
        for n in range(10 * 56)
    ]
    cut, dropped = fitting([seen_node(*pods[start : start + 56], name=f"node-{start}") for start in range(0, 560, 56)])
    assert (dropped, sum(len(one.pods) for one in cut)) == (0, 560)


def test_what_has_been_missed_for_longest_goes_first_and_is_said() -> None:
    pods = [seen_pod("a-1"), seen_pod("b-1", missed_at=ago(minutes=1)), seen_pod("c-1", missed_at=ago(days=1))]
    room = len(encode(seen_node())) + 1 + sum(len(encode(one)) + 1 for one in pods[:2])
    (cut,), dropped = fitting([seen_node(*pods)], room)
    assert ([one.name for one in cut.pods], dropped) == (["a-1", "b-1"], 1)
    (less,), more = fitting([seen_node(*pods)], room - 1)
    assert ([one.name for one in less.pods], more) == (["a-1"], 2)


def test_pods_without_room_are_said_and_a_departed_one_hears_that_this_is_the_last_word() -> None:
    full = Shard(nodes=[SILENT], facts=[], pods=[pod(f"n-{number}") for number in range(3000)])
    found = full.account().continuity
    assert found.not_remembered > 0
    assert f"no room for {found.not_remembered} pods" in found.sentence
    (answer,) = found.departed
    assert (answer.remembered, "the memory drops it now" in answer.sentence) == (False, True)


def test_nodes_that_get_new_names_do_not_fill_the_memory() -> None:
    """A week of spot machines: their records go, newest last, and the pods of the nodes that are there stay."""
    gone = [seen_node(name=f"{number:0200d}", told_at=ago(days=number / 1000)) for number in range(5000)]
    now = Shard(memories={0: memory(*gone)}, pods=[pod("n-1")]).memory()
    assert len(encode(now)) < 2 * MOST_BYTES + 4096
    assert [one.name for node_ in now.nodes for one in node_.pods] == ["n-1"]
    kept = {node_.node for node_ in now.nodes}
    assert kept == {"node-a", *(f"{number:0200d}" for number in range(len(kept) - 1))}


def test_pods_of_nodes_that_are_gone_make_room_for_those_of_nodes_that_are_there() -> None:
    gone = [
        seen_node(seen_pod(f"z-{number}"), name=f"{number:0200d}", told_at=EARLIER - timedelta(seconds=number))
        for number in range(5000)
    ]
    now = Shard(memories={0: memory(*gone)}, pods=[pod(f"n-{number}") for number in range(500)])
    pods = {one.name for node_ in now.memory().nodes for one in node_.pods}
    newest_gone = {f"z-{number}" for number in range(len(pods) - 500)}
    assert pods == newest_gone | {f"n-{number}" for number in range(500)}
    assert now.account().continuity.not_remembered == 5500 - len(pods)


def test_a_moment_of_missing_that_lies_ahead_gives_a_pod_no_more_time() -> None:
    """A clock was put back: until then the pod would be pending."""
    ahead = Shard(
        memories={0: memory(seen_node(seen_pod(missed_at=NOON + timedelta(days=365))))},
        nodes=[free_node(headline=GpuClass.GHOST_CONTEXT)],
    )
    assert ahead.departed().pending_until == NOON + timedelta(seconds=47)
    assert [one.missed_at for node_ in ahead.memory().nodes for one in node_.pods] == [NOON]


@pytest.mark.parametrize(("ahead", "remembered"), [(KEPT, True), (KEPT + timedelta(seconds=1), False)])
def test_a_pod_that_was_seen_far_ahead_is_not_asked_for_until_then(ahead: timedelta, remembered: bool) -> None:
    pod_ahead = seen_pod(seen_at=NOON + ahead)
    answer = Shard(memories={0: memory(seen_node(pod_ahead))}, nodes=[SILENT], facts=[]).departed()
    assert (answer.answer, answer.remembered) == (ReleaseVerdict.UNKNOWN, remembered)


def test_unexplained_memory_of_a_node_is_a_sum_and_unknown_as_soon_as_one_part_is() -> None:
    one, two = gpu(0), gpu(1)
    parts = [msgspec.structs.replace(each, unexplained_bytes=Sample.measured(5)) for each in (one, two)]
    (whole,) = Shard(nodes=[node(*parts)]).account().continuity.nodes
    assert whole.unexplained_bytes.known() == 10
    gap = msgspec.structs.replace(two, unexplained_bytes=Sample.absent("used is not known"))
    (torn,) = Shard(nodes=[node(parts[0], gap)]).account().continuity.nodes
    assert torn.unexplained_bytes.reason == "GPU 1: used is not known"


def test_what_this_sweep_saw_shared_is_what_the_next_one_knows_to_be_no_taker() -> None:
    shared = gpu(to=(), holders=(), allocated=Sample.measured((given("GPU-node-a-0::0", "a-1"), given("GPU-node-a-0::1", "b-1"))))
    (kept,) = Shard(memories={}, nodes=[node(shared)], pods=[pod("a-1"), pod("b-1")]).memory().nodes
    assert {one.devices for one in kept.pods} == {("GPU-node-a-0",)}
