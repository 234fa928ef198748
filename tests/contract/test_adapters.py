"""The Kubernetes adapters over the simulated API and a real one, with equal results."""

from datetime import UTC, datetime

import msgspec

from steps.adapters.kubernetes.cluster import KubernetesCluster
from steps.adapters.kubernetes.decisions import ConfigMapDecisions
from steps.adapters.kubernetes.events import KubernetesEvents
from steps.adapters.kubernetes.intents import ConfigMapIntents
from steps.adapters.kubernetes.memory import ConfigMapMemory
from steps.adapters.kubernetes.owners import KubernetesOwners
from steps.contracts.cluster_facts import Guard, OwnerRef
from steps.contracts.decision import Decisions, Memory, SeenNode, SeenPod
from steps.contracts.document import Origin, Stamp
from steps.contracts.policy import Mode, Policy
from steps.contracts.ports import Count, OwnerState, Rejected, Rejection
from steps.contracts.stop_receipt import Intent
from steps.survey.missing import together
from tests.contract.conftest import ApiUnderTest, waiting_deployment

STAMP = Stamp(made_by="test", made_at=datetime(2026, 11, 30, 12, 0, tzinfo=UTC), origin=Origin.SIMULATED)
OTHER_UID = "00000000-0000-4000-8000-000000000000"


def policy_for(cluster: ApiUnderTest) -> Policy:
    return Policy(mode=Mode.ACT, namespaces=(cluster.namespace,))


def owner_of(cluster: ApiUnderTest, name: str = "a", replicas: int = 1, gpus: int = 0, **metadata: object) -> OwnerRef:
    """A Deployment that came to rest."""
    body = waiting_deployment(name, replicas, **metadata)
    if gpus:
        body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    made = cluster.api.create(cluster.deployment(""), body).body["metadata"]
    cluster.pods_of(name, replicas)
    cluster.settled(cluster.deployment(name))
    return OwnerRef(api_version="apps/v1", kind="Deployment", namespace=cluster.namespace, name=name, uid=made["uid"])


def state_of(cluster: ApiUnderTest, owner: OwnerRef) -> OwnerState:
    state = KubernetesOwners(cluster.api).read(owner, policy_for(cluster))
    assert isinstance(state, OwnerState)
    return state


def test_an_owner_goes_to_zero_and_back_through_its_own_switch(cluster: ApiUnderTest) -> None:
    owner, switch = owner_of(cluster, replicas=1), KubernetesOwners(cluster.api)
    down = switch.scale(owner, 0, if_version=state_of(cluster, owner).resource_version)
    assert isinstance(down, Count)
    assert (down.replicas, state_of(cluster, owner).replicas) == (0, 0)
    cluster.settled(cluster.deployment("a"))
    up = switch.scale(owner, 1, if_version=state_of(cluster, owner).resource_version)
    assert isinstance(up, Count)
    assert (up.replicas, state_of(cluster, owner).replicas) == (1, 1)


def test_a_stale_version_is_a_conflict_and_a_replaced_object_is_gone(cluster: ApiUnderTest) -> None:
    owner, switch = owner_of(cluster), KubernetesOwners(cluster.api)
    seen = state_of(cluster, owner).resource_version
    assert cluster.api.patch(cluster.deployment("a"), {"metadata": {"labels": {"touched": "yes"}}}).ok
    answer = switch.scale(owner, 0, if_version=seen)
    assert isinstance(answer, Rejected)
    assert answer.rejection is Rejection.CONFLICT
    gone = switch.read(msgspec.structs.replace(owner, uid=OTHER_UID), policy_for(cluster))
    assert isinstance(gone, Rejected)
    assert gone.rejection is Rejection.GONE


def test_the_digest_moves_with_the_opt_out_and_with_the_count_and_with_nothing_foreign(cluster: ApiUnderTest) -> None:
    owner = owner_of(cluster)
    first = state_of(cluster, owner)
    assert cluster.api.patch(cluster.deployment("a"), {"metadata": {"annotations": {"somebody.example/note": "x"}}}).ok
    foreign = state_of(cluster, owner)
    out = {"metadata": {"annotations": {"gpu-reclaim.dev/exclude": "true"}}}
    assert cluster.api.patch(cluster.deployment("a"), out).ok
    opted_out = state_of(cluster, owner)
    assert foreign.judged_digest == first.judged_digest != opted_out.judged_digest
    assert ([met.guard for met in first.guards], [met.guard for met in opted_out.guards]) == ([], [Guard.OPTED_OUT])


def test_a_waiting_session_is_seen_with_the_schedulers_words(cluster: ApiUnderTest) -> None:
    owner = owner_of(cluster, gpus=2)
    reader = KubernetesCluster(cluster.api, cluster.clock)
    (waiter,) = reader.waiters((cluster.namespace,))
    (session,) = reader.sessions(policy_for(cluster), reader.pods_on(()))
    assert (waiter.gpus_requested, session.gpus_requested, session.replicas) == (2, 2, 1)
    assert (session.owner, session.pod_uids) == (owner, (waiter.pod_uid,))
    assert "nodes are available" in (waiter.message.known() or "")


def bound_pod(cluster: ApiUnderTest, node: str) -> str:
    """The uid of a pod bound to a node that has no kubelet; a fresh namespace has no service account for a moment."""
    body = {"metadata": {"name": "a"}, "spec": {"nodeName": node, "containers": [{"name": "main", "image": "none.invalid/none"}]}}
    answer = cluster.api.create(cluster.path("pods"), body)
    for _ in range(60):
        if answer.ok:
            return str(answer.body["metadata"]["uid"])
        cluster.clock.sleep(0.3)
        answer = cluster.api.create(cluster.path("pods"), body)
    raise AssertionError(f"the pod was never admitted: {answer.body}")


