"""The experiment's outside: fast looks at a node, how drive and watch know of each other, sessions over the API, exec's answer."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from experiments.adapters.execute import exit_code
from experiments.adapters.glances import NodeGlances
from experiments.adapters.partner import DrivesPartner, WatchsPartner
from experiments.adapters.sessions import MAX_LOG_BYTES, KubernetesSessions
from experiments.zombie.manifest import manifest
from experiments.zombie.ports import Executed, Watching
from experiments.zombie.recording import Ending, Kind, WatchedProcess
from experiments.zombie.scenarios import SCENARIOS, ScenarioId
from sim.clock import SimulatedClock
from sim.scenarios.builder import WorldBuilder
from sim.world.store import StateFile
from sim.zombie.log import SimulatedSessions
from steps.adapters.kubernetes.api import Answer
from steps.contracts.errors import SourceUnavailable
from steps.contracts.ports import Rejected, Rejection
from tests.unit.api_double import ApiDouble
from tests.unit.experiment_world import NOON
from tests.unit.fake_nvml import FakeGpu, FakeNvml, listed
from tests.unit.proc_tree import NULL_NODE, ProcTree, proc_tree, stat_line
from tests.unit.test_experiment_conduct import settings

POD = "0a1b2c3d-0000-4000-8000-000000000001"
CONTAINER = "c" * 64
IN_POD = f"0::/kubepods/burstable/pod{POD}/{CONTAINER}\n"
NULL = Path("/dev/null")
RUN, SCENARIO = "run-1", "s2"


@pytest.fixture
def tree(tmp_path: Path) -> ProcTree:
    made = proc_tree(tmp_path)
    (made.root / "uptime").write_text("1000.0 1.0\n")
    return made


def glances(tree: ProcTree, *gpus: FakeGpu, checkpoint: Path | None = None) -> NodeGlances:
    nvml: Any = FakeNvml(*(gpus or (FakeGpu("GPU-a"),)))
    nvml.nvmlInit()
    return NodeGlances(nvml, checkpoint or tree.root / "no-checkpoint", (NULL_NODE,), tree.root)


def seen(tree: ProcTree, *gpus: FakeGpu) -> dict[int, WatchedProcess]:
    return {one.pid: one for one in glances(tree, *gpus).look((POD,)).processes}


def test_every_process_of_a_watched_pod_is_seen_with_its_number_inside(tree: ProcTree) -> None:
    tree.process(700, stat_line(700, "tini"), cgroup=IN_POD, status="Name:\ttini\nNSpid:\t700\t1\n")
    tree.process(701, fds=(NULL,), cgroup=IN_POD, status="Name:\tpython3\nNSpid:\t701\t14\n")
    tree.process(900, cgroup="0::/system.slice/other.service\n")
    found = seen(tree)
    assert {pid: (one.pid_in_container, one.holds, one.container_id) for pid, one in found.items()} == {
        700: (1, False, CONTAINER),
        701: (14, True, CONTAINER),
    }


def test_a_zombie_holds_nothing_and_keeps_its_state(tree: ProcTree) -> None:
    tree.process(701, stat_line(701, state="Z"), fds=(), cgroup=IN_POD)
    (one,) = seen(tree).values()
    assert (one.state, one.holds) == ("Z", False)


def test_descriptors_that_may_not_be_read_are_unknown_and_not_no(tree: ProcTree) -> None:
    folder = tree.process(701, cgroup=IN_POD)
    (folder / "fd" / "0").unlink()
    (folder / "fd").rmdir()
    (folder / "fd").symlink_to(folder / "fd")  # a loop: opening it fails otherwise than by a process that ended
    (one,) = seen(tree).values()
    assert one.holds is None


def test_a_process_that_nvml_lists_is_seen_wherever_it_belongs(tree: ProcTree) -> None:
    tree.process(900, cgroup="0::/system.slice/other.service\n")
    found = seen(tree, FakeGpu("GPU-a", compute=[listed(900, 1 << 30)]))
    assert (found[900].in_nvml, found[900].nvml_bytes, found[900].pod_uid) == (True, 1 << 30, None)


@pytest.mark.parametrize(("pid", "in_nvml"), [(701, None), (900, True)])
def test_a_list_of_nvml_that_cannot_be_read_says_of_nobody_that_nvml_does_not_list_it(
    tree: ProcTree, pid: int, in_nvml: bool | None
) -> None:
    tree.process(701, cgroup=IN_POD)
    tree.process(900, cgroup="0::/system.slice/other.service\n")
    refused = FakeGpu("GPU-b", errors={"nvmlDeviceGetComputeRunningProcesses_v3": 4})
    look = glances(tree, FakeGpu("GPU-a", compute=[listed(900, 1 << 30)]), refused).look((POD,))
    assert {one.pid: one.in_nvml for one in look.processes}[pid] is in_nvml
    assert [gpu.list_problem is None for gpu in look.gpus] == [True, False]


def test_a_young_process_is_asked_again_for_its_cgroup_and_an_old_one_is_not(tree: ProcTree) -> None:
    ticks = 1000 * os.sysconf("SC_CLK_TCK")
    young = tree.process(701, stat_line(701, start=ticks - 10), cgroup="0::/\n")
    old = tree.process(702, stat_line(702, start=10), cgroup="0::/\n")
    looking = glances(tree)
    assert looking.look((POD,)).processes == ()
    for folder in (young, old):
        (folder / "cgroup").write_text(IN_POD)
    assert [one.pid for one in looking.look((POD,)).processes] == [701]


def test_what_is_known_of_a_process_stays_when_a_dying_one_says_nothing(tree: ProcTree) -> None:
    folder = tree.process(701, cgroup=IN_POD)
    looking = glances(tree)
    looking.look((POD,))
    (folder / "cgroup").write_text("4:memory:/\n")
    (folder / "stat").write_text(stat_line(701, state="Z"))
    assert [(one.pid, one.state) for one in looking.look((POD,)).processes] == [(701, "Z")]


def test_a_pid_that_passed_to_another_process_is_asked_afresh(tree: ProcTree) -> None:
    folder = tree.process(701, cgroup=IN_POD)
    looking = glances(tree)
    looking.look((POD,))
    (folder / "stat").write_text(stat_line(701, start=5))
    (folder / "cgroup").write_text("0::/system.slice/other.service\n")
    assert looking.look((POD,)).processes == ()


def test_an_allocation_is_read_again_when_the_kubelet_wrote_and_kept_when_its_file_is_gone(tree: ProcTree, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    entry = {
        "PodUID": POD,
        "ContainerName": "session",
        "ResourceName": "nvidia.com/gpu",
        "DeviceIDs": {"-1": ["GPU-a"]},
        "AllocResp": "",
    }
    looking = glances(tree, checkpoint=checkpoint)
    assert looking.look(()).given == ()
    checkpoint.write_text(json.dumps({"Data": {"PodDeviceEntries": [entry], "RegisteredDevices": {}}, "Checksum": 1}))
    assert looking.look(()).given == ((POD, "session", "GPU-a"),)
    checkpoint.unlink()
    assert looking.look(()).given == ((POD, "session", "GPU-a"),)


def partner_of_watch(tree: ProcTree, tmp_path: Path) -> WatchsPartner:
    return WatchsPartner({"GPU_RECLAIM_READY_FILE": str(tmp_path / "ready")}, RUN, SCENARIO, tree.root)


def command(*words: str) -> bytes:
    return b"".join(word.encode() + b"\0" for word in words)


def test_watch_finds_drive_by_its_own_command_and_takes_no_other_for_it(tree: ProcTree, tmp_path: Path) -> None:
    partner = partner_of_watch(tree, tmp_path)
    flags = (f"--run={RUN}", f"--scenario={SCENARIO}")
    tree.process(10, cmdline=command("gpu-reclaim", "step", "watch", *flags))
    tree.process(11, cmdline=command("/var/run/argo/argoexec", "emissary", "--", "gpu-reclaim", "step", "drive", *flags))
    tree.process(12, cmdline=command("python3", "gpu-reclaim", "step", "drive", f"--run={RUN}", "--scenario=s3"))
    assert not partner.driving()
    drive = tree.process(13, cmdline=command("python3", "gpu-reclaim", "step", "drive", *flags))
    assert partner.driving()
    (drive / "cmdline").write_bytes(b"")
    assert not partner.driving()


def test_watch_says_that_it_is_ready_by_a_file_and_by_nothing_else(tree: ProcTree, tmp_path: Path) -> None:
    partner = partner_of_watch(tree, tmp_path)
    assert partner.watching() is Watching.NOT_YET
    partner.say_ready()
    assert (partner.watching(), (tmp_path / "ready").exists()) == (Watching.READY, True)


def watch_pod(*, ready: bool = False, phase: str = "Running", scenario: str = SCENARIO) -> dict[str, Any]:
    labels = {
        "workflows.argoproj.io/workflow": RUN,
        "gpu-reclaim.dev/step": "watch",
        "gpu-reclaim.dev/scenario": scenario,
    }
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"watch-{scenario}", "namespace": "gpu-reclaim", "uid": scenario, "labels": labels},
        "status": {"phase": phase, "conditions": conditions},
    }


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([], Watching.NOT_YET),
        ([watch_pod()], Watching.NOT_YET),
        ([watch_pod(ready=True)], Watching.READY),
        ([watch_pod(phase="Failed")], Watching.ENDED),
        ([watch_pod(ready=True, scenario="s3")], Watching.NOT_YET),
    ],
    ids=["no pod yet", "starting", "ready", "refused", "another scenario's"],
)
def test_drive_believes_the_condition_of_its_own_watch(pods: list[dict[str, Any]], expected: Watching) -> None:
    assert DrivesPartner(PodList(pods), "gpu-reclaim", RUN, SCENARIO).watching() is expected


class PodList(ApiDouble):
    """Selects by several labels at once, as a server does."""

    def __init__(self, pods: list[dict[str, Any]]) -> None:
        super().__init__()
        self._pods = pods

    def list(self, path: str, *, field_selector: str = "", label_selector: str = "") -> Answer:
        assert path == "/api/v1/namespaces/gpu-reclaim/pods"
        wanted = dict(pair.split("=") for pair in label_selector.split(","))
        return Answer(
            status=200, body={"items": [pod for pod in self._pods if wanted.items() <= pod["metadata"]["labels"].items()]}
        )


class NoExec:
    def run(self, *_: object) -> Executed:
        raise SourceUnavailable("no exec in this test")


@pytest.fixture
def sessions(tmp_path: Path) -> KubernetesSessions:
    built = WorldBuilder(NOON)
    built.namespace("gpu-zombie-test")
    built.node("node-a", "Simulated GPU", gpus=1, memory_gib=80)
    state = tmp_path / "world.json"
    StateFile(state).create(built.world)
    return SimulatedSessions(state, NoExec(), "gpu-zombie-test")


def made(sessions: KubernetesSessions, scenario: ScenarioId = ScenarioId.S2, **changes: Any) -> str:
    body = manifest(SCENARIOS[scenario], settings(**changes), RUN, 1)
    assert sessions.create(body) is None
    return str(body["metadata"]["name"])


def test_a_session_of_another_uid_is_not_ended(sessions: KubernetesSessions) -> None:
    name = made(sessions)
    (pod,) = sessions.pods()

    stranger = msgspec.structs.replace(pod, facts=msgspec.structs.replace(pod.facts, uid="another"))
    rejected = sessions.end(stranger, Ending.DELETE)
    assert isinstance(rejected, Rejected)
    assert rejected.rejection is Rejection.CONFLICT
    assert sessions.pod(name) is not None


@pytest.mark.parametrize("how", [Ending.DELETE, Ending.EVICT])
def test_a_session_is_ended_with_its_own_grace(sessions: KubernetesSessions, how: Ending) -> None:
    name = made(sessions, grace_s=17)
    (pod,) = sessions.pods()
    assert sessions.end(pod, how) is None
    leaving = sessions.pod(name)
    assert leaving is not None
    assert (leaving.facts.deletion_requested_at is not None, leaving.facts.grace_s) == (True, 17)


def test_a_session_that_is_gone_is_a_value(sessions: KubernetesSessions) -> None:
    made(sessions)
    (pod,) = sessions.pods()

    gone = msgspec.structs.replace(pod, facts=msgspec.structs.replace(pod.facts, name="no-such-pod"))
    rejected = sessions.end(gone, Ending.DELETE)
    assert rejected is not None
    assert rejected.rejection is Rejection.GONE


@pytest.mark.parametrize("scenario", list(ScenarioId))
def test_only_the_hooks_scenarios_have_a_hook_and_only_scenario_one_a_command(scenario: ScenarioId) -> None:
    body = manifest(SCENARIOS[scenario], settings(), RUN, 1)
    (container,) = body["spec"]["containers"]
    assert ("lifecycle" in container) is (SCENARIOS[scenario].number in (3, 4))
    assert ("command" in container) is (SCENARIOS[scenario].number == 1)
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_a_session_needs_no_right_on_the_machine() -> None:
    body = manifest(SCENARIOS[ScenarioId.S4], settings(), RUN, 1)
    (container,) = body["spec"]["containers"]
    assert body["spec"]["securityContext"]["runAsNonRoot"] is True
    assert body["spec"]["automountServiceAccountToken"] is False
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def test_a_deployments_pods_carry_the_sessions_labels() -> None:
    body = manifest(SCENARIOS[ScenarioId.S2], settings(kind=Kind.DEPLOYMENT), RUN, 2)
    assert body["spec"]["template"]["metadata"]["labels"]["gpu-reclaim.dev/session"] == "s2-2"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ('{"metadata":{},"status":"Success"}', 0),
        ('{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"137"}]}}', 137),
        ('{"status":"Failure","reason":"InternalError","details":{}}', None),
        ("", None),
        ("not JSON", None),
    ],
)
def test_the_exit_code_of_an_exec_is_known_or_unknown(status: str, code: int | None) -> None:
    assert exit_code(status) == code


class Answers(ApiDouble):
    """Answers a log with this, or not at all."""

    def __init__(self, status: int = 200, text: str = "", *, lost: bool = False) -> None:
        super().__init__()
        self._answer, self._lost, self.asked = (status, text), lost, list[str]()

    def text(self, path: str, *, limit_bytes: int) -> tuple[int, str]:
        self.asked.append(path)
        if self._lost:
            raise SourceUnavailable("the connection broke")
        return self._answer[0], self._answer[1][:limit_bytes]


def heard(api: Answers) -> str | None:
    followed = KubernetesSessions(ApiDouble(), NoExec(), "gpu-zombie-test", patient=api).follow_log("a-pod")
    whole = followed.whole(5.0)
    return None if whole is None else whole.known()


def test_a_log_is_read_along_to_its_end() -> None:
    api = Answers(text="first\nlast\n")
    assert heard(api) == "first\nlast\n"
    assert api.asked == ["/api/v1/namespaces/gpu-zombie-test/pods/a-pod/log?container=session&follow=true"]


@pytest.mark.parametrize("api", [Answers(lost=True), Answers(404, "no such pod"), Answers(text="x" * MAX_LOG_BYTES)])
def test_a_log_that_broke_off_or_was_cut_is_not_whole(api: Answers) -> None:
    assert heard(api) is None


def test_a_followed_log_of_the_simulator_ends_with_the_container(sessions: KubernetesSessions, tmp_path: Path) -> None:
    name = made(sessions)
    clock = SimulatedClock(tmp_path / "world.json")
    clock.sleep(5)
    (pod,) = sessions.pods()
    followed = sessions.follow_log(name)
    assert followed.whole(0.1) is None, "its container runs"
    sessions.end(pod, Ending.DELETE)
    clock.sleep(40)
    assert followed.whole(5.0) is not None
