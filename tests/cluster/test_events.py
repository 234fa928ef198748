"""A deleted pod starts one release check with the right answer; what is no deletion, or no GPU, starts none or harms nobody.

One story for all tests of this file, on real Argo Events with JetStream: each test asks one question about what happened.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from steps.contracts.document import decode
from steps.contracts.release_check import Answer, ReleaseCheck
from tests.cluster import events_scene as events
from tests.cluster import scene
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab
from tests.cluster.lab.processes import identified
from tests.cluster.scene import TEAM
from tests.cluster.world import parent_of, processes_holding

pytestmark = pytest.mark.cluster

AT_ONCE = 20
FORCED_GRACE_S = 30
LOOKED_S = 3
"""After so long a probe has looked."""


@dataclass(frozen=True, slots=True)
class Story:
    """What was started for whom: workflows by the pod's uid. uids: of the pods by name. pods_of_check: of one check as it ran.
    outlived: processes that held the forced pod's memory when its object was gone."""

    uids: dict[str, str]
    checks: dict[str, list[Json]]
    crowd: tuple[str, ...]
    label_taken_off: dict[str, ReleaseCheck]
    pods_of_check: list[Json]
    outlived: tuple[int, ...]

    def answer(self, name: str) -> ReleaseCheck:
        (workflow,) = self.checks[self.uids[name]]
        return events.answer(workflow)


@pytest.fixture(scope="module")
def with_events(installed: Lab) -> Lab:
    events.place(installed)
    return installed


@pytest.fixture(scope="module")
def story(with_events: Lab) -> Story:
    lab = with_events
    with events.gpus(lab, events.MOST_GPUS):
        names = [f"crowd-{number}" for number in range(AT_ONCE)]
        ended = events.finished_pods(lab, *names[events.MOST_GPUS :])
        events.wait_ready(lab, *events.SHIPPED)
        scene.start_session(lab, "scaled")
        lab.kubectl.apply(events.stateful_set("born-again"))
        single = [
            events.session_pod("forced", terminationGracePeriodSeconds=FORCED_GRACE_S),
            events.session_pod("labelled", labels={events.LABEL: "yes"}),
            events.session_pod("plain", gpus=0),
            events.session_pod("in-init", gpus=0, initContainers=[events.gpu_container("early", "--mib=64", "--seconds=1")]),
        ]
        lab.kubectl.apply(events.session_pod("nowhere", gpus=99))
        started = [*events.start_pods(lab, single), *ended]
        started += [scene.wait_running(lab, "scaled"), events.wait_pod(lab, "born-again-0"), events.pod(lab, "nowhere")]
        uids = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in started}
        uids["scaled"] = uids.pop(next(name for name in uids if name.startswith("scaled-")))

        with _outliving(lab, events.pod(lab, "forced")) as outlived:
            label_off = _label_off_and_on(lab, uids["labelled"])
        lab.kubectl("scale", "deployment", "scaled", f"--namespace={TEAM}", "--replicas=0")
        pods_of_check = _pods_of_check(lab, uids["scaled"])
        events.wait_checks(lab, [uids["scaled"]])
        events.delete_pods(lab, "plain", "nowhere", "born-again-0", "in-init", "labelled")
        events.wait_checks(lab, [uids[name] for name in ("forced", "born-again-0", "in-init")])
        events.wait_checks(lab, [uids["labelled"]], each=2)
        lab.kubectl("delete", "deployment/scaled", "statefulset/born-again", f"--namespace={TEAM}")
        held = events.start_pods(lab, [events.session_pod(name) for name in names[: events.MOST_GPUS]])
        uids |= {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in held}
        events.delete_pods(lab, *names)
        crowd = tuple(uids[name] for name in names)
        events.wait_checks(lab, crowd, within_s=240)
        events.settle(5)
        checks = {uid: events.checks_of(lab, uid) for uid in uids.values()}
    return Story(uids, checks, crowd, label_off, pods_of_check, outlived)


@contextmanager
def _outliving(lab: Lab, pod: Json) -> Iterator[tuple[int, ...]]:
    """Delete a pod by force whose processes live on until its check has seen them. Yields those that hold memory once the object is
    gone.

    What keeps them is a runtime that hangs: by itself the kubelet ends them 2 to 3 s after a forced deletion, whatever their grace.
    """
    (holder,) = processes_holding(pod)
    shim = identified("containerd-shim", parent_of(holder))
    assert shim is not None
    shim.signal(signal.SIGSTOP)
    try:
        events.delete_pods(lab, pod["metadata"]["name"], force=True)
        events.wait_gone(lab, [pod["metadata"]["name"]], within_s=5)
        yield processes_holding(pod)
        lab.kubectl.wait("the check of the forced deletion runs", lambda: _probes(lab, pod["metadata"]["uid"]), within_s=60)
        events.settle(LOOKED_S)
    finally:
        shim.signal(signal.SIGCONT)


