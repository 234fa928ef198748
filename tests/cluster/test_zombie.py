"""The termination experiment, whole and real: real containers, PID 1s, memory that the kernel frees. One run, many questions."""

import pytest

from experiments.zombie.results import Judgement, Word, ZombieResults
from experiments.zombie.scenarios import Row
from tests import forge
from tests.cluster import scene, tags_scene, zombie_scene
from tests.cluster.lab.lab import Lab
from tests.cluster.scene import Run
from tests.cluster.tags_scene import Story

pytestmark = pytest.mark.cluster

SCENARIOS = ("s1-stays", "s1-execs", "s2", "s3", "s4")
SEEDS_FILES = (
    "observe-after-spawn.log",
    "observe-after-kill.log",
    "gpu-pod-trace.log",
    "nvidia-smi-before-delete.log",
    "nvidia-smi-after-delete.log",
    "notes.md",
)


@pytest.fixture(scope="module")
def run(installed: Lab, started_by_tag: Story) -> Run:
    """The run that a git tag started."""
    name = started_by_tag.run
    return Run(name, scene.finish(installed, name, within_s=zombie_scene.RUN_S), installed.evidence / name)


@pytest.fixture(scope="module")
def results(run: Run) -> ZombieResults:
    assert run.phase == "Succeeded", scene.phases(run.workflow)
    return zombie_scene.results_of(run)


def test_every_scenario_is_driven_to_its_end(run: Run, results: ZombieResults) -> None:
    assert run.phase == "Succeeded", scene.phases(run.workflow)
    assert [one.scenario.value for one in results.scenarios] == list(SCENARIOS)
    assert {one.scenario.value: one.problem for one in results.scenarios} == dict.fromkeys(SCENARIOS)
    assert not results.missing


@pytest.mark.parametrize(
    ("scenario", "reaped"),
    [("s1-stays", Word.YES), ("s1-execs", Word.NO), ("s2", Word.YES), ("s3", Word.YES), ("s4", Word.YES)],
)
def test_a_shell_that_stays_reaps_and_one_that_execs_does_not(results: ZombieResults, scenario: str, reaped: Word) -> None:
    assert zombie_scene.words(zombie_scene.result(results, scenario))[Row.REAPED] is reaped


@pytest.mark.parametrize(
    ("scenario", "orphan"),
    [
        ("s1-stays", Word.AT_GRACE),
        ("s1-execs", Word.AT_GRACE),
        ("s2", Word.WITH_PID1),
        ("s3", Word.BY_HOOK),
        ("s4", Word.LEFT),
    ],
)
def test_how_the_orphan_ends_is_the_scenarios_own(results: ZombieResults, scenario: str, orphan: Word) -> None:
    assert zombie_scene.words(zombie_scene.result(results, scenario))[Row.ORPHAN] is orphan


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_sigkill_frees_the_memory_and_nothing_outlives_the_deletion(results: ZombieResults, scenario: str) -> None:
    words = zombie_scene.words(zombie_scene.result(results, scenario))
    assert (words[Row.KILLED_CONTEXT], words[Row.AFTER_DELETION], words[Row.REBOOT]) == (Word.NO, Word.FREE, Word.NOT_NEEDED)


def test_only_the_full_fix_cleans_up_on_sigterm(results: ZombieResults) -> None:
    cleaned = {one.scenario.value: zombie_scene.words(one)[Row.CLEAN_UP] for one in results.scenarios}
    assert cleaned == {**dict.fromkeys(SCENARIOS[:-1], Word.NO), "s4": Word.YES}


def test_where_the_expectation_was_wrong_the_report_says_so_and_why(results: ZombieResults) -> None:
    differing = [v for one in results.scenarios for v in one.verdicts if v.judgement is Judgement.OTHERWISE]
    assert (len(differing), [v for v in differing if not v.why]) == (7, [])


def test_the_memory_that_was_held_is_what_was_asked_for(results: ZombieResults) -> None:
    held = {one.scenario.value: one.repetitions[0].held_bytes for one in results.scenarios}
    assert held == dict.fromkeys(SCENARIOS, 2048 << 20)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_watch_looks_five_to_ten_times_a_second_from_before_the_creation(run: Run, scenario: str) -> None:
    recording = zombie_scene.recording(run, scenario)
    span_s = (recording.stretches[-1].last_at - recording.stretches[0].first_at).total_seconds()
    assert 5 <= recording.looks / span_s <= 10
    assert recording.longest_gap_s < 1.5
    assert recording.stretches[0].processes == ()


def test_the_run_says_how_long_it_waited_on_purpose(results: ZombieResults) -> None:
    """What the whole run costs against that is a row of `make bench`: a timed test fails with the machine, not with the code."""
    assert results.provenance.waited_s > 0


def test_tag_and_commit_stand_in_results_and_report(run: Run, results: ZombieResults) -> None:
    assert (results.provenance.tag, results.provenance.commit) == (tags_scene.TAG, forge.COMMIT)
    report = (run.folder / "report.html").read_text(encoding="utf-8")
    assert tags_scene.TAG in report
    assert forge.COMMIT in report


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_the_seeds_files_are_there_with_their_names(run: Run, number: int) -> None:
    assert {f"results/scenario-{number}/{name}" for name in SEEDS_FILES} <= zombie_scene.files_of(run)


def test_evidence_is_vouched_for_and_nothing_is_left_behind(run: Run, results: ZombieResults, installed: Lab) -> None:
    assert not run.damaged()
    assert not installed.kubectl.list("pod", zombie_scene.NAMESPACE)
    assert results.provenance.images, "the digest of what ran is part of the record"


@pytest.mark.parametrize(
    ("right", "may"),
    [
        (("create", "pods", "gpu-zombie-test"), True),
        (("delete", "pods", "gpu-zombie-test"), True),
        (("create", "pods/exec", "gpu-zombie-test"), True),
        (("create", "pods", "gpu-reclaim"), False),
        (("create", "pods/exec", "gpu-reclaim"), False),
        (("delete", "pods", scene.TEAM), False),
        (("patch", "deployments.apps/scale", scene.TEAM), False),
        (("get", "secrets", "gpu-zombie-test"), False),
        (("get", "nodes", None), False),
    ],
)
def test_the_experimenter_may_do_this_in_its_namespace_and_nothing_elsewhere(
    run: Run, installed: Lab, right: tuple[str, str, str | None], may: bool
) -> None:
    assert run.name
    assert installed.kubectl.may("gpu-reclaim:experimenter", *right) is may
