"""Attribution by the kubelet's folders: names the API lacks, gone where the kubelet is done, conflicts."""

from typing import Any

import pytest

from steps.contracts.cluster_facts import ContainerFacts, PodFacts
from steps.contracts.document import Sample
from steps.contracts.node_facts import NodeFacts, PodOnDisk
from steps.contracts.traced import Attribution, GpuClass, TracedHolder
from steps.trace.node import trace_node
from tests.unit.trace_world import CONTAINER_A, CONTAINER_B, NOON, POD_A, allocation, cgroup_of, facts, gpu, listed, pod, process


def on_disk(kept: bool | None = True, ids: tuple[str, ...] | None = (CONTAINER_A,), **other: Any) -> PodOnDisk:
    containers = None if ids is None else (ContainerFacts(name="main", container_ids=ids),)
    return PodOnDisk(**{"uid": POD_A, "namespace": "team", "name": "notebook-0", "kept": kept, "containers": containers, **other})


def held(folder: PodOnDisk | None, **other: Any) -> NodeFacts:
    known = Sample.absent("not here") if folder is None else Sample.measured((folder,))
    return facts((gpu(used_mib=8100, processes=(listed(),)),), (process(),), pods_on_disk=known, **other)


def holder(seen: NodeFacts, pods: tuple[()] | None = None, lists: int = 2) -> TracedHolder:
    (one,) = trace_node(seen, pods, now=NOON, lists=lists).gpus[0].holders
    return one


def test_without_the_api_the_folders_name_pod_namespace_and_container() -> None:
    one = holder(held(on_disk()))
    assert (one.attribution, one.pod, one.namespace, one.container) == (Attribution.CONTAINER, "notebook-0", "team", "main")
    assert "kubelet's folders" in one.attribution_reason
    assert one.gpu_class is GpuClass.IDLE_HOLDER


def test_a_pod_the_api_does_not_know_keeps_its_name_by_the_folders() -> None:
    one = holder(held(on_disk(kept=None)), ())
    assert (one.attribution, one.pod, one.namespace) == (Attribution.POD_GONE, "notebook-0", "team")
    assert one.gpu_class is GpuClass.POD_GONE_LIVE


@pytest.mark.parametrize(("kept", "gone"), [(None, False), (True, False), (False, True)])
def test_one_list_of_the_api_is_enough_only_where_the_kubelet_has_finished_with_the_pod(kept: bool | None, gone: bool) -> None:
    one = holder(held(on_disk(kept=kept)), (), lists=1)
    assert (one.gpu_class is GpuClass.POD_GONE_LIVE, one.pod) == (gone, "notebook-0")


MANIFEST = "9e107d9d372bb6826bd81d3542a419d6"


@pytest.mark.parametrize(("kept", "expected"), [(True, "UNKNOWN"), (None, "POD_GONE_LIVE"), (False, "POD_GONE_LIVE")])
def test_a_static_pod_without_a_mirror_is_not_gone_while_the_kubelet_keeps_it(kept: bool | None, expected: str) -> None:
    """The kubelet runs it by its manifest; the API may have refused the mirror, or somebody deleted it."""
    static = process(cgroup=(f"0::/kubepods/burstable/pod{MANIFEST}/{CONTAINER_A}",))
    folder = Sample.measured((on_disk(kept, uid=MANIFEST),))
    given = (allocation(pod=MANIFEST),)
    seen = facts((gpu(used_mib=8100, processes=(listed(),)),), (static,), pods_on_disk=folder, allocations=given)
    (traced,) = trace_node(seen, (), now=NOON, lists=2).gpus
    (record,) = traced.allocated_to.known() or ()
    assert (traced.headline.value, record.lives) == (expected, None if kept is True else False)
    assert ("the kubelet keeps it" in traced.holders[0].attribution_reason) == (kept is True)


def test_a_pod_the_kubelet_has_finished_with_is_gone_without_the_api() -> None:
    one = holder(held(on_disk(kept=False)))
    assert (one.attribution, one.gpu_class, one.pod) == (Attribution.POD_GONE, GpuClass.POD_GONE_LIVE, "notebook-0")


def test_seen_gone_in_one_look_only_is_not_yet_gone() -> None:
    assert holder(held(on_disk(kept=False), samples=1, span_s=0.0)).gpu_class is not GpuClass.POD_GONE_LIVE


@pytest.mark.parametrize("folder", [None, on_disk(kept=None)], ids=["no folders", "logs alone"])
def test_nothing_is_gone_where_the_kubelets_own_folders_cannot_be_listed(folder: PodOnDisk | None) -> None:
    assert (holder(held(folder)).gpu_class, holder(held(folder)).attribution) == (GpuClass.UNKNOWN, Attribution.CONTAINER)


