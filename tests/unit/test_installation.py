"""An installation as doctor reads it from the API: who may make pods, what is there, what may not be read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from steps.adapters.kubernetes.installation import KubernetesInstallation
from steps.contracts.installation import Admission, Hook
from tests.unit.api_double import ApiDouble, FakeClock, forbidden

OWN = "gpu-reclaim"
SHIPPED = Path(__file__).parents[2] / "deploy" / "admission" / "workflows.yaml"
RULES = len(next(yaml.safe_load_all(SHIPPED.read_text(encoding="utf-8")))["spec"]["validations"])
ROLES = "/apis/rbac.authorization.k8s.io/v1"


def rule(group: str, resource: str, *verbs: str, names: list[str] | None = None) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs), **({"resourceNames": names} if names else {})}


def bound(api: ApiDouble, subject: dict[str, str], *rules: dict[str, Any], cluster: bool = False) -> None:
    place = ROLES if cluster else f"{ROLES}/namespaces/{OWN}"
    kind = "ClusterRole" if cluster else "Role"
    plural = "cluster" if cluster else ""
    api.put(f"{place}/{plural}roles/some", {"rules": list(rules)})
    api.put(f"{place}/{plural}rolebindings/some", {"roleRef": {"kind": kind, "name": "some"}, "subjects": [subject]})


def makers(api: ApiDouble) -> list[str]:
    found = KubernetesInstallation(api, OWN, FakeClock()).read().pod_makers.known()
    return [f"{one.subject}: {one.right}" for one in found or ()]


ALICE = {"kind": "User", "name": "alice"}


@pytest.mark.parametrize(
    ("granted", "right"),
    [
        (rule("", "pods", "create"), "create pods"),
        (rule("*", "*", "*"), None),
        (rule("apps", "deployments", "patch", names=["web"]), "patch deployments"),
        (rule("", "pods/exec", "create"), "create pods/exec"),
        (rule("argoproj.io", "workflowtemplates", "update"), "update workflowtemplates"),
    ],
)
def test_every_way_to_a_pod_of_ones_own_is_found(granted: dict[str, Any], right: str | None) -> None:
    for cluster in (False, True):
        api = ApiDouble()
        bound(api, ALICE, granted, cluster=cluster)
        (found,) = makers(api)
        assert found.startswith("User alice: ")
        assert right is None or found == f"User alice: {right}"


@pytest.mark.parametrize(
    "granted",
    [rule("", "pods", "get", "list"), rule("argoproj.io", "workflows", "create"), rule("", "pods", "create", names=["one"])],
)
def test_what_makes_no_pod_is_not_named(granted: dict[str, Any]) -> None:
    api = ApiDouble()
    bound(api, ALICE, granted)
    assert makers(api) == []


def test_the_clusters_own_controllers_are_left_out_and_broad_groups_are_not() -> None:
    api = ApiDouble()
    own = {"kind": "ServiceAccount", "name": "job-controller", "namespace": "kube-system"}
    for number, subject in enumerate(
        (own, {"kind": "Group", "name": "system:masters"}, {"kind": "Group", "name": "system:authenticated"})
    ):
        api.put(f"{ROLES}/clusterroles/r{number}", {"rules": [rule("", "pods", "create")]})
        reference = {"roleRef": {"kind": "ClusterRole", "name": f"r{number}"}, "subjects": [subject]}
        api.put(f"{ROLES}/clusterrolebindings/r{number}", reference)
    assert makers(api) == ["Group system:authenticated: create pods"]


def test_a_server_that_forbids_a_list_leaves_it_unknown_with_its_words() -> None:
    api = ApiDouble(faults=[forbidden("list", f"{ROLES}/clusterroles")])
    seen = KubernetesInstallation(api, OWN, FakeClock()).read()
    assert (seen.pod_makers.known(), seen.pod_makers.reason) == (None, "is forbidden")


def test_a_missing_object_is_told_from_one_that_may_not_be_read() -> None:
    missing = KubernetesInstallation(ApiDouble(), OWN, FakeClock()).read()
    hidden = KubernetesInstallation(ApiDouble(faults=[forbidden("get", ".*/configmaps/.*")]), OWN, FakeClock()).read()
    assert (missing.policy.state.value, hidden.policy.state.value) == ("absent", "error")


def with_admission(change: Callable[[Any, Any], object] | None = None, namespace: str = OWN) -> Admission:
    """What is read of the policy and the binding that are shipped, after a change to their specs."""
    api = ApiDouble()
    prefix = "/apis/admissionregistration.k8s.io/v1"
    policy, binding = yaml.safe_load_all(SHIPPED.read_text(encoding="utf-8"))
    if change is not None:
        change(policy["spec"], binding["spec"])
    api.put(f"{prefix}/validatingadmissionpolicies/gpu-reclaim-workflows", policy)
    api.put(f"{prefix}/validatingadmissionpolicybindings/gpu-reclaim-workflows", binding)
    found = KubernetesInstallation(api, namespace, FakeClock()).read().admission.known()
    assert found is not None
    return found


def test_the_policy_and_the_binding_that_are_shipped_are_recognised() -> None:
    assert with_admission() == Admission(present=True, denies=True, chosen=True)
    assert with_admission(namespace="elsewhere") == Admission(present=True, denies=True, chosen=False)


def test_the_selectors_that_the_server_fills_in_narrow_nothing() -> None:
    def filled(policy: Any, binding: Any) -> None:
        policy["matchConstraints"] |= {"namespaceSelector": {}, "objectSelector": {}, "matchPolicy": "Equivalent"}
        binding["matchResources"] |= {"objectSelector": {}, "matchPolicy": "Equivalent"}

    assert with_admission(filled) == Admission(present=True, denies=True, chosen=True)


@pytest.mark.parametrize("rule", range(RULES))
def test_a_policy_that_lacks_any_of_the_shipped_rules_is_found_by_what_it_is_silent_on(rule: int) -> None:
    (gap,) = with_admission(lambda policy, _: policy["validations"].pop(rule)).gaps
    assert gap.startswith("no rule speaks of ")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda policy: policy.update(failurePolicy="Ignore"), "let through"),
        (lambda policy: policy.update(matchConditions=[{"name": "few", "expression": "false"}]), "matchConditions"),
        (lambda policy: policy["matchConstraints"].update(objectSelector={"matchLabels": {"a": "b"}}), "objectSelector"),
        (lambda policy: policy["matchConstraints"].update(namespaceSelector={"matchLabels": {"a": "b"}}), "namespaceSelector"),
        (lambda policy: policy["matchConstraints"]["resourceRules"][0].update(operations=["CREATE"]), "does not see UPDATE"),
        (lambda policy: policy["matchConstraints"].update(resourceRules=[]), "does not see CREATE"),
    ],
    ids=["ignores failures", "conditions", "some objects", "some namespaces", "no updates", "nothing"],
)
def test_a_policy_that_lets_some_workflows_by_is_found(change: Callable[[Any], object], words: str) -> None:
    assert words in with_admission(lambda policy, _: change(policy)).gaps[0]


@pytest.mark.parametrize("field", ["objectSelector", "resourceRules", "excludeResourceRules"])
def test_a_binding_that_takes_only_some_workflows_has_not_chosen_the_namespace(field: str) -> None:
    assert not with_admission(lambda _, binding: binding["matchResources"].update({field: {"any": "thing"}})).chosen


def test_a_binding_that_asks_for_more_than_the_name_of_the_namespace_has_not_chosen_it() -> None:
    more = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    assert not with_admission(lambda _, binding: binding["matchResources"]["namespaceSelector"].update(more)).chosen


HOOK = {"webhookSecret": {"name": "hook", "key": "secret"}}
SECRET = f"/api/v1/namespaces/{OWN}/secrets/hook"


def hooks_of(api: ApiDouble) -> tuple[Hook, ...] | None:
    return KubernetesInstallation(api, OWN, FakeClock()).read().hooks.known()


@pytest.mark.parametrize(
    ("data", "length"),
    [
        ({"secret": "c2l4dGVlbi1ieXRlcy0xNg=="}, 16),
        ({"secret": "c2l4dGVlbi1ieXRlcy0xNgo="}, 16),
        ({"secret": ""}, 0),
        ({"secret": "Cg=="}, 0),
        ({"other": "c2l4dGVlbi1ieXRlcy0xNg=="}, 0),
        (None, 0),
    ],
    ids=["plain", "with a line feed", "empty", "line feed alone", "other key", "no Secret"],
)
def test_the_length_of_a_hooks_secret_is_read_and_never_the_secret(data: dict[str, str] | None, length: int) -> None:
    api = ApiDouble()
    api.put(f"/apis/argoproj.io/v1alpha1/namespaces/{OWN}/eventsources/tags", {"spec": {"github": {"pushed": HOOK}}})
    if data is not None:
        api.put(SECRET, {"data": data})
    assert hooks_of(api) == (Hook(source="tags/pushed", secret_bytes=length),)


def test_a_secret_that_may_not_be_read_is_unknown() -> None:
    api = ApiDouble(faults=[forbidden("get", SECRET)])
    api.put(f"/apis/argoproj.io/v1alpha1/namespaces/{OWN}/eventsources/tags", {"spec": {"github": {"pushed": HOOK}}})
    assert hooks_of(api) is None
