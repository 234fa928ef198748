"""The behaviours of a Kubernetes API that the project leans on (facts/kubernetes section 1), simulated and real alike."""

import pytest

from steps.contracts.errors import OutcomeUnknown
from tests.contract.conftest import ApiUnderTest, waiting_deployment

UNKNOWN_UID = "00000000-0000-4000-8000-000000000000"


def test_a_scale_of_zero_is_left_out_of_the_answer(cluster: ApiUnderTest) -> None:
    cluster.api.create(cluster.deployment(""), waiting_deployment("a"))
    answer = cluster.api.patch(cluster.deployment("a", "/scale"), {"spec": {"replicas": 0}})
    assert answer.status == 200
    assert "replicas" not in answer.body["spec"]
    assert "replicas" not in cluster.api.get(cluster.deployment("a", "/scale")).body["spec"]


def test_the_version_of_a_scale_is_its_parents(cluster: ApiUnderTest) -> None:
    cluster.api.create(cluster.deployment(""), waiting_deployment("a"))
    parent = cluster.settled(cluster.deployment("a"))
    scale = cluster.api.get(cluster.deployment("a", "/scale")).body
    assert scale["metadata"]["resourceVersion"] == parent["metadata"]["resourceVersion"]
    assert scale["metadata"]["uid"] == parent["metadata"]["uid"]
    assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 1)


def test_a_scale_with_a_stale_version_is_a_conflict_and_changes_nothing(cluster: ApiUnderTest) -> None:
    cluster.api.create(cluster.deployment(""), waiting_deployment("a"))
    seen = cluster.settled(cluster.deployment("a"))["metadata"]["resourceVersion"]
    assert cluster.api.patch(cluster.deployment("a"), {"metadata": {"annotations": {"touched": "yes"}}}).ok
    stale = {"metadata": {"resourceVersion": seen}, "spec": {"replicas": 0}}
    answer = cluster.api.patch(cluster.deployment("a", "/scale"), stale)
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert cluster.api.get(cluster.deployment("a", "/scale")).body["spec"]["replicas"] == 1


def test_a_scale_with_the_version_just_read_succeeds_and_moves_the_generation(cluster: ApiUnderTest) -> None:
    cluster.api.create(cluster.deployment(""), waiting_deployment("a"))
    seen = cluster.settled(cluster.deployment("a"))["metadata"]
    answer = cluster.api.patch(
        cluster.deployment("a", "/scale"), {"metadata": {"resourceVersion": seen["resourceVersion"]}, "spec": {"replicas": 0}}
    )
    assert answer.status == 200
    assert cluster.api.get(cluster.deployment("a")).body["metadata"]["generation"] == seen["generation"] + 1


@pytest.mark.parametrize("replicas", [-1, "none", "1"])
def test_a_count_that_makes_no_sense_is_refused(cluster: ApiUnderTest, replicas: object) -> None:
    cluster.api.create(cluster.deployment(""), waiting_deployment("a"))
    answer = cluster.api.patch(cluster.deployment("a", "/scale"), {"spec": {"replicas": replicas}})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert cluster.api.get(cluster.deployment("a")).body["spec"]["replicas"] == 1


def test_a_body_that_cannot_be_read_is_a_bad_request(cluster: ApiUnderTest) -> None:
    body = waiting_deployment("a") | {"spec": waiting_deployment("a")["spec"] | {"replicas": "1"}}
    assert cluster.api.create(cluster.deployment(""), body).status == 400


def test_a_patch_that_changes_nothing_moves_no_version(cluster: ApiUnderTest) -> None:
    """But for the first by a new writer, which a server notes in managedFields."""
    cluster.api.create(cluster.deployment(""), waiting_deployment("a"))
    cluster.api.patch(cluster.deployment("a", "/scale"), {"spec": {"replicas": 1}})
    seen = cluster.settled(cluster.deployment("a"))["metadata"]["resourceVersion"]
    answer = cluster.api.patch(cluster.deployment("a", "/scale"), {"spec": {"replicas": 1}})
    assert answer.body["metadata"]["resourceVersion"] == seen


def test_annotating_a_deployment_moves_its_version_and_its_generation(cluster: ApiUnderTest) -> None:
    cluster.api.create(cluster.deployment(""), waiting_deployment("a"))
    seen = cluster.settled(cluster.deployment("a"))["metadata"]
    after = cluster.api.patch(cluster.deployment("a"), {"metadata": {"annotations": {"touched": "yes"}}}).body["metadata"]
    assert (after["resourceVersion"] != seen["resourceVersion"], after["generation"]) == (True, seen["generation"] + 1)


