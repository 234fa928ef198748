"""The main job, whole and real: A holds the GPU and is idle, B waits; a sweep stops A, proves the memory back, B gets the device.

One story, told once for all tests of this file: each test asks one question about what happened.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from steps.contracts.decision import Reason, Verdict
from steps.contracts.release import ReleaseVerdict
from steps.contracts.run_record import EvidenceSummary
from steps.contracts.stop_receipt import Refusal
from tests.cluster import scene
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab
from tests.cluster.scene import TEAM, Run
from tests.cluster.steps_pod import run_step
from tests.cluster.twin import acting_sweep, outline
from tests.cluster.world import deployment_identity, devices_of, metrics_absent, processes_holding

pytestmark = pytest.mark.cluster


@dataclass(frozen=True, slots=True)
class Story:
    """What happened, in order. Generations are of A's Deployment: unchanged means that nobody wrote its spec."""

    words_about_b: str
    a_uid: str
    a_device: str
    a_processes: tuple[int, ...]
    home: Path
    first: Run
    working: Run
    silent: Run
    dry: Run
    generations: tuple[int, ...]
    acted: Run
    b_pod: Json
    b_device: str


@pytest.fixture(scope="module")
def story(installed: Lab) -> Story:
    lab = installed
    scene.make_room(lab)
    scene.set_policy(lab, max_stops_per_sweep=2)  # not the policy of other tests, so that its first sweep is one
    home = scene.make_claim(lab, "home-a")
    scene.start_session(lab, "a", claim="home-a")
    pod_a = scene.wait_running(lab, "a")
    lab.kubectl.execute(pod_a["metadata"]["name"], TEAM, ["sh", "-c", "echo kept > /home/session/notes; echo lost > /tmp/scratch"])
    scene.start_session(lab, "b")
    lab.kubectl.wait("the scheduler speaks about b", lambda: scene.scheduler_words(lab, "b") != "", within_s=20)
    words = scene.scheduler_words(lab, "b")
    uid, generation = deployment_identity(lab, "a")
    device = devices_of(lab, pod_a)[0]
    processes = processes_holding(pod_a)
    generations = [generation]

    def judged(dry_run: bool) -> Run:
        run = scene.sweep(lab, dry_run=dry_run)
        generations.append(deployment_identity(lab, "a")[1])
        return run

    first = judged(dry_run=False)
    scene.order(lab, "a", "busy")
    working = judged(dry_run=False)
    scene.order(lab, "a", "idle")
    with metrics_absent():
        silent = judged(dry_run=False)
    judged(dry_run=True)  # starts the idle clock anew
    time.sleep(scene.IDLE_AFTER_S)
    dry = judged(dry_run=True)
    acted = scene.sweep(lab, dry_run=False)
    pod_b = scene.wait_running(lab, "b")
    return Story(
        words_about_b=words,
        a_uid=uid,
        a_device=device,
        a_processes=processes,
        home=home,
        first=first,
        working=working,
        silent=silent,
        dry=dry,
        generations=tuple(generations),
        acted=acted,
        b_pod=pod_b,
        b_device=devices_of(lab, pod_b)[0],
    )


def test_the_scheduler_says_that_b_waits_for_a_gpu(story: Story) -> None:
    assert "Insufficient nvidia.com/gpu" in story.words_about_b


def test_the_first_sweep_under_a_new_policy_stops_nothing_whatever_it_was_asked(story: Story) -> None:
    assert story.first.phase == "Succeeded", scene.phases(story.first.workflow)
    assert not story.first.decision("a").acts


def test_a_session_that_works_is_kept(story: Story) -> None:
    decision = story.working.decision("a")
    assert (decision.verdict, decision.reason) == (Verdict.KEEP, Reason.WORKING), decision.sentence


def test_a_session_without_metrics_is_unknown_and_kept(story: Story) -> None:
    decision = story.silent.decision("a")
    assert (decision.verdict, decision.reason) == (Verdict.UNKNOWN, Reason.SIGNAL_UNKNOWN), decision.sentence


