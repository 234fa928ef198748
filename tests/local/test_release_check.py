"""The rendered release check on a simulated cluster: the same manifest, for pods that were deleted behind gpu-reclaim's back."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sim.clock import SimulatedClock
from sim.scenarios.builder import GIB, WorldBuilder
from sim.world.state import Behaviour
from steps.archive.evidence import RunEvidence, load_evidence
from steps.contracts.release_check import Answer
from steps.contracts.run_record import RunRecord
from tests.local.test_sweep import A100, Place, ended
from workflows import MANIFESTS
from workflows.local import Setting, load, run_locally

CLEAN = Behaviour(memory_bytes=10 * GIB, exits_after_s=1.0)
LEAVES_MEMORY = Behaviour(memory_bytes=20 * GIB, exits_after_s=1.0, leaves_ghost_bytes=3 * GIB)
LIVES = Behaviour(memory_bytes=10 * GIB, exits_after_s=None)
DELETED_AT = "2026-11-30T11:00:00Z"


def deleted(folder: Path, behaviour: Behaviour, *, gone: bool = True) -> tuple[Place, str]:
    """A cluster with one session, deleted unless `gone` is False, and the uid that its pod had."""
    built = WorldBuilder(datetime(2026, 11, 30, 9, 0, tzinfo=UTC))
    for name in ("gpu-reclaim", "vision"):
        built.namespace(name)
    built.node("node-1", A100, gpus=2, memory_gib=80)
    built.session("vision", "notebook", A100, behaviour)
    built.wait(hours=2)
    (uid,) = (one["metadata"]["uid"] for one in built.world.objects.values() if one["kind"] == "Pod")
    if gone:
        built.delete_session("vision", "notebook")
    return Place.of(folder, built.world), str(uid)


def check(place: Place, *, run: str = "release", **parameters: str) -> tuple[RunRecord, RunEvidence]:
    runs = place.folder / "runs"
    setting = Setting(
        runs_folder=runs,
        claims={"gpu-reclaim-evidence": place.folder / "evidence"},
        config_maps={},
        environment={**os.environ, "GPU_RECLAIM_SIMULATOR": str(place.state), "GPU_RECLAIM_RUNS_DIR": str(runs)},
        now=SimulatedClock(place.state).now,
        processes=2,
    )
    given = {name.replace("_", "-"): value for name, value in parameters.items()}
    record = run_locally(load(MANIFESTS / "release-check.yaml"), given, setting, run=run, uid=f"uid-{run}")
    return record, load_evidence(place.folder / "evidence" / run)


@pytest.mark.parametrize(
    ("behaviour", "answer", "phase"),
    [(CLEAN, Answer.RETURNED, "Succeeded"), (LEAVES_MEMORY, Answer.LEAKED, "Failed")],
    ids=["clean", "leaves memory"],
)
def test_a_deleted_pod_gets_its_answer_and_the_run_its_phase(
    tmp_path: Path, behaviour: Behaviour, answer: Answer, phase: str
) -> None:
    place, uid = deleted(tmp_path, behaviour)
    record, evidence = check(place, uid=uid, node="node-1", deleted_at=DELETED_AT)
    assert evidence.check is not None
    assert (evidence.check.answer, record.phase, ended(record, "archive")[-1]) == (answer, phase, "Succeeded"), (
        evidence.check.sentence
    )
    assert evidence.summary is not None
    assert evidence.summary.missing == ()


def test_a_pod_that_lives_is_told_from_one_that_was_deleted(tmp_path: Path) -> None:
    place, uid = deleted(tmp_path, LIVES, gone=False)
    record, evidence = check(place, uid=uid, node="node-1")
    assert evidence.check is not None
    assert (evidence.check.answer, record.phase) == (Answer.STILL_LIVES, "Succeeded")


def test_a_pod_that_never_was_on_a_node_gets_no_probe(tmp_path: Path) -> None:
    place, uid = deleted(tmp_path, CLEAN)
    record, evidence = check(place, uid=uid, node="")
    assert (record.phase, ended(record, "release-check", "Skipped"), evidence.check) == ("Succeeded", ["Skipped"], None)
