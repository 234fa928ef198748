"""Each guard refuses by its own reason and names the object that guards; survey and stop judge alike."""

from collections.abc import Callable
from typing import Any

import pytest

from steps.adapters.kubernetes.cluster import KubernetesCluster
from steps.adapters.kubernetes.owners import KubernetesOwners
from steps.contracts.cluster_facts import Guard, GuardMet, OwnerRef
from steps.contracts.ports import OwnerState
from tests.unit.api_double import ApiDouble, FakeClock, forbidden
from tests.unit.cluster_world import ARGO_CD, DEPLOYMENT, POLICY, TEAM, cluster, deploy, pod

HPA = f"/apis/autoscaling/v2/namespaces/{TEAM}/horizontalpodautoscalers/h"
SCALED_OBJECT = f"/apis/keda.sh/v1alpha1/namespaces/{TEAM}/scaledobjects/s"
BUDGET = f"/apis/policy/v1/namespaces/{TEAM}/poddisruptionbudgets/b"
APPLICATION = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/shop"
NAMESPACE = f"/api/v1/namespaces/{TEAM}"


def guards_seen_by_both(api: ApiDouble, owner: OwnerRef) -> tuple[GuardMet, ...]:
    """The guards as survey sees them, and the proof that the stop sees the same."""
    reader = KubernetesCluster(api, FakeClock())
    (session,) = (s for s in reader.sessions(POLICY, reader.pods_on(["n1"])) if s.owner == owner)
    state = KubernetesOwners(api).read(owner, POLICY)
    assert isinstance(state, OwnerState)
    assert (state.guards, state.judged_digest, state.replicas) == (session.guards, session.judged_digest, session.replicas)
    return session.guards


def guarded(prepare: Callable[[ApiDouble], object], **metadata: Any) -> list[tuple[Guard, str]]:
    api = cluster(keda=True, argo_cd=True)
    owner = deploy(api, **metadata)
    prepare(api)
    return [(met.guard, met.detail) for met in guards_seen_by_both(api, owner)]


def nothing(_: ApiDouble) -> None: ...


def put(path: str, **body: Any) -> Callable[[ApiDouble], object]:
    return lambda api: api.put(path, body)


def test_an_ordinary_deployment_has_no_guard() -> None:
    assert guarded(nothing) == []


def test_with_neither_keda_nor_argo_cd_installed_there_is_no_guard_either() -> None:
    api = cluster()
    assert guards_seen_by_both(api, deploy(api, labels={"app.kubernetes.io/instance": "shop"})) == ()


@pytest.mark.parametrize(
    ("value", "guards"), [("true", 1), ("false", 0), ("", 1), ("True", 1), ("no", 1), ("false ", 1), ("\x1b[31m", 1)]
)
def test_an_opt_out_is_parsed_strictly_and_a_bad_value_counts_as_out_with_a_remark(value: str, guards: int) -> None:
    met = guarded(nothing, annotations={"gpu-reclaim.dev/exclude": value})
    assert [guard for guard, _ in met] == [Guard.OPTED_OUT] * guards
    assert all(("neither true nor false" in detail) == (value != "true") for _, detail in met)
    assert all(detail.isprintable() for _, detail in met)


def test_a_namespace_opts_all_its_sessions_out() -> None:
    assert guarded(put(NAMESPACE, metadata={"annotations": {"gpu-reclaim.dev/exclude": "true"}})) == [
        (Guard.OPTED_OUT, "namespace team carries the annotation gpu-reclaim.dev/exclude")
    ]


@pytest.mark.parametrize(
    ("path", "target", "guards"),
    [
        (HPA, {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}, 1),
        (HPA, {"apiVersion": "apps/v1", "kind": "Deployment", "name": "b"}, 0),
        (HPA, {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "a"}, 0),
        (HPA, {"apiVersion": "apps/v1beta2", "kind": "Deployment", "name": "a"}, 1),
        (HPA, {"apiVersion": "example.com/v1", "kind": "Deployment", "name": "a"}, 0),
        (SCALED_OBJECT, {"name": "a"}, 1),
        (SCALED_OBJECT, {"name": "a", "kind": "StatefulSet"}, 0),
    ],
)
def test_an_autoscaler_guards_its_own_target_and_no_other(path: str, target: dict[str, str], guards: int) -> None:
    assert [guard for guard, _ in guarded(put(path, spec={"scaleTargetRef": target}))] == [Guard.AUTOSCALED] * guards


TRACKED = {"annotations": {"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:team/a"}}
HELM_LABEL = {"labels": {"app.kubernetes.io/instance": "shop"}}


def application(**automated: Any) -> Callable[[ApiDouble], object]:
    return put(APPLICATION, spec={"syncPolicy": {"automated": automated} if automated else {}})


