"""Whose process it is: what a cgroup claims, and what the API confirms."""

from collections.abc import Sequence

import msgspec
import pytest

from steps.contracts.cluster_facts import ContainerFacts, Phase, PodFacts
from steps.contracts.document import Sample
from steps.contracts.traced import Attribution, Qos
from steps.trace.attribution import Owner, PodIndex, attribute
from tests.unit.trace_world import CONTAINER_A, CONTAINER_B, NODE, POD_A, POD_B, cgroup_of, pod

HASH = "487a0dc6dccaeefbcfedba7a7ce1ca18"
SPOOFED = f"0::/kubepods/burstable/pod{POD_A}/{CONTAINER_A}/pod{POD_B}/{CONTAINER_B}"


def owner_of(lines: Sequence[str], pods: Sequence[PodFacts] | None = (pod(),), lists: int = 2) -> Owner:
    return attribute(Sample.measured(tuple(lines)), PodIndex(pods, NODE, lists=lists))


def test_a_container_that_the_pod_lists_is_attributed_to_it() -> None:
    owner = owner_of(cgroup_of())
    assert (owner.attribution, owner.pod_uid, owner.container, owner.gone) == (Attribution.CONTAINER, POD_A, "main", None)
    assert owner.qos is Qos.BURSTABLE


def test_a_container_the_pod_does_not_list_is_a_conflict_and_blames_nobody() -> None:
    """A privileged tenant can write another pod's uid into a cgroup path."""
    owner = owner_of(cgroup_of(container=CONTAINER_B))
    assert (owner.attribution, owner.pod_uid, owner.pod) == (Attribution.CONFLICT, None, None)


def test_a_pods_cgroup_inside_that_of_another_pod_is_a_conflict_even_with_the_right_container_id() -> None:
    owner = owner_of([SPOOFED], [pod(), pod(POD_B, [CONTAINER_B])])
    assert (owner.attribution, owner.pod_uid) == (Attribution.CONFLICT, None)


def test_an_outer_pod_that_the_api_does_not_know_is_no_conflict() -> None:
    """A whole cluster may run inside a pod of another one."""
    owner = owner_of([SPOOFED], [pod(POD_B, [CONTAINER_B])])
    assert (owner.attribution, owner.pod_uid) == (Attribution.CONTAINER, POD_B)


def test_lines_that_disagree_are_a_conflict() -> None:
    owner = owner_of([*cgroup_of(), f"4:memory:/kubepods/pod{POD_B}/{CONTAINER_A}"])
    assert owner.attribution is Attribution.CONFLICT


def test_a_pod_that_runs_on_another_node_has_no_process_here() -> None:
    owner = owner_of(cgroup_of(), [pod(node="node-b")])
    assert owner.attribution is Attribution.CONFLICT


@pytest.mark.parametrize(("lists", "kind"), [(1, Attribution.UNKNOWN), (2, Attribution.POD_GONE), (3, Attribution.POD_GONE)])
def test_a_pod_that_one_list_of_the_api_lacks_is_not_yet_gone(lists: int, kind: Attribution) -> None:
    owner = owner_of(cgroup_of(), [], lists)
    assert (owner.attribution, owner.pod_uid, owner.once, owner.one_list) == (kind, POD_A, True, lists == 1)


def test_without_the_apis_list_no_pod_can_be_called_gone() -> None:
    owner = owner_of(cgroup_of(), None)
    assert (owner.attribution, owner.pod_uid, owner.gone) == (Attribution.CONTAINER, POD_A, None)
    assert "not at hand" in owner.reason


@pytest.mark.parametrize("phase", [Phase.SUCCEEDED, Phase.FAILED])
def test_a_pod_that_has_ended_is_gone_for_its_processes(phase: Phase) -> None:
    owner = owner_of(cgroup_of(), [pod(phase=phase)])
    assert (owner.attribution, owner.once) == (Attribution.CONTAINER, False)
    assert owner.gone is not None


def test_the_last_states_container_still_names_the_pod_and_is_gone_once_replaced() -> None:
    restarted = pod(containers=[CONTAINER_B, CONTAINER_A])
    old, new = owner_of(cgroup_of(), [restarted]), owner_of(cgroup_of(container=CONTAINER_B), [restarted])
    assert (old.pod_uid, old.container, new.gone) == (POD_A, "main", None)
    assert old.gone is not None
    assert "replaced" in old.gone


