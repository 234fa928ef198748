"""The steps that only read: survey and nodes, from flags to the document they leave."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steps.contracts.cluster_facts import ClusterFacts, PodFacts
from steps.contracts.document import Origin, Sample, decode
from steps.contracts.errors import BadInput, Exit, SourceUnavailable
from steps.contracts.node_facts import NodeFacts, PodOnDisk
from steps.contracts.parcel import pack
from steps.nodes.declaration import STEP as NODES
from steps.nodes.step import run as list_nodes
from steps.survey.declaration import STEP as SURVEY
from steps.survey.step import SECOND_LIST_AFTER_S, Pods, pods_of
from steps.survey.step import run as survey
from tests.unit import trace_world as built
from tests.unit.api_double import NOON, ApiDouble, FakeClock
from tests.unit.cluster_world import cluster, deploy
from tests.unit.reclaim_outside import inputs, outside
from tests.unit.trace_world import POD_A, POD_B, allocation, cgroup_of, process

NONE_NAMED = built.facts((), ())


def delivered(folder: Path, *facts: NodeFacts) -> str:
    """What collect handed over, as a file."""
    path = folder / "facts.json"
    path.write_bytes(b"[" + b",".join(pack(one) for one in facts) + b"]")
    return str(path)


def test_survey_writes_pods_sessions_and_waiters_and_says_what_they_come_from(tmp_path: Path) -> None:
    api = cluster()
    owner = deploy(api)
    policy = tmp_path / "policy.yaml"
    policy.write_text("mode: observe\nnamespaces: [team]\n")
    assert (
        survey(inputs(SURVEY, tmp_path, nodes='["n1"]', facts=delivered(tmp_path), policy=str(policy)), outside(api)) is Exit.DONE
    )
    facts = decode((tmp_path / "cluster").read_bytes(), ClusterFacts, "cluster")
    assert (facts.nodes, [pod.name for pod in facts.pods], [one.owner for one in facts.sessions]) == (("n1",), ["a-0"], [owner])
    assert (facts.stamp.made_by, facts.stamp.made_at, facts.stamp.origin) == ("survey", NOON, Origin.SIMULATED)
    assert api.writes == []
    assert facts.pod_lists == 1


NAMED_BY: dict[str, Any] = {
    "a cgroup": built.facts((), (process(cgroup=cgroup_of(POD_A)),)),
    "a cgroup of systemd's slices": built.facts((), (process(cgroup=(f"0::/kubepods-pod{POD_A.replace('-', '_')}.slice",)),)),
    "an allocation": built.facts((), (), allocations=(allocation(pod=POD_A),)),
    "a kubelet's folder": built.facts(
        (), (), pods_on_disk=Sample.measured((PodOnDisk(uid=POD_A, namespace="team", name="a-0", kept=True),))
    ),
}


@dataclass
class Lists:
    """A ClusterReader of so many answers, one a list; the last repeats."""

    answers: list[tuple[PodFacts, ...] | SourceUnavailable]
    asked: list[Sequence[str]] = field(default_factory=list)

    def pods_on(self, nodes: Sequence[str]) -> tuple[PodFacts, ...]:
        self.asked.append(nodes)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, SourceUnavailable):
            raise answer
        return answer

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the pods need no {name}")


def surveyed(facts: NodeFacts, *answers: tuple[PodFacts, ...] | SourceUnavailable) -> tuple[Pods, float, int]:
    """The pods, how long was waited, and how many lists were made."""
    lists, clock = Lists(list(answers)), FakeClock()
    pods = pods_of(("node-a",), (facts,), lists, clock)
    return pods, (clock.now() - NOON).total_seconds(), len(lists.asked)


@pytest.mark.parametrize("facts", NAMED_BY.values(), ids=NAMED_BY)
def test_a_pod_that_the_node_names_and_two_lists_lack_is_missing_from_two(facts: NodeFacts) -> None:
    assert surveyed(facts, (), ()) == (Pods((), 2, (POD_A,)), SECOND_LIST_AFTER_S, 2)


@pytest.mark.parametrize("facts", NAMED_BY.values(), ids=NAMED_BY)
def test_a_pod_that_only_the_first_list_lacks_is_there(facts: NodeFacts) -> None:
    listed = built.pod(POD_A)
    assert surveyed(facts, (), (listed,)) == (Pods((listed,), 2, ()), SECOND_LIST_AFTER_S, 2)


def test_where_the_list_has_every_pod_that_the_node_names_nobody_waits_and_nobody_lists_again() -> None:
    listed = built.pod(POD_A)
    for facts in (*NAMED_BY.values(), NONE_NAMED):
        assert surveyed(facts, (listed,)) == (Pods((listed,), 1, ()), 0.0, 1)


def test_a_static_pod_is_listed_by_its_hash_on_its_own_node_alone() -> None:
    named = built.facts((), (process(cgroup=cgroup_of("487a0dc6dccaeefbcfedba7a7ce1ca18")),))
    here = built.pod(config_hash="487a0dc6dccaeefbcfedba7a7ce1ca18")
    there = built.pod(node="node-b", config_hash="487a0dc6dccaeefbcfedba7a7ce1ca18")
    assert (surveyed(named, (here,))[2], surveyed(named, (there,), (there,))[2]) == (1, 2)


def test_a_pod_that_the_second_list_lacks_counts_as_there_with_what_the_first_said() -> None:
    """It was deleted between the two; of a pod that both have the later word counts."""
    gone, before, after = built.pod(POD_B), built.pod(POD_A), built.pod(POD_A, grace_s=7)
    named = built.facts((), (), allocations=(allocation(pod="33333333-aaaa-4bbb-8ccc-000000000003"),))
    pods, _, _ = surveyed(named, (gone, before), (after,))
    assert (pods.pods, pods.lists) == ((after, gone), 2)


def test_a_second_list_that_fails_leaves_the_word_of_one() -> None:
    pods, _, asked = surveyed(NAMED_BY["a cgroup"], (), SourceUnavailable("the API server is overloaded"))
    assert (pods, asked) == (Pods((), 1, (POD_A,)), 2)


def test_a_first_list_that_fails_is_no_list_of_no_pods(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable):
        surveyed(NAMED_BY["a cgroup"], SourceUnavailable("the API server is overloaded"))


def test_survey_says_by_how_many_lists_it_knows_the_pods(tmp_path: Path) -> None:
    api = cluster()
    deploy(api)
    policy = tmp_path / "policy.yaml"
    policy.write_text("mode: observe\nnamespaces: [team]\n")
    given = delivered(tmp_path, NAMED_BY["an allocation"])
    assert survey(inputs(SURVEY, tmp_path, nodes='["n1"]', facts=given, policy=str(policy)), outside(api)) is Exit.DONE
    facts = decode((tmp_path / "cluster").read_bytes(), ClusterFacts, "cluster")
    assert (facts.pod_lists, [pod.name for pod in facts.pods]) == (2, ["a-0"])


def test_a_namespace_of_the_policy_that_does_not_exist_is_named_in_the_document_beside_the_sessions_of_others(
    tmp_path: Path,
) -> None:
    api = cluster()
    deploy(api)
    policy = tmp_path / "policy.yaml"
    policy.write_text("mode: observe\nnamespaces: [gone, team]\n")
    given = inputs(SURVEY, tmp_path, nodes='["n1"]', facts=delivered(tmp_path), policy=str(policy))
    assert survey(given, outside(api)) is Exit.DONE
    facts = decode((tmp_path / "cluster").read_bytes(), ClusterFacts, "cluster")
    assert (facts.absent_namespaces, len(facts.sessions)) == (("gone",), 1)


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
    with pytest.raises(BadInput, match="--shard-size got '0'; give a whole number, 1 or more"):
        list_nodes(inputs(NODES, tmp_path, shard_size="0"), outside(with_nodes(1)))


def test_more_nodes_than_an_argument_holds_are_refused_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="sweep one pool of nodes at a time"):
        list_nodes(inputs(NODES, tmp_path), outside(with_nodes(600, name_length=250)))
    assert not (tmp_path / "shards").exists()