@pytest.mark.parametrize("mark", [TRACKED, HELM_LABEL, {"labels": {"argocd.argoproj.io/instance": "argocd_shop"}}])
@pytest.mark.parametrize(
    ("automated", "guards"), [({"selfHeal": True}, 1), ({"selfHeal": True, "enabled": False}, 0), ({"prune": True}, 0), ({}, 0)]
)
def test_argo_cd_guards_what_it_heals_by_itself(mark: dict[str, Any], automated: dict[str, bool], guards: int) -> None:
    assert [guard for guard, _ in guarded(application(**automated), **mark)] == [Guard.GITOPS_MANAGED] * guards


def test_a_tracking_mark_without_an_application_to_read_is_a_guard_and_helms_label_is_none() -> None:
    assert [guard for guard, _ in guarded(nothing, **TRACKED)] == [Guard.GITOPS_MANAGED]
    assert guarded(nothing, **HELM_LABEL) == []


@pytest.mark.parametrize("mark", [TRACKED, HELM_LABEL])
def test_an_application_that_may_not_be_read_is_a_refusal_as_well(mark: dict[str, Any]) -> None:
    met = guarded(lambda api: api.faults.append(forbidden("list", ARGO_CD)), **mark)
    assert [guard for guard, _ in met] == [Guard.NOT_READABLE]


def test_applications_are_not_asked_for_where_no_mark_names_one() -> None:
    api = cluster()
    api.faults.append(forbidden("list", ARGO_CD))
    assert guards_seen_by_both(api, deploy(api)) == ()


@pytest.mark.parametrize("label", ["kustomize.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/name"])
def test_flux_owns_what_bears_its_label(label: str) -> None:
    ((guard, detail),) = guarded(nothing, labels={label: "apps"})
    assert (guard, label in detail) == (Guard.GITOPS_MANAGED, True)


@pytest.mark.parametrize(
    ("selector", "guards"),
    [
        ({"matchLabels": {"app": "a"}}, 1),
        ({"matchLabels": {"app": "b"}}, 0),
        ({"matchLabels": {"app": "a", "tier": "x"}}, 0),
        ({}, 1),
        (None, 0),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "a"]}]}, 1),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]}, 0),
        ({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["a"]}]}, 1),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, 1),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, 0),
        ({"matchExpressions": [{"key": "app", "operator": "Resembles", "values": ["b"]}]}, 1),
    ],
)
def test_a_disruption_budget_guards_the_pods_it_covers(selector: dict[str, Any] | None, guards: int) -> None:
    spec = {} if selector is None else {"selector": selector}
    assert [guard for guard, _ in guarded(put(BUDGET, spec=spec))] == [Guard.DISRUPTION_BUDGET] * guards


def test_a_finalizer_on_a_pod_guards_and_is_named() -> None:
    def finalize(api: ApiDouble) -> None:
        api.objects[f"/api/v1/namespaces/{TEAM}/pods/a-0"]["metadata"]["finalizers"] = ["example.com/backup"]

    assert guarded(finalize) == [(Guard.FINALIZER, "pod team/a-0 carries the finalizer example.com/backup")]


@pytest.mark.parametrize("path", [HPA, SCALED_OBJECT, BUDGET], ids=["autoscalers", "scaled objects", "budgets"])
def test_a_guard_list_that_may_not_be_read_is_a_guard(path: str) -> None:
    met = guarded(lambda api: api.faults.append(forbidden("list", path.rpartition("/")[0])))
    assert [guard for guard, _ in met] == [Guard.NOT_READABLE]


def test_a_namespace_that_may_not_be_read_is_a_guard() -> None:
    met = guarded(lambda api: api.faults.append(forbidden("get", NAMESPACE)))
    assert [guard for guard, _ in met] == [Guard.NOT_READABLE]


def test_pods_that_the_stop_may_not_list_are_a_guard() -> None:
    api = cluster()
    owner = deploy(api)
    api.faults.append(forbidden("list", f"/api/v1/namespaces/{TEAM}/pods"))
    state = KubernetesOwners(api).read(owner, POLICY)
    assert isinstance(state, OwnerState)
    assert [met.guard for met in state.guards] == [Guard.NOT_READABLE]


def test_pods_of_others_and_pods_that_ended_guard_nothing() -> None:
    api = cluster()
    owner = deploy(api)
    pod(api, "other", gpus=0, labels={"app": "other"}, finalizers=["x"])
    pod(api, "ended", phase="Failed", labels={"app": "a"}, finalizers=["x"])
    assert guards_seen_by_both(api, owner) == ()
    assert DEPLOYMENT in api.objects
