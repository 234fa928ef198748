"""A session that does not let go: its stop is followed by a leak that is named, and by an exit that says so."""

from datetime import UTC, datetime

import pytest

from sim.clock import SimulatedClock
from sim.scenarios.builder import GIB, WorldBuilder
from sim.world.state import Behaviour
from steps.archive.evidence import RunEvidence, load_evidence
from steps.contracts.release import Release, ReleaseVerdict
from steps.contracts.run_record import RunRecord
from steps.contracts.traced import GpuClass
from tests.local.test_sweep import A100, Place

LEAVES_MEMORY = Behaviour(memory_bytes=20 * GIB, exits_after_s=1.0, leaves_ghost_bytes=3 * GIB)
LEAVES_A_PROCESS = Behaviour(memory_bytes=10 * GIB, exits_after_s=1.0, outlives_pod=True)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunRecord, RunEvidence]:
    """Two idle sessions, both stopped, and neither GPU comes back."""
    built = WorldBuilder(datetime(2026, 11, 30, 9, 0, tzinfo=UTC))
    for name in ("gpu-reclaim", "vision"):
        built.namespace(name)
    built.node("node-1", A100, gpus=2, memory_gib=80)
    built.session("vision", "ghost", A100, LEAVES_MEMORY)
    built.session("vision", "survivor", A100, LEAVES_A_PROCESS)
    built.wait(hours=2)
    place = Place.of(tmp_path_factory.mktemp("leak"), built.world)
    place.sweep("first")
    SimulatedClock(place.state).sleep(18 * 60)
    record = place.sweep("second", dry_run="false")
    return record, load_evidence(place.folder / "evidence" / "second")


def release_of(evidence: RunEvidence, name: str) -> Release:
    uid = next(decision.owner.uid for decision in evidence.decisions if decision.owner.name == name)
    (session,) = [one for one in evidence.sessions if one.session_uid == uid]
    return session.releases[0]


@pytest.mark.parametrize(("name", "gpu_class"), [("ghost", GpuClass.GHOST_CONTEXT), ("survivor", GpuClass.IDLE_HOLDER)])
def test_memory_that_stays_after_the_stop_is_a_leak_with_its_class_and_remedy(
    swept: tuple[RunRecord, RunEvidence], name: str, gpu_class: GpuClass
) -> None:
    """The node cannot know that the pod is gone: past its deadline a holder keeps its class, and is said to be overdue."""
    release = release_of(swept[1], name)
    (device,) = release.devices
    assert (release.verdict, device.verdict, device.first_seen_free) == (ReleaseVerdict.LEAKED, ReleaseVerdict.LEAKED, None)
    assert (device.gpu_class, device.remedy is not None, "termination overdue" in device.sentence) == (gpu_class, True, True)


def test_the_ghost_is_not_called_a_leak_before_its_deadline_and_three_samples_over_a_minute(
    swept: tuple[RunRecord, RunEvidence],
) -> None:
    release = release_of(swept[1], "ghost")
    assert (release.watched_until - release.watched_from).total_seconds() >= 60


def test_the_run_says_that_memory_is_not_back_and_archives_all_the_same(swept: tuple[RunRecord, RunEvidence]) -> None:
    record, evidence = swept
    verifies = [node for node in record.nodes if node.template == "verify" and node.kind == "Pod"]
    assert [(node.phase, node.message) for node in verifies] == [("Failed", "main: Error (exit code 4)")] * 2
    assert evidence.summary is not None
    assert (evidence.summary.stops_acted, evidence.summary.releases) == (2, {"leaked": 2})
