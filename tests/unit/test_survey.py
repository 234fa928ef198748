"""Sessions at their top owner, in the namespaces that opted in, and who waits; with no write and few reads."""

from typing import Any

import pytest

from steps.adapters.kubernetes.cluster import KubernetesCluster
from steps.contracts.cluster_facts import Guard, Session
from steps.contracts.errors import SourceUnavailable
from steps.contracts.policy import Mode, Policy
from tests.unit.api_double import NOON, ApiDouble, FakeClock, Fault, forbidden
from tests.unit.cluster_world import POLICY, TEAM, cluster, controlled_by, deploy, pod


def survey(api: ApiDouble, *nodes: str, policy: Policy = POLICY) -> list[Session]:
    reader = KubernetesCluster(api, FakeClock())
    return list(reader.sessions(policy, reader.pods_on(nodes or ("n1",))))


def only(sessions: list[Session]) -> Session:
    (session,) = sessions
    return session


def test_a_session_is_the_deployment_above_the_replica_set_with_all_its_pods() -> None:
    api = cluster()
    owner = deploy(api, replicas=2, gpus=4)
    session = only(survey(api))
    assert (session.owner, session.replicas, session.gpus_requested) == (owner, 2, 4)
    assert len(session.pod_uids) == 2
    assert session.created_at.hour == 9


def test_pods_on_the_surveyed_nodes_know_their_session() -> None:
    api = cluster()
    owner = deploy(api)
    deploy(api, "cpu", gpus=0)
    pod(api, "elsewhere", node="n2")
    facts = KubernetesCluster(api, FakeClock()).pods_on(["n1"])
    assert {(one.name, one.owner_uid) for one in facts} == {("a-0", owner.uid), ("cpu-0", None)}


def test_who_asks_for_no_gpu_is_no_session_nor_is_who_lives_in_another_namespace() -> None:
    api = cluster()
    deploy(api, gpus=0)
    deploy(api, "b", namespace="other")
    assert survey(api) == []


def test_an_empty_list_of_namespaces_means_none() -> None:
    api = cluster()
    deploy(api)
    assert survey(api, policy=Policy(mode=Mode.ACT, namespaces=())) == []


def test_a_session_at_zero_with_a_pod_left_is_seen_and_one_without_pods_is_not() -> None:
    api = cluster()
    deploy(api)
    deploy(api, "b", replicas=0)
    path = f"/apis/apps/v1/namespaces/{TEAM}/deployments/a"
    api.objects[path]["spec"]["replicas"] = 0
    session = only(survey(api))
    assert (session.owner.name, session.replicas, len(session.pod_uids)) == ("a", 0, 1)


def test_a_pod_that_ended_is_no_part_of_a_session_and_one_that_is_terminating_is() -> None:
    api = cluster()
    deploy(api, replicas=3)
    pods = f"/api/v1/namespaces/{TEAM}/pods"
    api.objects[f"{pods}/a-0"]["status"]["phase"] = "Failed"
    api.objects[f"{pods}/a-1"]["metadata"]["deletionTimestamp"] = "2026-11-30T11:59:00Z"
    alive = {api.objects[f"{pods}/{name}"]["metadata"]["uid"] for name in ("a-1", "a-2")}
    assert set(only(survey(api)).pod_uids) == alive


def test_a_session_with_pods_on_other_nodes_only_belongs_to_their_shard() -> None:
    api = cluster()
    deploy(api)
    assert survey(api, "n2") == []


def test_a_replica_on_another_shards_node_is_named_all_the_same() -> None:
    api = cluster()
    deploy(api, replicas=2)
    api.objects[f"/api/v1/namespaces/{TEAM}/pods/a-1"]["spec"]["nodeName"] = "n2"
    assert len(only(survey(api, "n1")).pod_uids) == 2


def test_a_session_that_waits_is_in_every_shard() -> None:
    api = cluster()
    deploy(api)
    raw = api.objects[f"/api/v1/namespaces/{TEAM}/pods/a-0"]
    del raw["spec"]["nodeName"]
    raw["status"] = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    assert (len(survey(api, "n1")), len(survey(api, "n2"))) == (1, 1)


