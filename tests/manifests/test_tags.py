"""Which deliveries of a forge start the experiment, by the filters as shipped; on real Argo Events: tests/cluster/test_tags.py."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from sensors import MANIFESTS, tags
from tests import forge
from tests.manifests import tag_rules as rules
from tests.manifests.test_deploy import DEPLOY, objects_of

Objects = list[dict[str, Any]]
TAG = "refs/tags/v1.2.3"
SHIPPED: Objects = list(yaml.safe_load_all((MANIFESTS / "tags" / "tags.yaml").read_text(encoding="utf-8")))
SENSOR = tags.tag_pushed(*forge.REPOSITORY.split("/"))


def event_of(delivery: forge.Delivery) -> dict[str, Any]:
    """As the source hands it on: two headers are copied into the body."""
    return {"body": {**delivery.body, "X-GitHub-Event": delivery.event, "X-GitHub-Delivery": delivery.id}}


def changed(delivery: forge.Delivery, **fields: Any) -> forge.Delivery:
    return forge.Delivery(delivery.event, {**delivery.body, **fields})


@pytest.mark.parametrize(
    "delivery",
    [
        forge.github_push(TAG),
        forge.github_push(TAG, annotated=True),
        forge.gitea_push(TAG),
        forge.github_push("refs/tags/v10.20.30-rc.1"),
    ],
    ids=["github", "github-annotated", "gitea", "candidate"],
)
def test_a_version_tag_of_either_forge_starts_a_run(delivery: forge.Delivery) -> None:
    assert rules.let_through(SENSOR, event_of(delivery))


@pytest.mark.parametrize(
    "delivery",
    [
        forge.github_push("refs/heads/main"),
        forge.github_push("refs/heads/v1.2.3"),
        forge.github_push(TAG, deleted=True),
        forge.gitea_push(TAG, deleted=True),
        forge.github_create("v1.2.3"),
        forge.Delivery("create", forge.github_push(TAG).body),
        forge.github_ping(),
        forge.github_push("refs/tags/v{{=1+41}}"),
        forge.github_push("refs/tags/v1.2.3-{{=1+41}}"),
        forge.github_push("refs/tags/v1.2"),
        forge.github_push("refs/tags/v1.2.3\n"),
        forge.github_push("refs/tags/v1.2.3-" + "a" * 41),
        forge.github_push("refs/tags/nightly"),
        forge.github_push("x/refs/tags/v1.2.3"),
        changed(forge.github_push(TAG), repository={"full_name": "gpu-people/experiments-fork"}),
        changed(forge.github_push(TAG), head_commit={"id": "main"}),
        forge.Delivery("push", forge.github_push(TAG).body, id="Not-A-UUID"),
    ],
    ids=lambda delivery: f"{delivery.event}-{delivery.body.get('ref')}",
)
def test_nothing_else_starts_one(delivery: forge.Delivery) -> None:
    assert not rules.let_through(SENSOR, event_of(delivery))


def test_a_dot_in_the_repositorys_name_means_a_dot() -> None:
    sensor = tags.tag_pushed("gpu.people", "experiments")
    named = [
        changed(forge.github_push(TAG), repository={"full_name": name}) for name in ("gpu.people/experiments", forge.REPOSITORY)
    ]
    assert [rules.let_through(sensor, event_of(one)) for one in named] == [True, False]


def test_the_run_is_told_the_commit_and_never_the_tag_object() -> None:
    """What was pushed of an annotated tag is an object of its own; both forges name the commit beside it."""
    for delivery in (forge.github_push(TAG, annotated=True), forge.gitea_push(TAG)):
        assert (delivery.body["after"], delivery.body["head_commit"]["id"]) == (forge.TAG_OBJECT, forge.COMMIT)
    keys = {parameter["dest"]: parameter["src"].get("dataKey") for parameter in trigger()["template"]["k8s"]["parameters"]}
    assert keys["spec.arguments.parameters.2.value"] == "body.head_commit.id"


def trigger(objects: Objects = SHIPPED) -> dict[str, Any]:
    found: dict[str, Any] = objects[1]["spec"]["triggers"][0]
    return found


def dependency(objects: Objects) -> dict[str, Any]:
    found: dict[str, Any] = objects[1]["spec"]["dependencies"][0]
    return found


def hook(objects: Objects) -> dict[str, Any]:
    found: dict[str, Any] = objects[0]["spec"]["github"]["pushed"]
    return found


BREAKS: dict[Callable[[Any], list[str]], list[Callable[[Objects], Any]]] = {
    rules.hooks_are_verified: [
        lambda o: hook(o).pop("webhookSecret"),
        lambda o: hook(o)["webhookSecret"].update(key=""),
        lambda o: hook(o).update(organizations=["gpu-people"]),
        lambda o: hook(o).pop("repositories"),
    ],
    rules.hooks_say_what_starts_a_run: [
        lambda o: dependency(o)["filters"]["data"].pop(0),
        lambda o: dependency(o)["filters"]["data"].pop(1),
        lambda o: dependency(o)["filters"]["data"][2].update(value=["refs/tags/v[0-9]+$"]),
        lambda o: dependency(o)["filters"]["data"][2].update(value=["^refs/tags/v1.2.3|.*$"]),
        lambda o: dependency(o)["filters"]["data"][2].update(value=["^refs/tags/v.*$"]),
        lambda o: dependency(o)["filters"].update(dataLogicalOperator="or"),
    ],
}


@pytest.mark.parametrize("rule", BREAKS, ids=lambda rule: rule.__name__)
def test_the_tags_keep_our_rule(rule: Callable[[Any], list[str]]) -> None:
    assert rule(SHIPPED) == []


@pytest.mark.parametrize(
    ("rule", "broken"),
    [(rule, broken) for rule in BREAKS for broken in BREAKS[rule]],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_rule_finds_what_breaks_it(rule: Callable[[Any], list[str]], broken: Callable[[Objects], Any]) -> None:
    objects = copy.deepcopy(SHIPPED)
    broken(objects)
    assert rule(objects) != []


def test_the_patches_of_the_overlay_replace_the_placeholders_at_their_places() -> None:
    """kustomize replaces by path; a path that no longer holds the placeholder would patch something else."""
    content = yaml.safe_load((DEPLOY / "tags" / "kustomization.yaml").read_text(encoding="utf-8"))
    before = {one["kind"]: one for one in objects_of(DEPLOY / "tags")}
    for patch in content["patches"]:
        for operation in yaml.safe_load(patch["patch"]):
            place: Any = before[patch["target"]["kind"]]
            for key in operation["path"].strip("/").split("/"):
                place = place[int(key)] if key.isdigit() else place[key]
            assert place == operation["value"], operation["path"]


def test_the_source_that_is_reached_from_outside_has_no_right() -> None:
    """Neither a role bound to its account nor a token in its pod."""
    files = (path.read_text(encoding="utf-8") for path in sorted(DEPLOY.rglob("*.yaml")))
    everything = [one for text in files for one in yaml.safe_load_all(text) if one and "kind" in one]
    (account,) = (one for one in everything if one["kind"] == "ServiceAccount" and one["metadata"]["name"] == tags.ACCOUNT)
    bound = [one["metadata"]["name"] for one in everything for who in one.get("subjects", []) if who["name"] == tags.ACCOUNT]
    assert (account["automountServiceAccountToken"], bound) == (False, [])


def test_no_secret_is_shipped_and_an_empty_one_is_refused() -> None:
    kinds = [one["kind"] for one in objects_of(DEPLOY / "tags")]
    assert "Secret" not in kinds
    assert kinds.count("ValidatingAdmissionPolicy") == kinds.count("ValidatingAdmissionPolicyBinding") == 1