def _probes(lab: Lab, uid: str) -> bool:
    """Whether the step runs in a pod of a check."""
    names = [one["metadata"]["name"] for one in events.checks_of(lab, uid)]
    selector = f"workflows.argoproj.io/workflow in ({','.join(names)})"
    pods = lab.kubectl.list("pod", lab.namespace, selector=selector) if names else ()
    containers = [one for pod in pods for one in pod["status"].get("containerStatuses", ())]
    return any(one["name"] == "main" and "running" in one["state"] for one in containers)


def _label_off_and_on(lab: Lab, uid: str) -> dict[str, ReleaseCheck]:
    """Take the label off a living pod and put it back. Returns the check that this started, by its Workflow's name."""
    lab.kubectl("label", "pod", "labelled", f"--namespace={TEAM}", f"{events.LABEL}-")
    (workflow,) = events.wait_checks(lab, [uid])[uid]
    lab.kubectl("label", "pod", "labelled", f"--namespace={TEAM}", f"{events.LABEL}=yes")
    events.settle(1)
    return {workflow["metadata"]["name"]: events.answer(workflow)}


def _pods_of_check(lab: Lab, uid: str) -> list[Json]:
    """The pods of a check while it runs: they go when it ends."""
    (workflow,) = events.wait_checks(lab, [uid], ended=False)[uid]
    selector = f"workflows.argoproj.io/workflow={workflow['metadata']['name']}"
    lab.kubectl.wait("the check has a pod", lambda: bool(lab.kubectl.list("pod", lab.namespace, selector=selector)), within_s=30)
    return list(lab.kubectl.list("pod", lab.namespace, selector=selector))


def test_a_session_that_was_scaled_down_is_checked_and_its_memory_is_back(story: Story) -> None:
    (workflow,) = story.checks[story.uids["scaled"]]
    assert workflow["status"]["phase"] == "Succeeded", scene.phases(workflow)
    assert story.answer("scaled").answer is Answer.RETURNED, story.answer("scaled").sentence


def test_the_check_knows_the_pod_from_the_event(story: Story, lab: Lab) -> None:
    pod = story.answer("forced").pod
    assert (pod.namespace, pod.name, pod.node, pod.uid) == (TEAM, "forced", lab.node, story.uids["forced"])


def test_the_device_is_the_pods_own(story: Story) -> None:
    """No device was given out since, so the kubelet still has the dead pod's, and one is looked at, not all of the node's."""
    release = story.answer("scaled").release
    assert release is not None
    assert len(release.devices) == 1, story.answer("scaled").sentence


def test_processes_that_outlive_a_forced_deletion_are_watched_until_they_end(story: Story) -> None:
    """The object is gone at once; the event says that it was being deleted, so what lives on is no sign of life."""
    assert story.outlived
    (workflow,) = story.checks[story.uids["forced"]]
    check = events.answer(workflow)
    assert check.answer is Answer.RETURNED, check.sentence
    assert check.release is not None
    (device,) = check.release.devices
    assert device.last_seen_held is not None, check.sentence
    assert device.last_seen_held > datetime.fromisoformat(workflow["metadata"]["creationTimestamp"]), "held after the deletion"


def test_a_pod_born_again_under_its_name_is_not_its_own_leak(story: Story) -> None:
    check = story.answer("born-again-0")
    assert check.answer in (Answer.RETURNED, Answer.TAKEN_OVER), check.sentence


def test_a_gpu_asked_for_by_an_init_container_counts(story: Story) -> None:
    assert story.answer("in-init").answer is Answer.RETURNED


def test_a_pod_without_a_gpu_and_one_that_never_ran_start_nothing(story: Story) -> None:
    assert [story.checks[story.uids[name]] for name in ("plain", "nowhere")] == [[], []]


def test_a_label_taken_off_a_living_pod_is_seen_for_what_it_is(story: Story) -> None:
    (check,) = story.label_taken_off.values()
    assert check.answer is Answer.STILL_LIVES, check.sentence


def test_and_its_later_deletion_is_verified_all_the_same(story: Story) -> None:
    later = [one for one in story.checks[story.uids["labelled"]] if one["metadata"]["name"] not in story.label_taken_off]
    assert [events.answer(one).answer for one in later] == [Answer.RETURNED]