def test_a_pod_deleted_by_force_is_missing_from_the_next_list_at_once_and_both_lists_together_have_it(
    cluster: ApiUnderTest,
) -> None:
    """So missing from one list says nothing about its processes: the kubelet may not even have heard of it."""
    uid, reader = bound_pod(cluster, "contract-node"), KubernetesCluster(cluster.api, cluster.clock)
    first = reader.pods_on(["contract-node"])
    assert cluster.api.delete(cluster.path("pods", "a"), uid=uid, grace_s=0).ok
    second = reader.pods_on(["contract-node"])
    assert [uid in {pod.uid for pod in pods} for pods in (first, second, together(first, second))] == [True, False, True]


def test_a_namespace_that_does_not_exist_is_named_and_one_that_does_is_not(cluster: ApiUnderTest) -> None:
    reader = KubernetesCluster(cluster.api, cluster.clock)
    policy = Policy(mode=Mode.ACT, namespaces=("no-such-namespace", cluster.namespace))
    assert (reader.sessions(policy, ()), reader.absent_namespaces(policy)) == ((), ("no-such-namespace",))


def intent_of(owner: OwnerRef, decision: str) -> Intent:
    return Intent(
        stamp=STAMP,
        decision_id=decision,
        owner=owner,
        switch="scale",
        replicas_before=1,
        replicas_after=0,
        resource_version_seen="1",
    )


def test_the_first_intent_is_the_claim_and_only_its_decision_removes_it(cluster: ApiUnderTest) -> None:
    owner = OwnerRef(api_version="apps/v1", kind="Deployment", namespace="team", name="a", uid=OTHER_UID)
    store, first = ConfigMapIntents(cluster.api, cluster.namespace), intent_of(owner, "d-1")
    assert store.create(first) is None
    assert store.create(intent_of(owner, "d-2")) == first
    store.delete(OTHER_UID, decision_id="d-2")
    assert store.list() == (first,)
    store.delete(OTHER_UID, decision_id="d-1")
    assert (store.load(OTHER_UID), store.list()) == (None, ())
    store.delete(OTHER_UID, decision_id="d-1")


def memory(policy_hash: str) -> Memory:
    pod = SeenPod(
        uid=OTHER_UID, namespace="team", name="a-0", grace_s=30, devices=("GPU-0",), seen_at=STAMP.made_at, missed_at=STAMP.made_at
    )
    node = SeenNode(node="gpu-a", run="sweep-1", told_at=STAMP.made_at, looked_at=STAMP.made_at, looked_run="sweep-1", pods=(pod,))
    return Memory(
        policy_hash=policy_hash,
        written_at=STAMP.made_at,
        sessions=(),
        run="sweep-1",
        run_uid=OTHER_UID,
        nodes=(node,),
        before=(node,),
        before_run="sweep-0",
    )


def test_a_memory_that_somebody_else_wrote_meanwhile_is_not_overwritten(cluster: ApiUnderTest) -> None:
    store = ConfigMapMemory(cluster.api, cluster.namespace)
    assert store.load(0) == (None, "")
    assert store.save(0, memory("one"), if_version="") is None
    kept, version = store.load(0)
    assert kept == memory("one")
    assert store.save(0, memory("two"), if_version=version) is None
    for stale in (version, ""):
        rejected = store.save(0, memory("three"), if_version=stale)
        assert rejected is not None
        assert rejected.rejection is Rejection.CONFLICT
    assert store.load(0)[0] == memory("two")


def uid_of_a_run(cluster: ApiUnderTest) -> str:
    """A Workflow that never starts: what an owner that does not exist owns is collected as garbage."""
    entry = {"name": "main", "suspend": {}}
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow"}  # a custom resource is refused without
    body = {**kind, "metadata": {"name": "sweep-1"}, "spec": {"suspend": True, "entrypoint": "main", "templates": [entry]}}
    made = cluster.api.create(cluster.path("workflows", prefix="/apis/argoproj.io/v1alpha1"), body)
    assert made.ok, made.words
    return str(made.body["metadata"]["uid"])


def test_decisions_are_found_by_run_and_shard_and_keeping_them_again_is_no_error(cluster: ApiUnderTest) -> None:
    store = ConfigMapDecisions(cluster.api, cluster.namespace)
    kept = Decisions(stamp=STAMP, run="sweep-1", shard=0, dry_run=False, policy_hash="p", decisions=())
    run_uid = uid_of_a_run(cluster)
    store.keep(kept, run_uid)
    store.keep(kept, run_uid)
    assert (store.load("sweep-1", 0), store.load("sweep-1", 1), store.load("sweep-2", 0)) == (kept, None, None)


def test_an_event_lies_on_its_owner_with_its_note_cut_to_size(cluster: ApiUnderTest) -> None:
    owner = owner_of(cluster)
    assert KubernetesEvents(cluster.api, "gpu-reclaim", cluster.clock).record(owner, "Stopped", "Scale", "ü" * 2000) is None
    found = cluster.api.list(cluster.path("events"), field_selector=f"involvedObject.uid={owner.uid},reason=Stopped").body["items"]
    assert [(item["reason"], len(item["message"].encode()) <= 1024) for item in found] == [("Stopped", True)]
