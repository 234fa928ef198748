"""The committed manifests are what the Python renders, no more and no less."""

import pytest
import yaml

from workflows import MANIFESTS
from workflows.render import TEMPLATES, render

KUSTOMIZATION = "kustomization.yaml"


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_the_committed_manifest_is_what_the_python_renders(name: str) -> None:
    committed = (MANIFESTS / f"{name}.yaml").read_text(encoding="utf-8")
    assert committed == render(name), f"{name}.yaml is stale: run `python -m workflows.render` and read the diff"


def test_no_manifest_outlives_its_template() -> None:
    assert {path.name for path in MANIFESTS.iterdir()} == {f"{name}.yaml" for name in TEMPLATES} | {KUSTOMIZATION}


def test_every_manifest_is_deployed() -> None:
    deployed = yaml.safe_load((MANIFESTS / KUSTOMIZATION).read_text(encoding="utf-8"))["resources"]
    assert sorted(deployed) == [f"{name}.yaml" for name in sorted(TEMPLATES)]