def test_a_dry_run_says_reclaim_and_changes_nothing(story: Story) -> None:
    decision = story.dry.decision("a")
    assert (decision.verdict, decision.acts) == (Verdict.RECLAIM, False), decision.sentence
    assert len(set(story.generations)) == 1, f"A's Deployment was written to before the acting sweep: {story.generations}"


def test_the_idle_session_is_stopped_through_scale(story: Story, lab: Lab) -> None:
    receipt = story.acted.receipt(story.a_uid)
    assert (receipt.acted, receipt.replicas_before, receipt.replicas_after) == (True, 1, 0), receipt.sentence
    assert receipt.switch is not None
    assert "/scale" in receipt.switch
    assert scene.replicas(lab, "a") == 0


def test_its_processes_are_gone_from_the_node(story: Story) -> None:
    assert story.a_processes, "A held no GPU before the sweep, so its end proves nothing"
    alive = [pid for pid in story.a_processes if Path(f"/proc/{pid}").exists()]
    assert not alive


def test_the_memory_is_proven_back_on_the_node(story: Story, lab: Lab) -> None:
    release = story.acted.release(story.a_uid, lab.node)
    assert release.verdict in (ReleaseVerdict.RETURNED, ReleaseVerdict.TAKEN_OVER), release.sentence
    (device,) = release.devices
    assert device.used_before_bytes.known() is not None
    assert (device.used_before_bytes.known() or -1) >= scene.HELD_MIB << 20
    assert device.last_seen_held is not None
    assert device.first_seen_free is not None
    assert device.last_seen_held < device.first_seen_free


def test_the_waiting_session_runs_on_that_device_and_is_named_as_taker(story: Story) -> None:
    assert story.b_device == story.a_device
    summary: EvidenceSummary = story.acted.summary
    takers = {hand_over.pod_uid for hand_over in summary.hand_overs if hand_over.device == story.a_device}
    assert takers == {story.b_pod["metadata"]["uid"]}, summary.hand_overs


def test_the_evidence_is_complete_and_vouched_for(story: Story) -> None:
    for run in (story.first, story.working, story.silent, story.dry, story.acted):
        assert not run.summary.missing, f"{run.name}: {run.summary.missing}"
        assert not run.damaged(), run.name
        assert (run.folder / "report.html").stat().st_size > 1000
    assert story.acted.phase == "Succeeded", scene.phases(story.acted.workflow)


def test_the_home_of_the_stopped_session_is_kept(story: Story) -> None:
    assert (story.home / "notes").read_text(encoding="utf-8") == "kept\n"


@pytest.mark.parametrize("decision", ["d-0123456789abcdef", "d-from-another-run"])
def test_a_made_up_decision_is_refused(story: Story, lab: Lab, decision: str) -> None:
    receipt = run_step(lab, "stopper", story.acted.name, decision)
    assert (receipt.acted, receipt.refusal) == (False, Refusal.UNKNOWN_DECISION), receipt.sentence
    assert scene.replicas(lab, "b") == 1


def test_restore_brings_the_count_back(story: Story, lab: Lab) -> None:
    lab.kubectl("delete", "deployment", "b", f"--namespace={TEAM}")  # else A would wait for the GPU, rightly
    told = scene.cli(lab, "restore", "deployment/a", f"--namespace={TEAM}", "--yes")
    assert scene.replicas(lab, "a") == 1, told
    assert scene.wait_running(lab, "a")["metadata"]["uid"]
    assert lab.kubectl.get("configmap", f"gpu-reclaim-intent-{story.a_uid}", lab.namespace) is None


def test_the_local_runner_comes_to_the_same_phases_verdicts_and_reasons(story: Story, tmp_path: Path) -> None:
    twin = acting_sweep(tmp_path)
    assert outline(story.acted.record) == outline(twin.record)
    for session in ("a", "b"):
        real, local = story.acted.decision(session), twin.decision(session)
        assert (real.verdict, real.reason, real.acts) == (local.verdict, local.reason, local.acts), session