@pytest.mark.parametrize(
    ("owner", "kind"),
    [
        ({"kind": "StatefulSet", "apiVersion": "apps/v1", "plural": "statefulsets", "prefix": "/apis/apps/v1"}, "StatefulSet"),
        ({"kind": "Job", "apiVersion": "batch/v1", "plural": "jobs", "prefix": "/apis/batch/v1"}, "Job"),
        ({"kind": "DaemonSet", "apiVersion": "apps/v1", "plural": "daemonsets", "prefix": "/apis/apps/v1"}, "DaemonSet"),
    ],
)
def test_a_kind_that_cannot_be_stopped_yet_is_refused_by_its_name(owner: dict[str, str], kind: str) -> None:
    api = cluster()
    made = api.put(f"{owner['prefix']}/namespaces/{TEAM}/{owner['plural']}/s", {"spec": {"replicas": 1}})
    pod(api, "s-0", ownerReferences=[controlled_by(made, owner["kind"], owner["apiVersion"])])
    session = only(survey(api))
    assert (session.owner.kind, [met.guard for met in session.guards]) == (kind, [Guard.OWNER_UNSUPPORTED])
    assert kind in session.guards[0].detail


def test_a_stateful_set_that_deletes_volumes_says_that_too() -> None:
    api = cluster()
    spec = {"replicas": 1, "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}
    made = api.put(f"/apis/apps/v1/namespaces/{TEAM}/statefulsets/s", {"spec": spec})
    pod(api, "s-0", ownerReferences=[controlled_by(made, "StatefulSet")])
    assert [met.guard for met in only(survey(api)).guards] == [Guard.OWNER_UNSUPPORTED, Guard.VOLUMES_DELETED]


def test_a_custom_owner_above_a_built_in_one_is_the_top_and_is_not_read() -> None:
    api = cluster()
    reference = {"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "name": "nb", "uid": "uid-nb", "controller": True}
    made = api.put(f"/apis/apps/v1/namespaces/{TEAM}/statefulsets/s", {"metadata": {"ownerReferences": [reference]}, "spec": {}})
    pod(api, "s-0", ownerReferences=[controlled_by(made, "StatefulSet")])
    session = only(survey(api))
    assert (session.owner.kind, session.owner.uid, session.owner.namespace) == ("Notebook", "uid-nb", TEAM)
    assert [met.guard for met in session.guards] == [Guard.OWNER_UNSUPPORTED]


def test_a_custom_kind_that_bears_the_name_of_a_built_in_one_is_not_taken_for_it() -> None:
    api = cluster()
    reference = {"apiVersion": "example.com/v1", "kind": "Deployment", "name": "a", "uid": "uid-x", "controller": True}
    pod(api, "p", ownerReferences=[reference])
    assert [met.guard for met in only(survey(api)).guards] == [Guard.OWNER_UNSUPPORTED]


def test_a_bare_pod_is_its_own_session_and_refused() -> None:
    api = cluster()
    pod(api, "bare")
    session = only(survey(api))
    assert (session.owner.kind, [met.guard for met in session.guards]) == ("Pod", [Guard.OWNER_UNSUPPORTED])


def test_an_owner_reference_that_is_not_the_controller_is_not_climbed() -> None:
    api = cluster()
    pod(api, "p", ownerReferences=[{"apiVersion": "apps/v1", "kind": "Deployment", "name": "a", "uid": "x"}])
    assert only(survey(api)).owner.kind == "Pod"


@pytest.mark.parametrize("status", [403, 404])
def test_an_owner_that_cannot_be_read_or_no_longer_exists_is_refused_and_named(status: int) -> None:
    api = cluster()
    deploy(api)
    api.faults.append(Fault("get", ".*/replicasets/.*", status=status, times=1000))
    session = only(survey(api))
    assert [met.guard for met in session.guards] == [Guard.OWNER_UNKNOWN]
    assert "ReplicaSet a-7d9" in session.guards[0].detail
    assert KubernetesCluster(api, FakeClock()).pods_on(["n1"])[0].owner_uid is None


def test_an_owner_of_the_same_name_and_another_uid_is_not_the_owner() -> None:
    api = cluster()
    deploy(api)
    api.objects[f"/apis/apps/v1/namespaces/{TEAM}/deployments/a"]["metadata"]["uid"] = "another"
    assert [met.guard for met in only(survey(api)).guards] == [Guard.OWNER_UNKNOWN]


def test_owners_in_a_ring_end_as_unknown() -> None:
    api = cluster()
    one = api.put(f"/apis/apps/v1/namespaces/{TEAM}/replicasets/r", {})
    api.objects[f"/apis/apps/v1/namespaces/{TEAM}/replicasets/r"]["metadata"]["ownerReferences"] = [
        controlled_by(one, "ReplicaSet")
    ]
    pod(api, "p", ownerReferences=[controlled_by(one, "ReplicaSet")])
    assert [met.guard for met in only(survey(api)).guards] == [Guard.OWNER_UNKNOWN]


def test_a_namespace_that_does_not_exist_is_named_and_takes_no_session_of_another_with_it() -> None:
    api = cluster()
    deploy(api)
    reader = KubernetesCluster(api, FakeClock())
    policy = Policy(mode=Mode.ACT, namespaces=("gone", TEAM, "misspelt"))
    assert len(reader.sessions(policy, reader.pods_on(["n1"]))) == 1
    assert reader.absent_namespaces(policy) == ("gone", "misspelt")


def test_a_namespace_that_may_not_be_read_is_not_called_absent() -> None:
    api = cluster()
    deploy(api)
    api.faults.append(forbidden("get", f"/api/v1/namespaces/{TEAM}"))
    assert KubernetesCluster(api, FakeClock()).absent_namespaces(Policy(mode=Mode.ACT, namespaces=(TEAM,))) == ()
    assert Guard.NOT_READABLE in [met.guard for met in only(survey(api)).guards]


def test_a_server_that_fails_on_a_namespace_ends_the_survey() -> None:
    api = cluster()
    api.faults.append(Fault("get", f"/api/v1/namespaces/{TEAM}", status=500))
    with pytest.raises(SourceUnavailable, match=f"/api/v1/namespaces/{TEAM}"):
        survey(api)


def test_pods_that_may_not_be_listed_end_the_survey_with_verb_path_and_account() -> None:
    api = cluster()
    api.faults.append(forbidden("list", "/api/v1/pods"))
    with pytest.raises(SourceUnavailable, match=r"refused to list /api/v1/pods \(HTTP 403: is forbidden\)"):
        survey(api)


def test_a_guard_list_that_fails_otherwise_ends_the_survey() -> None:
    api = cluster()
    deploy(api)
    api.faults.append(Fault("list", ".*/horizontalpodautoscalers", status=429))
    with pytest.raises(SourceUnavailable, match="overloaded"):
        survey(api)


def test_a_survey_writes_nothing_lists_pods_once_and_reads_each_owner_and_guard_once() -> None:
    api = cluster(keda=True)
    for name in ("a", "b", "c"):
        deploy(api, name, replicas=5)
    survey(api)
    assert api.writes == []
    assert len(api.calls) == len(set(api.calls))
    assert [path for verb, path in api.calls if verb == "list"].count("/api/v1/pods") == 1


def test_waiters_are_those_of_all_namespaces_or_of_the_ones_asked_for_oldest_first() -> None:
    api = cluster()
    for name, namespace, since in (("x", TEAM, "11"), ("y", "other", "10")):
        conditions: list[dict[str, Any]] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "lastTransitionTime": f"2026-11-30T{since}:00:00Z",
            }
        ]
        pod(api, name, namespace=namespace, node=None, phase="Pending")["status"]["conditions"] = conditions
    reader = KubernetesCluster(api, FakeClock())
    assert [waiter.name for waiter in reader.waiters(None)] == ["y", "x"]
    assert [(waiter.name, waiter.message.taken_at) for waiter in reader.waiters([TEAM])] == [("x", NOON)]
