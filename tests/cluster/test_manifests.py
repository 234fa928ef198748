"""The rendered manifests before the tools and the server that will read them."""

import shutil
from pathlib import Path

import pytest
import yaml

from sensors.render import OBJECTS
from tests.cluster.lab.commands import output_of
from tests.cluster.lab.lab import Lab, lint
from tests.cluster.lab.places import CHECKOUT

pytestmark = pytest.mark.cluster

WORKFLOWS = CHECKOUT / "workflows" / "manifests"
OVERLAYS = sorted(path.parent.name for path in (CHECKOUT / "deploy" / "overlays").glob("*/kustomization.yaml"))


def test_argo_lint_finds_no_fault(lab: Lab) -> None:
    assert "no linting errors found" in lint(
        lab, [path for path in sorted(WORKFLOWS.glob("*.yaml")) if path.stem != "kustomization"]
    )


def test_the_api_server_admits_everything_that_is_shipped(installed: Lab) -> None:
    """With the full CRDs, whose rules only the server runs."""
    installed.kubectl(
        "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--kustomize", str(CHECKOUT / "deploy" / "base")
    )


def test_argo_events_lint_finds_no_fault(lab: Lab) -> None:
    told = output_of([lab.where.bin / "argo-events", "lint", "--strict", "-R", CHECKOUT / "sensors" / "manifests"], timeout_s=60)
    kinds = [make()["kind"] for makers in OBJECTS.values() for make in makers]
    assert told.count("is valid") == sum(kind in ("EventSource", "Sensor") for kind in kinds)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_overlay_is_one_that_kustomize_makes_and_holds_one_clock(lab: Lab, overlay: str) -> None:
    rendered = list(yaml.safe_load_all(lab.kubectl("kustomize", str(CHECKOUT / "deploy" / "overlays" / overlay))))
    clocks = [one for one in rendered if (one["kind"], one["metadata"]["name"]) in (("Sensor", "tick"), ("CronWorkflow", "sweep"))]
    assert [one["metadata"]["namespace"] for one in clocks] == ["gpu-reclaim"]
    (bus,) = (one["spec"] for one in rendered if one["kind"] == "EventBus")
    stream = yaml.safe_load((bus.get("jetstream") or bus["jetstreamExotic"])["streamConfig"])
    assert (stream["maxAge"], stream["replicas"]) == ("1h", 1 if overlay == "small" else 3)


@pytest.mark.parametrize("overlay", ["standard", "cron"])
def test_the_component_act_turns_the_clock_round_and_nothing_else(lab: Lab, tmp_path: Path, overlay: str) -> None:
    """An overlay of somebody's own, one that uses the component beside one that does not."""
    plain = lab.kubectl("kustomize", str(CHECKOUT / "deploy" / "overlays" / overlay))
    shutil.copytree(CHECKOUT / "deploy", tmp_path / "deploy")
    shutil.copytree(CHECKOUT / "sensors" / "manifests", tmp_path / "sensors" / "manifests")
    shutil.copytree(CHECKOUT / "workflows" / "manifests", tmp_path / "workflows" / "manifests")
    mine = tmp_path / "deploy" / "overlays" / overlay
    with (mine / "kustomization.yaml").open("a", encoding="utf-8") as written:
        written.write("components: [../../components/act]\n")
    changed = [
        (was, now)
        for was, now in zip(plain.splitlines(), lab.kubectl("kustomize", str(mine)).splitlines(), strict=True)
        if was != now
    ]
    assert [(was.split(), now.split()) for was, now in changed] == [(["value:", '"true"'], ["value:", '"false"'])]