@pytest.mark.parametrize("folder", [None, on_disk(kept=None)], ids=["no folders", "logs alone"])
def test_a_pod_that_the_caller_knows_to_exist_can_be_idle_although_nobody_here_was_asked(folder: PodOnDisk | None) -> None:
    (traced,) = trace_node(held(folder), None, now=NOON, existing=[POD_A]).gpus
    assert traced.headline is GpuClass.IDLE_HOLDER


def test_a_container_the_kubelet_never_logged_is_a_conflict_and_names_nobody() -> None:
    """A privileged tenant can write any pod's uid into a cgroup (facts 2.2)."""
    one = holder(held(on_disk(ids=(CONTAINER_B,))))
    assert (one.attribution, one.pod_uid, one.pod) == (Attribution.CONFLICT, None, None)


@pytest.mark.parametrize("ids", [None, ()], ids=["links unknown", "no links at all"])
def test_a_pod_without_any_log_link_proves_no_conflict(ids: tuple[str, ...] | None) -> None:
    folder = on_disk(ids=ids) if ids is None else on_disk(containers=())
    one = holder(held(folder))
    assert (one.attribution, one.pod, one.container) == (Attribution.CONTAINER, "notebook-0", None)
    assert "not checked" in one.attribution_reason


def test_a_container_that_was_replaced_is_gone_although_its_pod_lives() -> None:
    one = holder(held(on_disk(ids=(CONTAINER_B, CONTAINER_A))))
    assert (one.gpu_class, one.container) == (GpuClass.POD_GONE_LIVE, "main")
    assert "replaced" in one.reason


def given(folder: PodOnDisk | None) -> NodeFacts:
    known = Sample.absent("not here") if folder is None else Sample.measured((folder,))
    return facts((gpu(),), (), allocations=(allocation(),), pods_on_disk=known)


def test_a_device_given_to_a_pod_that_the_kubelet_has_and_without_a_process_is_said_to_be_idle() -> None:
    (traced,) = trace_node(given(on_disk()), None, now=NOON).gpus
    assert [finding.gpu_class for finding in traced.findings] == [GpuClass.IDLE_HOLDER]
    assert [(one.pod, one.namespace) for one in traced.allocated_to.known() or ()] == [("notebook-0", "team")]


@pytest.mark.parametrize("folder", [None, on_disk(kept=None), on_disk(kept=False)], ids=["unknown", "logs alone", "gone"])
def test_a_device_given_to_a_pod_of_which_nobody_knows_that_it_lives_is_not(folder: PodOnDisk | None) -> None:
    """The kubelet forgets an allocation only at the next one."""
    assert trace_node(given(folder), None, now=NOON).gpus[0].findings == ()


SANDBOX = "e" * 64


def in_sandbox(*pods: PodFacts, api: bool, folder: PodOnDisk) -> TracedHolder:
    seen = facts(
        (gpu(used_mib=8100, processes=(listed(),)),),
        (process(cgroup=cgroup_of(POD_A, SANDBOX)),),
        pods_on_disk=Sample.measured((folder,)),
    )
    (one,) = trace_node(seen, pods if api else None, now=NOON).gpus[0].holders
    return one


@pytest.mark.parametrize("api", [True, False])
def test_a_sandbox_that_the_runtime_knows_is_attributed_at_pod_level(api: bool) -> None:
    """gVisor's processes all carry the sandbox's id; without the runtime they are a conflict (facts 1.8)."""
    one = in_sandbox(pod(), api=api, folder=on_disk(sandbox_ids=(SANDBOX,)))
    assert (one.attribution, one.pod_uid, one.container) == (Attribution.POD, POD_A, None), one.attribution_reason
    assert in_sandbox(pod(), api=api, folder=on_disk()).attribution is Attribution.CONFLICT


@pytest.mark.parametrize("api", [True, False])
def test_kata_whose_path_shows_no_pod_is_joined_by_its_sandbox(api: bool) -> None:
    folder = on_disk(sandbox_ids=(SANDBOX,))
    seen = facts(
        (gpu(used_mib=8100, processes=(listed(),)),),
        (process(cgroup=(f"0::/kata_overhead/{SANDBOX}",)),),
        pods_on_disk=Sample.measured((folder,)),
    )
    (one,) = trace_node(seen, (pod(),) if api else None, now=NOON).gpus[0].holders
    assert (one.attribution, one.pod_uid) == (Attribution.POD, POD_A), one.attribution_reason