def test_null_in_a_merge_patch_removes_an_annotation(cluster: ApiUnderTest) -> None:
    cluster.api.create(cluster.deployment(""), waiting_deployment("a", annotations={"keep": "1", "drop": "2"}))
    answer = cluster.api.patch(cluster.deployment("a"), {"metadata": {"annotations": {"drop": None}}})
    kept = {key: value for key, value in answer.body["metadata"]["annotations"].items() if key in ("keep", "drop")}
    assert (answer.status, kept) == (200, {"keep": "1"})


def test_a_name_that_exists_is_a_conflict(cluster: ApiUnderTest) -> None:
    body = {"metadata": {"name": "once"}, "data": {"a": "1"}}
    assert cluster.api.create(cluster.path("configmaps"), body).status == 201
    answer = cluster.api.create(cluster.path("configmaps"), body)
    assert (answer.status, answer.body["reason"]) == (409, "AlreadyExists")


def test_a_stale_version_of_a_config_map_is_a_conflict(cluster: ApiUnderTest) -> None:
    seen = cluster.api.create(cluster.path("configmaps"), {"metadata": {"name": "m"}, "data": {"a": "1"}}).body
    guard = {"metadata": {"resourceVersion": seen["metadata"]["resourceVersion"]}}
    assert cluster.api.patch(cluster.path("configmaps", "m"), guard | {"data": {"a": "2"}}).status == 200
    assert cluster.api.patch(cluster.path("configmaps", "m"), guard | {"data": {"a": "3"}}).status == 409
    assert cluster.api.get(cluster.path("configmaps", "m")).body["data"] == {"a": "2"}


def test_a_delete_for_another_uid_is_a_conflict_and_deletes_nothing(cluster: ApiUnderTest) -> None:
    made = cluster.api.create(cluster.path("configmaps"), {"metadata": {"name": "m"}}).body
    assert cluster.api.delete(cluster.path("configmaps", "m"), uid=UNKNOWN_UID).status == 409
    assert cluster.api.get(cluster.path("configmaps", "m")).status == 200
    assert cluster.api.delete(cluster.path("configmaps", "m"), uid=made["metadata"]["uid"]).status == 200
    assert cluster.api.get(cluster.path("configmaps", "m")).status == 404


def test_what_does_not_exist_is_404_for_every_verb(cluster: ApiUnderTest) -> None:
    missing = cluster.path("configmaps", "nothing")
    assert [cluster.api.get(missing).status, cluster.api.patch(missing, {}).status, cluster.api.delete(missing).status] == [404] * 3
    assert cluster.api.get(cluster.deployment("nothing", "/scale")).status == 404
    assert cluster.api.get("/apis/nobody.example/v1/widgets").status == 404
    assert cluster.api.text(cluster.path("pods", "nothing/log"), limit_bytes=100)[0] == 404


def test_nothing_is_created_in_a_namespace_that_does_not_exist(cluster: ApiUnderTest) -> None:
    answer = cluster.api.create("/api/v1/namespaces/no-such-namespace/configmaps", {"metadata": {"name": "m"}})
    assert answer.status == 404


@pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", ""])
def test_a_bad_name_is_invalid(cluster: ApiUnderTest, name: str) -> None:
    answer = cluster.api.create(cluster.path("configmaps"), {"metadata": {"name": name}})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")


def test_a_created_object_must_not_bring_a_version(cluster: ApiUnderTest) -> None:
    """The server answers 500, so the transport cannot tell whether it was done."""
    body = {"metadata": {"name": "m", "resourceVersion": "7"}}
    with pytest.raises(OutcomeUnknown, match="resourceVersion should not be set"):
        cluster.api.create(cluster.path("configmaps"), body)
    assert cluster.api.get(cluster.path("configmaps", "m")).status == 404


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("part=memory", ["a", "b"]),
        ("part=memory,shard=1", ["b"]),
        ("part!=memory", ["c"]),
        ("part in (memory,intent),shard", ["a", "b"]),
        ("!shard", ["c"]),
        ("part=none", []),
    ],
)
def test_a_list_is_chosen_by_labels(cluster: ApiUnderTest, selector: str, names: list[str]) -> None:
    for name, labels in (
        ("a", {"part": "memory", "shard": "0"}),
        ("b", {"part": "memory", "shard": "1"}),
        ("c", {"part": "intent"}),
    ):
        cluster.api.create(cluster.path("configmaps"), {"metadata": {"name": name, "labels": labels}})
    body = cluster.api.list(cluster.path("configmaps"), label_selector=selector).body
    assert [item["metadata"]["name"] for item in body["items"] if item["metadata"]["name"] in "abc"] == names


