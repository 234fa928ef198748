"""Every vector of the case folder: one cgroup line, five fields."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from steps.trace.cgroup import parse_line

HERE = Path(__file__).parent.parent / "cases"
CASES = Path(os.environ.get("GPU_RECLAIM_CASES", str(HERE)))


def vectors_in(folder: Path) -> list[dict[str, Any]]:
    return [one for path in sorted(folder.glob("cgroup_vectors*.json")) for one in json.loads(path.read_text(encoding="utf-8"))]


GIVEN = vectors_in(CASES)
VECTORS = GIVEN + vectors_in(HERE / "own")
KEYS = {"id", "line", "pod_uid", "container_id", "runtime", "qos", "role", "source"}


def test_the_folder_holds_vectors_of_the_known_schema() -> None:
    assert GIVEN
    assert all(set(vector) == KEYS for vector in VECTORS)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector["id"]))
def test_a_cgroup_line_names_what_the_vector_says(vector: dict[str, Any]) -> None:
    name = parse_line(vector["line"])
    told = {
        "pod_uid": name.pod_uid,
        "container_id": name.container_id,
        "runtime": name.runtime.value,
        "qos": name.qos.value,
        "role": name.role.value,
    }
    assert told == {key: vector[key] for key in told}
