"""The committed manifests and the steps' page are what the Python renders, no more and no less."""

from pathlib import Path

import pytest
import yaml

from workflows import MANIFESTS
from workflows.render import RENDERED, ROOT, TEMPLATES, committed

KUSTOMIZATION = "kustomization.yaml"


@pytest.mark.parametrize("path", sorted(RENDERED), ids=lambda path: path.stem)
def test_the_committed_file_is_what_the_python_renders(path: Path) -> None:
    stale = f"{path.relative_to(ROOT)} is stale: run `python -m workflows.render` and read the diff"
    assert committed(path) == RENDERED[path](), stale


def test_no_manifest_outlives_its_template() -> None:
    assert {path.name for path in MANIFESTS.iterdir()} == {f"{name}.yaml" for name in TEMPLATES} | {KUSTOMIZATION}


def test_every_manifest_is_deployed() -> None:
    deployed = yaml.safe_load((MANIFESTS / KUSTOMIZATION).read_text(encoding="utf-8"))["resources"]
    assert sorted(deployed) == [f"{name}.yaml" for name in sorted(TEMPLATES)]