def test_a_list_is_chosen_by_name_and_a_field_nobody_knows_is_refused(cluster: ApiUnderTest) -> None:
    for name in ("a", "b"):
        cluster.api.create(cluster.path("configmaps"), {"metadata": {"name": name}})
    body = cluster.api.list(cluster.path("configmaps"), field_selector="metadata.name=b").body
    assert [item["metadata"]["name"] for item in body["items"]] == ["b"]
    assert cluster.api.list(cluster.path("configmaps"), field_selector="spec.colour=red").status == 400


def test_listed_items_carry_neither_kind_nor_api_version(cluster: ApiUnderTest) -> None:
    cluster.api.create(cluster.path("configmaps"), {"metadata": {"name": "a"}})
    body = cluster.api.list(cluster.path("configmaps"), field_selector="metadata.name=a").body
    assert body["kind"] == "ConfigMapList"
    assert [set(item) & {"kind", "apiVersion"} for item in body["items"]] == [set()]


def test_a_pod_that_no_node_has_waits_with_the_schedulers_words_and_goes_at_once(cluster: ApiUnderTest) -> None:
    cluster.api.create(cluster.deployment(""), waiting_deployment("a"))
    cluster.pods_of("a", 1)
    unbound = cluster.api.list(cluster.path("pods"), field_selector="spec.nodeName=", label_selector="app=a").body["items"]
    condition = next(c for c in unbound[0]["status"]["conditions"] if c["type"] == "PodScheduled")
    assert (unbound[0]["status"]["phase"], condition["status"], condition["reason"]) == ("Pending", "False", "Unschedulable")
    cluster.api.patch(cluster.deployment("a", "/scale"), {"spec": {"replicas": 0}})
    assert cluster.pods_of("a", 0) == []


def test_pods_lead_through_their_replica_set_to_the_deployment(cluster: ApiUnderTest) -> None:
    made = cluster.api.create(cluster.deployment(""), waiting_deployment("a")).body
    (pod,) = cluster.pods_of("a", 1)
    (parent,) = pod["metadata"]["ownerReferences"]
    assert (parent["kind"], parent["controller"]) == ("ReplicaSet", True)
    replica_set = cluster.api.get(cluster.path("replicasets", parent["name"], prefix="/apis/apps/v1")).body
    (top,) = replica_set["metadata"]["ownerReferences"]
    assert (top["kind"], top["uid"], top["controller"]) == ("Deployment", made["metadata"]["uid"], True)


def event(**changes: object) -> dict[str, object]:
    return {
        "metadata": {"generateName": "contract-"},
        "eventTime": "2026-11-30T12:00:00.000000Z",
        "reportingController": "gpu-reclaim.dev/contract",
        "reportingInstance": "contract",
        "action": "Testing",
        "reason": "Tested",
        "type": "Normal",
        "note": "a note",
    } | changes


def test_an_event_is_found_by_the_uid_of_what_it_is_about(cluster: ApiUnderTest) -> None:
    regarding = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": cluster.namespace, "name": "m", "uid": UNKNOWN_UID}
    path = cluster.path("events", prefix="/apis/events.k8s.io/v1")
    assert cluster.api.create(path, event(regarding=regarding)).status == 201
    found = cluster.api.list(cluster.path("events"), field_selector=f"involvedObject.uid={UNKNOWN_UID}").body["items"]
    assert [(item["reason"], item["message"], item["involvedObject"]["name"]) for item in found] == [("Tested", "a note", "m")]


@pytest.mark.parametrize("change", [{"action": ""}, {"reason": "x" * 129}, {"note": "x" * 1025}, {"reportingInstance": ""}])
def test_an_event_that_breaks_a_rule_is_invalid(cluster: ApiUnderTest, change: dict[str, object]) -> None:
    regarding = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": cluster.namespace, "name": "m", "uid": UNKNOWN_UID}
    answer = cluster.api.create(cluster.path("events", prefix="/apis/events.k8s.io/v1"), event(regarding=regarding, **change))
    assert answer.status == 422
