"""The join of one node: who was given a GPU, what is unexplained, connections, and nodes that say nothing."""

import msgspec
import pytest

from steps.contracts.document import Sample, Stamp, State, decode, encode
from steps.contracts.node_facts import Activity, NodeFacts, SocketFacts
from steps.contracts.traced import Attribution, GpuClass, PodConnections, Traced, TracedNode
from steps.trace.activity import largest
from steps.trace.node import silent_node, trace_node
from tests.unit.trace_world import (
    CONTAINER_A,
    CONTAINER_B,
    GPU_A,
    GPU_B,
    MIB,
    NOON,
    POD_A,
    POD_B,
    allocation,
    cgroup_of,
    facts,
    gpu,
    listed,
    moment,
    pod,
    process,
)

BOTH = (pod(), pod(POD_B, (CONTAINER_B,)))


def join(node: NodeFacts, pods: tuple[object, ...] | None = BOTH) -> TracedNode:
    return trace_node(node, pods, now=NOON, lists=2)  # type: ignore[arg-type]


# allocations


@pytest.mark.parametrize("device", [GPU_A, f"{GPU_A}::0", f"{GPU_A}::13", f"{GPU_A}-0", "nvidia0", "nvidia0/vgpu1"])
def test_every_form_of_a_device_id_finds_its_gpu(device: str) -> None:
    node = facts((gpu(GPU_A), gpu(GPU_B, index=1)), allocations=(allocation(device),))
    first, second = (one.allocated_to.known() for one in join(node).gpus)
    assert first is not None
    assert [(one.device_id, one.pod_uid, one.pod, one.session_uid) for one in first] == [
        (device, POD_A, "pod-1111", "session-1111")
    ]
    assert second == ()


def test_a_mig_instance_is_found_by_its_own_id() -> None:
    node = facts((gpu(GPU_A), gpu("MIG-1", index=1, parent_uuid=GPU_A)), allocations=(allocation("MIG-1"),))
    assert [len(one.allocated_to.known() or ()) for one in join(node).gpus] == [0, 1]


def test_unknown_allocations_are_unknown_not_empty() -> None:
    node = facts()
    absent: Sample[tuple[object, ...]] = Sample.absent("no checkpoint", source="checkpoint")
    (one,) = join(msgspec.structs.replace(node, allocations=absent)).gpus
    assert (one.allocated_to.value, one.allocated_to.state, one.allocated_to.reason) == (None, State.ABSENT, "no checkpoint")


def test_a_stale_record_of_allocations_stays_stale() -> None:
    stale = Sample(value=(allocation(),), state=State.STALE, source="checkpoint")
    (one,) = join(msgspec.structs.replace(facts(), allocations=stale)).gpus
    assert (one.allocated_to.state, one.allocated_to.known()) == (State.STALE, None)


def test_an_allocation_to_a_pod_the_api_does_not_know_keeps_its_uid() -> None:
    (one,) = join(facts(allocations=(allocation(),)), ()).gpus
    given = one.allocated_to.known()
    assert given is not None
    assert [(entry.pod_uid, entry.pod) for entry in given] == [(POD_A, None)]


# memory


def test_what_is_unexplained_is_used_less_what_live_processes_are_listed_with() -> None:
    node = facts((gpu(used_mib=8100, processes=(listed(4001, 8000), listed(777, 50))),), (process(),))
    (one,) = join(node).gpus
    assert (one.baseline_bytes.known(), one.unexplained_bytes.known()) == (0, 100 * MIB)


@pytest.mark.parametrize(("used_mib", "process_mib"), [(None, 8000), (8100, None)])
def test_a_sum_with_a_gap_is_unknown(used_mib: int | None, process_mib: int | None) -> None:
    (one,) = join(facts((gpu(used_mib=used_mib, processes=(listed(4001, process_mib),)),), (process(),))).gpus
    assert one.unexplained_bytes.known() is None
    assert one.unexplained_bytes.reason is not None


# activity


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0.0, 0.3, 0.1], 0.3), ([0.0, None, 0.1], 0.1), ([0.0, None], None), ([0.0, 0.0], 0.0), ([None], None), ([], None)],
)
def test_the_largest_of_the_looks_counts_and_a_gap_is_no_zero(values: list[float | None], expected: float | None) -> None:
    samples: list[Sample[float]] = [Sample.error("timeout") if value is None else Sample.measured(value) for value in values]
    assert largest(samples).known() == expected


def test_utilisation_and_sm_activity_are_those_of_the_window() -> None:
    looks: tuple[Activity, ...] = (moment(0, 0.2, None), moment(0, 0.0, 0.0))
    (one,) = join(facts((gpu(activity=looks),))).gpus
    assert (one.utilisation_ratio.known(), one.sm_active_ratio.known()) == (0.2, None)


