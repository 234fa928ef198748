"""The termination experiment where things are not ordinary: a GPU in use, a run that is stopped, other ways to die, repetitions."""

import pytest

from experiments.zombie.results import Word
from experiments.zombie.scenarios import Row
from tests.cluster import scene, zombie_scene
from tests.cluster.lab.lab import Lab
from tests.cluster.scene import Run
from tests.cluster.zombie_scene import NAMESPACE

pytestmark = pytest.mark.cluster

ONE_RUN_S = 240
"""These tests run the experiment themselves."""


@pytest.fixture(scope="module", autouse=True)
def experiment_installed(installed: Lab) -> None:
    zombie_scene.install(installed)


@pytest.mark.timeout(ONE_RUN_S, func_only=True)
def test_a_gpu_in_use_is_left_alone_and_said(installed: Lab) -> None:
    scene.start_session(installed, "tenant")
    tenant = scene.wait_running(installed, "tenant")
    try:
        run = zombie_scene.experiment(installed, scenarios="s2")
        (one,) = zombie_scene.results_of(run).scenarios
        assert one.problem is not None
        assert "nothing was begun" in one.problem
        assert not installed.kubectl.list("pod", NAMESPACE)
        assert scene.wait_running(installed, "tenant")["metadata"]["uid"] == tenant["metadata"]["uid"]
    finally:
        installed.kubectl.delete("deployment", "tenant", scene.TEAM)
        installed.kubectl.wait("the tenant is gone", lambda: not scene.pods_of(installed, "tenant"), within_s=40)


@pytest.mark.timeout(ONE_RUN_S, func_only=True)
def test_a_run_that_is_stopped_half_way_leaves_no_session_and_reports_what_it_has(installed: Lab) -> None:
    """As `argo stop` does, while the second of three sessions is there."""
    given = {"node": installed.node, **zombie_scene.QUICK, "scenarios": "s2", "repetitions": "3"}
    name = scene.submit(installed, zombie_scene.TEMPLATE, given)
    installed.kubectl.wait("the second session runs", lambda: zombie_scene.is_there(installed, "s2-2"), within_s=120)
    zombie_scene.stop(installed, name)
    run = Run(name, scene.finish(installed, name, within_s=90), installed.evidence / name)
    assert not installed.kubectl.list("pod", NAMESPACE)
    (one,) = zombie_scene.results_of(run).scenarios
    assert [rep.failure for rep in one.repetitions] == [None, "the run was stopped half-way"]
    assert {(v.row, v.measured, v.n, v.of) for v in one.verdicts} >= {
        (Row.ORPHAN, Word.WITH_PID1, 1, 2),
        (Row.CLEAN_UP, Word.NO, 1, 2),
        (Row.AFTER_DELETION, Word.FREE, 1, 2),
        (Row.REBOOT, Word.NOT_NEEDED, 1, 2),
    }
    assert (one.problem or "").endswith("repetition 2: the run was stopped half-way; repetition 3 was not begun")
    assert "0 of 1 scenarios were measured in every repetition." in (run.folder / "report.html").read_text(encoding="utf-8")
    assert zombie_scene.recording(run, "s2").ended == "the run was stopped, and drive has ended"


@pytest.mark.repeat
@pytest.mark.timeout(ONE_RUN_S, func_only=True)
@pytest.mark.parametrize(
    ("ending", "orphan"),
    [("sigkill", Word.AT_GRACE), ("evict", Word.WITH_PID1), ("force", Word.WITH_PID1)],
)
def test_other_ways_to_end_a_session_leave_nothing_either(installed: Lab, ending: str, orphan: Word) -> None:
    (one,) = zombie_scene.results_of(zombie_scene.experiment(installed, scenarios="s2", ending=ending)).scenarios
    words = zombie_scene.words(one)
    assert (one.problem, words[Row.AFTER_DELETION], words[Row.ORPHAN]) == (None, Word.FREE, orphan)


@pytest.mark.repeat
@pytest.mark.timeout(ONE_RUN_S, func_only=True)
@pytest.mark.parametrize(
    ("worker", "killed"),
    [("training-child", Word.YES), ("multiprocessing", Word.YES), ("setsid", Word.NO)],
)
def test_children_of_a_killed_worker_keep_memory_until_the_container_ends(installed: Lab, worker: str, killed: Word) -> None:
    (one,) = zombie_scene.results_of(zombie_scene.experiment(installed, scenarios="s2", worker=worker)).scenarios
    words = zombie_scene.words(one)
    assert (one.problem, words[Row.KILLED_CONTEXT], words[Row.AFTER_DELETION]) == (None, killed, Word.FREE)


@pytest.mark.repeat
@pytest.mark.timeout(ONE_RUN_S, func_only=True)
def test_a_deployment_makes_its_pod_again_and_the_experiment_copes(installed: Lab) -> None:
    (one,) = zombie_scene.results_of(zombie_scene.experiment(installed, scenarios="s2", session="deployment")).scenarios
    assert (one.problem, len(one.repetitions[0].recreated)) == (None, 1)
    assert "ReplicaSet/" in one.repetitions[0].recreated[0]
    assert not installed.kubectl.list("pod", NAMESPACE)


@pytest.mark.repeat
@pytest.mark.timeout(ONE_RUN_S, func_only=True)
def test_a_pod_that_git_ops_makes_again_is_recognised_and_left_to_its_owner(installed: Lab) -> None:
    with zombie_scene.self_heal(installed, "gpu-zombie-tini") as healed:
        run = zombie_scene.experiment(installed, scenarios="s2")
        (one,) = zombie_scene.results_of(run).scenarios
        assert [uid in words for uid, words in zip(healed, one.repetitions[0].recreated, strict=True)] == [True]
        assert zombie_scene.words(one)[Row.REAPED] is Word.YES, "the session itself was measured all the same"
        assert [pod["metadata"]["uid"] for pod in installed.kubectl.list("pod", NAMESPACE)] == healed


@pytest.mark.repeat
@pytest.mark.timeout(900, func_only=True)
def test_three_repetitions_agree_in_every_row(installed: Lab) -> None:
    results = zombie_scene.results_of(zombie_scene.experiment(installed, within_s=850, repetitions="3"))
    assert zombie_scene.unstable(results, 3) == []
