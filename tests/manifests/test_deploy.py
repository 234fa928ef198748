"""What the overlays put together: one clock, one bus, accounts that exist, and the admission policy in all of them.

Read by following the kustomizations' resources; patches are kustomize's own, and tests/cluster asks the real one for its output.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
OVERLAYS = sorted(path.parent for path in (DEPLOY / "overlays").glob("*/kustomization.yaml"))
Object = dict[str, Any]


@cache
def objects_of(folder: Path) -> tuple[Object, ...]:
    """Every object that a kustomization lists, and those of the folders it names."""
    return tuple(_listed(folder))


def _listed(folder: Path) -> Iterator[Object]:
    content = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    for named in content.get("resources", []):
        path = (folder / named).resolve()
        if path.is_dir():
            yield from objects_of(path)
        else:
            yield from (one for one in yaml.safe_load_all(path.read_text(encoding="utf-8")) if one)


def names(folder: Path, kind: str) -> list[str]:
    return sorted(one["metadata"]["name"] for one in objects_of(folder) if one["kind"] == kind)


def test_there_is_an_overlay_for_each_way_to_run_it() -> None:
    assert {path.name for path in OVERLAYS} == {"standard", "small", "own-nats", "namespaced", "cron"}


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_exactly_one_clock_is_active(overlay: Path) -> None:
    ticks = [name for name in names(overlay, "Sensor") if name == "tick"]
    assert len(ticks) + len(names(overlay, "CronWorkflow")) == 1
    assert bool(ticks) == ("ticks" in names(overlay, "EventSource"))


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_an_overlay_is_whole(overlay: Path) -> None:
    """One bus, the release check with its trigger, the policy that admits nothing else, and every account that something names."""
    assert names(overlay, "EventBus") == ["default"]
    assert "release-check" in names(overlay, "WorkflowTemplate")
    assert "pod-deleted" in names(overlay, "Sensor")
    assert names(overlay, "ValidatingAdmissionPolicyBinding") == names(overlay, "ValidatingAdmissionPolicy")
    used = {
        one["spec"]["template"]["serviceAccountName"] for one in objects_of(overlay) if one["kind"] in ("EventSource", "Sensor")
    }
    assert used <= set(names(overlay, "ServiceAccount"))


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_the_event_source_may_watch_pods_and_nothing_else(overlay: Path) -> None:
    rules = [
        rule
        for one in objects_of(overlay)
        if one["kind"] in ("Role", "ClusterRole") and one["metadata"]["name"] == "gpu-reclaim-eventsource"
        for rule in one["rules"]
    ]
    assert rules == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]


def test_the_base_has_no_clock_and_no_event_of_its_own() -> None:
    kinds = {one["kind"] for one in objects_of(DEPLOY / "base")}
    assert not kinds & {"EventBus", "EventSource", "Sensor", "CronWorkflow"}


def test_the_namespace_says_which_pods_it_takes() -> None:
    (namespace,) = (one for one in objects_of(DEPLOY / "base") if one["kind"] == "Namespace")
    levels = {key.rpartition("/")[2]: level for key, level in namespace["metadata"]["labels"].items()}
    assert levels == {"enforce": "privileged", "warn": "privileged", "audit": "restricted"}


def test_the_recommended_controller_settings_take_submissions_by_template_only() -> None:
    settings = yaml.safe_load((DEPLOY / "controller" / "workflow-controller-configmap.yaml").read_text(encoding="utf-8"))
    assert yaml.safe_load(settings["data"]["workflowRestrictions"]) == {"templateReferencing": "Strict"}


def test_the_admission_policy_is_bound_to_the_namespace_of_the_base() -> None:
    (binding,) = (one for one in objects_of(DEPLOY / "admission") if one["kind"] == "ValidatingAdmissionPolicyBinding")
    (namespace,) = names(DEPLOY / "base", "Namespace")
    assert binding["spec"]["matchResources"]["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": namespace}
    assert binding["spec"]["validationActions"] == ["Deny"]