# holders


def test_a_holder_carries_its_pod_session_and_nvmls_figure() -> None:
    (one,) = join(facts((gpu(used_mib=8100, processes=(listed(),)),), (process(),))).gpus
    (holder,) = one.holders
    assert (holder.pod, holder.namespace, holder.container, holder.session_uid) == ("pod-1111", "team", "main", "session-1111")
    assert (holder.gpu_memory_bytes.known(), holder.known_to_nvml) == (8000 * MIB, True)


def test_a_spoofed_cgroup_blames_nobody() -> None:
    (one,) = join(facts((gpu(used_mib=8100, processes=(listed(),)),), (process(cgroup=cgroup_of(POD_B, CONTAINER_A)),))).gpus
    (holder,) = one.holders
    assert (holder.attribution, holder.pod_uid, holder.session_uid) == (Attribution.CONFLICT, None, None)


def test_gpus_of_one_node_get_verdicts_of_their_own() -> None:
    devices = (
        gpu(GPU_A, used_mib=8100, processes=(listed(),)),
        gpu(GPU_B, index=1, used_mib=9000),
        gpu("GPU-c", index=2),
    )
    traced = join(facts(devices, (process(),)))
    assert [one.headline for one in traced.gpus] == [GpuClass.IDLE_HOLDER, GpuClass.GHOST_CONTEXT, GpuClass.BASELINE]


# connections


def space(count: int | None, lines: tuple[str, ...] = cgroup_of()) -> SocketFacts:
    established: Sample[int] = Sample.error("EACCES") if count is None else Sample.measured(count)
    return SocketFacts(network_namespace="net:[1]", cgroup=lines, established=established)


def connections(*spaces: SocketFacts, pods: tuple[object, ...] | None = BOTH) -> dict[str, int | None]:
    known: tuple[PodConnections, ...] | None = join(facts(sockets=spaces), pods).connections.known()
    assert known is not None
    return {one.pod_uid: one.established.known() for one in known}


def test_connections_are_listed_by_pod_and_a_pod_without_a_namespace_is_not_listed() -> None:
    assert connections(space(2)) == {POD_A: 2}
    assert connections(space(0)) == {POD_A: 0}
    assert connections() == {}


def test_the_process_asked_may_be_the_pods_sandbox_which_no_status_lists() -> None:
    assert connections(space(1, cgroup_of(POD_A, "c" * 64))) == {POD_A: 1}


def test_one_connection_is_one_and_none_needs_every_namespace() -> None:
    assert connections(space(2), space(None)) == {POD_A: 2}
    assert connections(space(0), space(None)) == {POD_A: None}
    assert connections(space(2), space(3)) == {POD_A: 5}


def test_a_namespace_of_the_host_of_an_unknown_pod_or_of_two_pods_is_nobodys() -> None:
    host = space(9, ("0::/system.slice/sshd.service",))
    unknown = space(9, cgroup_of("99999999-aaaa-4bbb-8ccc-000000000009"))
    torn = space(9, (*cgroup_of(), f"4:memory:/kubepods/pod{POD_B}"))
    assert connections(host, unknown, torn) == {}


def test_without_the_apis_list_connections_go_by_the_cgroups_uid() -> None:
    assert connections(space(2), pods=None) == {POD_A: 2}


def test_unknown_sockets_are_unknown_connections() -> None:
    assert join(msgspec.structs.replace(facts(), sockets=Sample.error("EACCES"))).connections.known() is None


# nodes that say nothing


def test_a_silent_node_is_named_and_everything_about_it_is_unknown() -> None:
    node = silent_node("node-b", "no facts")
    assert (node.node, node.problem, node.gpus) == ("node-b", "no facts", ())
    assert (node.boot_id.known(), node.connections.known()) == (None, None)


def test_a_node_whose_nvml_cannot_be_asked_says_why_and_keeps_its_connections() -> None:
    node = msgspec.structs.replace(facts(sockets=(space(1),)), gpus=Sample.error("no NVML library"))
    traced = join(node)
    assert (traced.problem, traced.gpus) == ("NVML could not be asked: no NVML library", ())
    assert traced.connections.known() is not None


def test_a_node_without_gpus_has_no_problem() -> None:
    assert join(facts(())).problem is None


def test_what_trace_says_can_be_written_and_read_again() -> None:
    node = join(facts((gpu(used_mib=8100, processes=(listed(),)),), (process(),), allocations=(allocation(),)))
    traced = Traced(stamp=Stamp(made_by="trace", made_at=NOON, origin=facts().stamp.origin), nodes=(node,))
    assert decode(encode(traced), Traced, "here") == traced
