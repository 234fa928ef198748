"""The answer on a pod that is no longer there, by one look at its node: what is final, what is pending, what is unknown."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given as over
from hypothesis import strategies as st

from steps.contracts.cluster_facts import Phase
from steps.contracts.continuity import DepartedPod, Departure
from steps.contracts.document import Sample
from steps.contracts.node_facts import NodeFacts, PodOnDisk, Scan
from steps.contracts.release import ReleaseVerdict
from steps.contracts.traced import AllocatedTo, Attribution, GpuClass, TracedGpu, TracedHolder, TracedNode
from steps.decide import departed
from steps.trace import memory as trace_memory
from steps.verify import plan
from tests.unit.continuing import EARLIER, Shard, free_node, looked, memory, seen_node, seen_pod
from tests.unit.judging import GIB, NOON, ago, given, gpu, holder, node, pod
from tests.unit.trace_world import blind, partial

UNKNOWN, PENDING, LEAKED = ReleaseVerdict.UNKNOWN, ReleaseVerdict.PENDING, ReleaseVerdict.LEAKED
RETURNED, TAKEN_OVER = ReleaseVerdict.RETURNED, ReleaseVerdict.TAKEN_OVER
STRENGTH = {UNKNOWN: 0, PENDING: 1, RETURNED: 2, TAKEN_OVER: 2, LEAKED: 2}


def held(gpu_class: GpuClass = GpuClass.POD_GONE_LIVE, name: str = "a-1") -> TracedHolder:
    return msgspec.structs.replace(holder(name, gpu_class), attribution=Attribution.POD_GONE)


def holding(*holders: TracedHolder, **changes: Any) -> TracedNode:
    headline = holders[0].gpu_class if holders else GpuClass.BASELINE
    return node(msgspec.structs.replace(gpu(to=(), headline=headline, holders=holders), **changes))


def ghost() -> TracedNode:
    left = Sample.measured(3 * GIB)
    return node(
        msgspec.structs.replace(gpu(to=(), headline=GpuClass.GHOST_CONTEXT, holders=()), used_bytes=left, unexplained_bytes=left)
    )


def lives(name: str) -> Sample[tuple[AllocatedTo, ...]]:
    return Sample.measured((msgspec.structs.replace(given("GPU-node-a-0", name), lives=True),))


def missed_before(minutes: float = 10, **changes: Any) -> Shard:
    """A sweep that looks at the pod for the second time since it went."""
    gone = seen_pod(seen_at=ago(minutes=30), missed_at=ago(minutes=minutes), **changes)
    return Shard(memories={0: memory(seen_node(gone))})


def test_a_pod_that_is_gone_with_nothing_left_on_its_gpu_has_returned_it_and_is_forgotten() -> None:
    answer = Shard().departed()
    assert (answer.departure, answer.answer, answer.held_bytes.known(), answer.remembered) == (Departure.GONE, RETURNED, 0, False)
    assert (answer.last_seen_at, answer.first_missed_at) == (EARLIER, NOON)
    assert [one.pods for one in Shard().memory().nodes] == [()]


@pytest.mark.parametrize("phase", [Phase.SUCCEEDED, Phase.FAILED])
def test_a_pod_that_has_ended_is_answered_for_like_one_that_is_gone(phase: Phase) -> None:
    answer = Shard(pods=[pod("a-1", phase=phase)]).departed()
    assert (answer.departure, answer.answer) == (Departure.ENDED, RETURNED)


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.RUNNING, Phase.UNKNOWN])
def test_a_pod_that_is_listed_and_has_not_ended_is_still_there(phase: Phase) -> None:
    found = Shard(pods=[pod("a-1", phase=phase)]).account().continuity
    assert (found.still_there, found.departed) == (("pod-a-1",), ())


def test_a_process_of_the_pod_is_pending_as_long_as_the_pod_may_still_be_ending() -> None:
    answer = Shard(nodes=[holding(held())]).departed()
    assert (answer.answer, answer.pending_until, answer.remembered) == (PENDING, NOON + timedelta(seconds=30 + 17), True)
    assert (answer.pids, answer.held_bytes.known(), answer.gpu_class) == ((4001,), 2 * GIB, GpuClass.POD_GONE_LIVE)


@pytest.mark.parametrize(("looked_s", "answer"), [(46, PENDING), (47, LEAKED), (48, LEAKED)])
def test_it_is_a_leak_once_a_look_came_after_the_deadline(looked_s: int, answer: ReleaseVerdict) -> None:
    """30 s of grace and 17 s of margin, from the list that lacked the pod first."""
    gone = missed_before(minutes=5)
    at = ago(minutes=5) + timedelta(seconds=looked_s)
    assert gone.but(nodes=[holding(held())], facts=[looked(at=at)]).departed().answer is answer


def test_it_is_a_leak_at_once_where_the_kubelet_has_finished_with_the_pod() -> None:
    on_disk = Sample.measured((PodOnDisk(uid="pod-a-1", namespace="team", name="a-1", kept=False),))
    answer = Shard(nodes=[holding(held())], facts=[looked(pods_on_disk=on_disk)]).departed()
    assert (answer.answer, "the kubelet has finished with the pod" in answer.sentence) == (LEAKED, True)


def test_memory_without_a_process_on_its_gpu_is_a_leak_after_the_deadline_and_pending_before() -> None:
    assert Shard(nodes=[ghost()]).departed().answer is PENDING
    answer = missed_before().but(nodes=[ghost()]).departed()
    assert (answer.answer, answer.gpu_class) == (LEAKED, GpuClass.GHOST_CONTEXT)


def test_a_ghost_where_its_gpu_is_not_known_is_not_laid_to_its_charge() -> None:
    answer = missed_before(devices=()).but(nodes=[ghost()]).departed()
    assert (answer.answer, "may have been its" in answer.sentence) == (UNKNOWN, True)


def test_where_its_gpu_is_not_known_and_no_gpu_has_anything_left_it_is_returned() -> None:
    assert missed_before(devices=()).departed().answer is RETURNED


def test_the_kubelets_record_names_the_gpu_where_the_memory_does_not() -> None:
    still_down_as_its = msgspec.structs.replace(ghost().gpus[0], allocated_to=Sample.measured((given("GPU-node-a-0", "a-1"),)))
    assert missed_before(devices=()).but(nodes=[node(still_down_as_its)]).departed().answer is LEAKED


def test_a_new_pod_that_explains_what_is_used_has_taken_it_over() -> None:
    answer = Shard(nodes=[holding(held(GpuClass.ACTIVE, "b-1"), allocated_to=lives("b-1"))]).departed()
    assert (answer.answer, answer.taken_over_by, answer.remembered) == (TAKEN_OVER, "pod-b-1", False)


def test_a_new_pod_without_a_process_has_taken_it_over_by_its_allocation() -> None:
    assert Shard(nodes=[free_node(allocated_to=lives("b-1"))]).departed().taken_over_by == "pod-b-1"


def test_who_shared_the_gpu_before_takes_nothing_over() -> None:
    shared = Shard(memories={0: memory(seen_node(seen_pod(), seen_pod("b-1")))}, pods=[pod("b-1")])
    answer = shared.but(nodes=[holding(held(GpuClass.ACTIVE, "b-1"), allocated_to=lives("b-1"))]).departed()
    assert (answer.answer, answer.taken_over_by) == (RETURNED, None)


def test_memory_that_the_new_tenants_do_not_explain_keeps_it_unknown() -> None:
    answer = Shard(nodes=[holding(held(GpuClass.ACTIVE, "b-1"), unexplained_bytes=Sample.measured(GIB))]).departed()
    assert (answer.answer, "1.0 GiB" in answer.sentence) == (UNKNOWN, True)


def test_of_several_gpus_the_gravest_speaks() -> None:
    two = Shard(memories={0: memory(seen_node(seen_pod(devices=("GPU-node-a-0", "GPU-node-a-1"))))})
    left = msgspec.structs.replace(gpu(1, to=(), headline=GpuClass.UNKNOWN, holders=()), reason="seen too briefly")
    assert two.but(nodes=[node(free_node().gpus[0], left)]).departed().answer is UNKNOWN
    assert two.departed().sentence == "NVML does not list GPU-node-a-1 any more"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"nodes": [node(problem="it did not answer")], "facts": []}, "node node-a has nothing to say: it did not answer"),
        ({"facts": [looked(scan=Scan.QUICK)]}, "a quick scan looks for no holder beyond NVML's list"),
        ({"facts": [looked(visibility=blind())]}, "the reader does not see the host's processes"),
        ({"nodes": [node()]}, "NVML lists no GPU on node-a"),
        ({"nodes": [free_node(headline=GpuClass.GPU_LOST)]}, "GPU 0 is GPU_LOST"),
        ({"nodes": [free_node(headline=GpuClass.ABI_MISMATCH)]}, "GPU 0 is ABI_MISMATCH"),
        ({"nodes": [free_node(headline=GpuClass.UNKNOWN)]}, "GPU 0 is UNKNOWN"),
        (
            {"nodes": [holding(msgspec.structs.replace(holder(None), attribution=Attribution.CONFLICT))]},
            "PID 4001 holds GPU 0 and cannot be attributed",
        ),
        (
            {"nodes": [holding(held(GpuClass.ACTIVE, "b-1"), unexplained_bytes=Sample.absent("used is not known"))]},
            "unexplained on GPU 0 is unknown: used is not known",
        ),
    ],
    ids=["silent", "quick", "blind", "unlisted", "lost", "mismatch", "unknown", "stranger", "unexplained unknown"],
)
def test_what_cannot_be_read_is_unknown_with_its_reason_and_asked_for_again(changes: dict[str, Any], words: str) -> None:
    answer = Shard().but(**changes).departed()
    assert (answer.answer, answer.remembered) == (UNKNOWN, True)
    assert words in answer.sentence


def test_partial_sight_alone_is_no_doubt_as_in_verify() -> None:
    assert Shard(facts=[looked(visibility=partial())]).departed().answer is RETURNED


def test_a_quick_look_names_the_processes_it_sees_and_charges_nobody() -> None:
    answer = missed_before().but(nodes=[holding(held())], facts=[looked(scan=Scan.QUICK)]).departed()
    assert (answer.answer, answer.pids, answer.held_bytes.known()) == (UNKNOWN, (4001,), None)


def test_bytes_of_a_process_without_a_figure_are_unknown_not_zero() -> None:
    nameless = msgspec.structs.replace(held(), gpu_memory_bytes=Sample.absent("in a container"))
    assert Shard(nodes=[holding(nameless)]).departed().held_bytes.reason == "NVML gives no memory figure for PID 4001"


def test_the_margins_are_those_of_trace_and_verify() -> None:
    assert (departed.MARGIN_S, departed.GHOST_BYTES) == (plan.MARGIN_S, trace_memory.GHOST_BYTES)


def nodes_with(headline: GpuClass, holders: tuple[TracedHolder, ...]) -> TracedNode:
    return node(msgspec.structs.replace(gpu(to=(), headline=headline, holders=holders)))


def weaker_nodes(whole: TracedNode) -> list[tuple[list[TracedNode], list[NodeFacts]]]:
    """The same node with one input taken away."""
    (device,) = whole.gpus
    absent: Sample[Any] = Sample.absent("taken away")
    without: list[TracedGpu] = [
        msgspec.structs.replace(device, unexplained_bytes=absent),
        msgspec.structs.replace(device, headline=GpuClass.UNKNOWN),
        msgspec.structs.replace(device, headline=GpuClass.BLIND),
    ]
    found = [([node(one)], [looked()]) for one in without]
    found += [([whole], [looked(scan=Scan.QUICK)]), ([whole], [looked(visibility=blind())]), ([whole], [])]
    return [*found, ([node(problem="silent")], [looked()]), ([node()], [looked()])]


@over(
    st.sampled_from([GpuClass.BASELINE, GpuClass.GHOST_CONTEXT, GpuClass.PHANTOM_UTIL, GpuClass.SYSTEM_HOLDER, GpuClass.IN_GRACE]),
    st.sampled_from([(), (held(),), (held(GpuClass.ACTIVE, "b-1"),), (held(), held(GpuClass.ACTIVE, "b-1"))]),
    st.sampled_from([None, ago(minutes=5), ago(hours=3)]),
)
def test_taking_an_input_away_never_makes_an_answer_stronger_nor_turns_it_round(
    headline: GpuClass, holders: tuple[TracedHolder, ...], missed_at: Any
) -> None:
    gone = Shard(memories={0: memory(seen_node(seen_pod(missed_at=missed_at)))})
    whole = nodes_with(headline, holders)

    def answer(nodes: list[TracedNode], facts: list[NodeFacts]) -> DepartedPod:
        return gone.but(nodes=nodes, facts=facts).departed()

    full = answer([whole], [looked()])
    for nodes, facts in weaker_nodes(whole):
        less = answer(nodes, facts)
        assert STRENGTH[less.answer] <= STRENGTH[full.answer], (full.sentence, less.sentence)
        assert less.answer in (UNKNOWN, PENDING, full.answer), (full.sentence, less.sentence)