def test_pods_deleted_at_once_get_as_many_answers_and_none_twice(story: Story) -> None:
    counts = {uid: len(story.checks[uid]) for uid in story.crowd}
    assert counts == dict.fromkeys(story.crowd, 1)
    checks = [events.answer(story.checks[uid][0]) for uid in story.crowd]
    assert {check.answer for check in checks} <= {Answer.RETURNED, Answer.TAKEN_OVER}, [check.sentence for check in checks]


def test_the_answer_lands_in_the_evidence(story: Story, lab: Lab) -> None:
    (workflow,) = story.checks[story.uids["scaled"]]
    path = lab.evidence / workflow["metadata"]["name"] / "release-check.json"
    kept = decode(path.read_bytes(), ReleaseCheck, str(path))
    assert kept == story.answer("scaled")
    assert (path.parent / "report.html").stat().st_size > 1000
    assert not scene.Run(path.parent.name, workflow, path.parent).damaged()


def test_argos_own_containers_alone_hold_a_token_and_it_is_the_executors(story: Story) -> None:
    """The node pod's account mounts none; the executor's is mounted into Argo's containers by Secret."""
    probes = [pod for pod in story.pods_of_check if pod["spec"]["serviceAccountName"] == "probe"]
    assert probes
    for pod in probes:
        secrets = {one["name"]: one["secret"]["secretName"] for one in pod["spec"]["volumes"] if "secret" in one}
        assert set(secrets.values()) == {"executor.service-account-token"}
        with_token = [
            container["name"]
            for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", []))
            if {mount["name"] for mount in container.get("volumeMounts", [])} & set(secrets)
        ]
        assert "main" not in with_token
        assert "wait" in with_token
        assert not [one for one in pod["spec"]["volumes"] if "projected" in one]


@pytest.mark.parametrize(
    ("asked", "may"),
    [
        (("eventsource", "list", "pods", None), True),
        (("eventsource", "watch", "pods", None), True),
        (("eventsource", "get", "secrets", "gpu-reclaim"), False),
        (("eventsource", "create", "workflows.argoproj.io", "gpu-reclaim"), False),
        (("eventsource", "delete", "pods", TEAM), False),
        (("trigger", "create", "workflows.argoproj.io", "gpu-reclaim"), True),
        (("trigger", "create", "events", "gpu-reclaim"), True),
        (("trigger", "create", "workflows.argoproj.io", TEAM), False),
        (("trigger", "list", "workflows.argoproj.io", "gpu-reclaim"), False),
        (("trigger", "create", "pods", "gpu-reclaim"), False),
        (("trigger", "get", "secrets", "gpu-reclaim"), False),
        (("trigger", "list", "pods", None), False),
    ],
)
def test_source_and_sensor_may_do_their_work_and_nothing_more(
    with_events: Lab, asked: tuple[str, str, str, str | None], may: bool
) -> None:
    account, verb, resource, namespace = asked
    assert with_events.kubectl.may(f"gpu-reclaim:{account}", verb, resource, namespace) is may


@pytest.fixture(scope="module")
def two_ticks(with_events: Lab) -> list[scene.Run]:
    """An idle session, a sweep to know it by, then two ticks at the same moments, whose sweeps act: an interval after the clock
    began, so it has been idle for long enough."""
    lab = with_events
    scene.set_policy(lab)
    scene.start_session(lab, "idle")
    scene.wait_running(lab, "idle")
    scene.sweep(lab, dry_run=True)
    known = {one["metadata"]["name"] for one in lab.kubectl.list("workflow", lab.namespace)}

    def sweeps() -> list[str]:
        names = [one["metadata"]["name"] for one in lab.kubectl.list("workflow", lab.namespace)]
        return [name for name in names if name.startswith("sweep-") and name not in known]

    ticking = ("sweep", "second")
    events.clock(lab, *ticking, interval=f"{scene.IDLE_AFTER_S + 2}s")
    lab.kubectl.wait("two ticks start two sweeps", lambda: len(sweeps()) >= len(ticking), within_s=60)
    events.stop_clock(lab, *ticking)
    runs = [scene.Run(name, scene.finish(lab, name), lab.evidence / name) for name in sweeps()]
    assert Path(runs[0].folder).is_dir()
    return runs


def test_two_ticks_at_once_start_two_sweeps_and_one_acts(two_ticks: list[scene.Run], lab: Lab) -> None:
    assert len(two_ticks) >= 2
    acted = sum(run.summary.stops_acted for run in two_ticks)
    assert acted == 1, [(run.name, run.phase, run.summary) for run in two_ticks]
    assert scene.replicas(lab, "idle") == 0