def test_a_deleted_cgroup_is_gone_whether_or_not_the_list_is_at_hand() -> None:
    deleted = (f"{cgroup_of()[0]} (deleted)",)
    assert owner_of(deleted).gone == "its cgroup is deleted"
    assert owner_of(deleted, None).gone == "its cgroup is deleted"


def test_a_static_pod_is_joined_by_its_config_hash_on_its_own_node_only() -> None:
    line = [f"0::/kubepods/burstable/pod{HASH}/{CONTAINER_A}"]
    here, there = pod(config_hash=HASH), pod(POD_B, [CONTAINER_B], config_hash=HASH, node="node-b")
    owner = owner_of(line, [there, here])
    assert (owner.attribution, owner.pod_uid) == (Attribution.CONTAINER, POD_A)
    assert "config hash" in owner.reason
    assert owner_of(line, [there]).attribution is Attribution.POD_GONE


@pytest.mark.parametrize(
    "line",
    [
        f"0::/kubepods.slice/kubepods-pod{POD_A.replace('-', '_')}.slice/crio-{CONTAINER_B}",
        f"0::/kubepods/pod{POD_A}/crio-conmon-{CONTAINER_B}",
        f"0::/kubepods/pod{POD_A}",
    ],
)
def test_a_sandbox_a_monitor_and_a_bare_pod_cgroup_attribute_at_pod_level(line: str) -> None:
    owner = owner_of([line])
    assert (owner.attribution, owner.pod_uid, owner.container) == (Attribution.POD, POD_A, None)


def test_a_sandbox_id_that_looks_like_a_container_attributes_at_pod_level_where_the_runtime_told_it() -> None:
    """gVisor: every container of the pod runs in one process under the sandbox's id."""
    owner = owner_of(cgroup_of(container=CONTAINER_B), [pod(sandbox_ids=(CONTAINER_B,))])
    assert (owner.attribution, owner.pod_uid) == (Attribution.POD, POD_A)


def test_a_relative_path_without_a_pod_is_joined_by_its_container_id() -> None:
    line = [f"0::/../crio-{CONTAINER_A}.scope"]
    assert owner_of(line).pod_uid == POD_A
    assert owner_of(line, []).attribution is Attribution.UNKNOWN
    assert owner_of(line, [pod(node="node-b")]).attribution is Attribution.CONFLICT


@pytest.mark.parametrize(
    ("line", "attribution"),
    [
        ("0::/system.slice/nvidia-persistenced.service", Attribution.HOST),
        (f"0::/system.slice/docker-{CONTAINER_B}.scope", Attribution.HOST),
        ("0::/../..", Attribution.UNKNOWN),
        ("0::/", Attribution.UNKNOWN),
        (f"0::/kata_overhead/{CONTAINER_B}", Attribution.UNKNOWN),
        ("no colon", Attribution.UNKNOWN),
    ],
)
def test_without_a_pod_it_is_the_host_or_unknown_never_a_guess(line: str, attribution: Attribution) -> None:
    assert owner_of([line]).attribution is attribution


def test_a_dying_process_on_v1_says_that_its_attribution_is_lost() -> None:
    owner = owner_of(["8:pids:/", "4:memory:/"])
    assert owner.attribution is Attribution.UNKNOWN
    assert "lost on v1" in owner.reason


def test_a_cgroup_that_could_not_be_read_is_unknown_with_its_reason() -> None:
    owner = attribute(Sample.error("EACCES"), PodIndex([pod()], NODE))
    assert (owner.attribution, "EACCES" in owner.reason) == (Attribution.UNKNOWN, True)


def test_every_container_of_the_pod_counts_init_and_ephemeral_ones_as_well() -> None:
    init = ContainerFacts(name="init", container_ids=(CONTAINER_B,))
    debug = ContainerFacts(name="debug", container_ids=(CONTAINER_A,))
    several = msgspec.structs.replace(pod(), containers=(init, debug))
    assert owner_of(cgroup_of(), [several]).container == "debug"
