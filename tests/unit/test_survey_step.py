"""The steps that only read: survey and nodes, from flags to the document they leave."""

from pathlib import Path

import msgspec
import pytest

from steps.contracts.cluster_facts import ClusterFacts
from steps.contracts.document import Origin, decode
from steps.contracts.errors import BadInput, Exit
from steps.nodes.declaration import STEP as NODES
from steps.nodes.step import run as list_nodes
from steps.survey.declaration import STEP as SURVEY
from steps.survey.step import run as survey
from tests.unit.api_double import NOON, ApiDouble
from tests.unit.cluster_world import cluster, deploy
from tests.unit.reclaim_outside import inputs, outside


def test_survey_writes_pods_sessions_and_waiters_and_says_what_they_come_from(tmp_path: Path) -> None:
    api = cluster()
    owner = deploy(api)
    policy = tmp_path / "policy.yaml"
    policy.write_text("mode: observe\nnamespaces: [team]\n")
    assert survey(inputs(SURVEY, tmp_path, nodes='["n1"]', policy=str(policy)), outside(api)) is Exit.DONE
    facts = decode((tmp_path / "cluster").read_bytes(), ClusterFacts, "cluster")
    assert (facts.nodes, [pod.name for pod in facts.pods], [one.owner for one in facts.sessions]) == (("n1",), ["a-0"], [owner])
    assert (facts.stamp.made_by, facts.stamp.made_at, facts.stamp.origin) == ("survey", NOON, Origin.SIMULATED)
    assert api.writes == []


def test_a_namespace_of_the_policy_that_does_not_exist_leaves_no_document(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("mode: observe\nnamespaces: [gone]\n")
    with pytest.raises(BadInput, match="gone"):
        survey(inputs(SURVEY, tmp_path, nodes="[]", policy=str(policy)), outside(cluster()))
    assert not (tmp_path / "cluster").exists()


def with_nodes(number: int, name_length: int = 4) -> ApiDouble:
    api = ApiDouble()
    for index in range(number):
        api.put(f"/api/v1/nodes/{index:0{name_length}}", {"status": {"allocatable": {"nvidia.com/gpu": "8"}}})
    return api


def test_nodes_writes_a_json_list_of_shards(tmp_path: Path) -> None:
    assert list_nodes(inputs(NODES, tmp_path, shard_size="2"), outside(with_nodes(3))) is Exit.DONE
    shards = msgspec.json.decode((tmp_path / "shards").read_bytes())
    assert (tmp_path / "count").read_text() == "2"
    assert shards == [{"shard": 0, "nodes": ["0000", "0001"]}, {"shard": 1, "nodes": ["0002"]}]


def test_a_cluster_without_gpus_gives_an_empty_list_and_is_no_error(tmp_path: Path) -> None:
    assert list_nodes(inputs(NODES, tmp_path), outside(ApiDouble())) is Exit.DONE
    assert ((tmp_path / "shards").read_text(), (tmp_path / "count").read_text()) == ("[]", "0")


def test_a_shard_size_of_zero_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--shard-size got 0"):
        list_nodes(inputs(NODES, tmp_path, shard_size="0"), outside(with_nodes(1)))


def test_more_nodes_than_an_argument_holds_are_refused_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="sweep one pool of nodes at a time"):
        list_nodes(inputs(NODES, tmp_path), outside(with_nodes(600, name_length=250)))
    assert not (tmp_path / "shards").exists()
