"""GPU nodes by name, in shards of a bounded size; a node that is not ready is not lost."""

from typing import Any

from steps.adapters.kubernetes.cluster import KubernetesCluster
from steps.contracts.ports import GpuNode
from steps.nodes.shards import shards_of
from tests.unit.api_double import ApiDouble, FakeClock


def nodes_of(*raws: tuple[str, dict[str, Any], str]) -> tuple[GpuNode, ...]:
    api = ApiDouble()
    for name, resources, ready in raws:
        api.put(f"/api/v1/nodes/{name}", {"status": {**resources, "conditions": [{"type": "Ready", "status": ready}]}})
    return KubernetesCluster(api, FakeClock()).gpu_nodes()


def test_nodes_that_offer_gpus_or_slices_are_listed_by_name() -> None:
    found = nodes_of(
        ("b", {"allocatable": {"nvidia.com/gpu": "8", "cpu": "64"}}, "True"),
        ("a", {"allocatable": {"nvidia.com/mig-1g.10gb": "7", "nvidia.com/gpu": "0"}}, "True"),
        ("cpu", {"allocatable": {"cpu": "8"}}, "True"),
    )
    assert found == (GpuNode(name="a", gpus=7, ready=True), GpuNode(name="b", gpus=8, ready=True))


def test_a_node_that_is_not_ready_stays_in_the_list_so_that_the_sweep_can_name_it() -> None:
    (node,) = nodes_of(("a", {"allocatable": {"nvidia.com/gpu": "1"}}, "Unknown"))
    assert not node.ready


def test_a_node_whose_devices_all_went_unhealthy_still_has_gpus_to_look_at() -> None:
    (node,) = nodes_of(("a", {"allocatable": {"nvidia.com/gpu": "0"}, "capacity": {"nvidia.com/gpu": "4"}}, "True"))
    assert node.gpus == 4


def test_shards_are_full_but_the_last_sorted_and_numbered_from_zero() -> None:
    shards = shards_of(["c", "a", "b"], 2)
    assert [(shard.shard, shard.nodes) for shard in shards] == [(0, ("a", "b")), (1, ("c",))]


def test_no_node_gives_no_shard_and_an_exact_fit_no_empty_one() -> None:
    assert shards_of([], 2) == ()
    assert [len(shard.nodes) for shard in shards_of(["a", "b"], 2)] == [2]
