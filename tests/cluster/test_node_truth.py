"""Who holds a GPU, in every shape there is, on the real runtime: told by the probe with the rights that the sweep gives it.

One setting for all tests of this file: a zoo of processes in a few pods, looked at for a minute. The GPUs are simulated; the
processes, cgroups, containers, namespaces and the kubelet's records are real.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from subprocess import CompletedProcess
from typing import Any

import pytest

from steps.contracts.document import decode
from steps.contracts.errors import Exit
from steps.contracts.node_facts import NodeFacts, VisibilityLevel
from steps.contracts.traced import Attribution, GpuClass, TracedHolder, TracedNode
from steps.node_view.observation import Observation, Outcome
from steps.trace.node import trace_node
from tests.cluster import node_truth as setting
from tests.cluster import scene
from tests.cluster.lab.lab import Lab
from tests.cluster.node_truth import EMPTY_GPU, IN_FLIGHT_GPU, MAPPING_GPU, NAMESPACE, ZOO, ZOO_GPU
from tests.cluster.shared_pids import UnderPid1, orphan_in

pytestmark = pytest.mark.cluster

CREATURES = (
    "plain",
    "fork",
    "setsid",
    "orphan",
    "mapping",
    "leader",
    "zombie",
    "keeper",
    "hostpid",
    "privileged",
    "shared",
    "sandboxed",
    "doomed",
)


@dataclass(frozen=True, slots=True)
class Truth:
    """pids: of the creatures, on the node. node: what collect and trace say of it; uids: of the pods by name."""

    pids: dict[str, int]
    uids: dict[str, str]
    facts: NodeFacts
    node: TracedNode
    text: "CompletedProcess[str]"
    on_node: "CompletedProcess[str]"
    inside: "CompletedProcess[str]"
    forced: TracedNode
    forced_alone: TracedNode
    shared: UnderPid1

    def holder(self, name: str) -> TracedHolder:
        return setting.traced_holder(self.node, self.pids[name])


@pytest.fixture(scope="module")
def truth(installed: Lab) -> Truth:
    lab = installed
    scene.make_room(lab)
    lab.kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    lab.kubectl.create(setting.pod("empty", ["sleep", "600"], resources=limits))
    setting.wait_ready(lab, "empty", says=False)
    with setting.four_gpus(lab) as uuids:
        lab.kubectl.create(setting.probe(lab))  # now: its /dev is made with the nodes that there are
        zoo = uuids[ZOO_GPU]
        numbers = [str(ZOO_GPU), zoo, str(MAPPING_GPU), str(IN_FLIGHT_GPU), uuids[IN_FLIGHT_GPU]]
        lab.kubectl.create(setting.pod("zoo", ["python3", "-c", ZOO, "keeper", *numbers], visible=",".join(uuids[ZOO_GPU:])))
        lab.kubectl.create(setting.holder("hostpid", zoo, spec={"hostPID": True}))
        lab.kubectl.create(setting.holder("privileged", zoo, securityContext={"privileged": True, "runAsUser": 0}))
        lab.kubectl.create(setting.holder("shared", zoo, spec={"shareProcessNamespace": True}))
        lab.kubectl.create(setting.holder("sandboxed", zoo))
        lab.kubectl.create(setting.holder("doomed", zoo))
        pods = {name: setting.wait_ready(lab, name) for name in ("zoo", "hostpid", "privileged", "shared", "sandboxed", "doomed")}
        lab.kubectl("wait", "pod/probe", f"--namespace={lab.namespace}", "--for=condition=Ready", "--timeout=40s", timeout_s=45)
        uids = {name: str(one["metadata"]["uid"]) for name, one in pods.items()}
        with setting.host_processes(zoo, uids["zoo"]) as host:
            pids = {name: setting.pid_of(f"zoo-{name}") for name in CREATURES}
            pids |= {"renamed": setting.pid_of("nvidia-persiste"), "host": host.plain, "pretender": host.pretender}
            setting.move_into_sandbox(pids["sandboxed"], uids["sandboxed"])
            return _looked_at(lab, pids, uids, orphan_in(lab, NAMESPACE, "shared", pids["shared"]))


def _looked_at(lab: Lab, pids: dict[str, int], uids: dict[str, str], shared: UnderPid1) -> Truth:
    facts = setting.collected(lab)
    node = setting.joined(lab, facts)
    words = ("exec", "probe", f"--namespace={lab.namespace}", "--", "gpu-reclaim", "trace")
    text = lab.kubectl.ran(*words)
    inside = lab.kubectl.ran("exec", "zoo", f"--namespace={NAMESPACE}", "--", "gpu-reclaim", "observe", "-o", "json")
    on_node = setting.on_the_node(lab, "trace", "-o", "json")
    with setting.kubelet_stopped(lab):
        lab.kubectl("delete", "pod", "doomed", f"--namespace={NAMESPACE}", "--force", "--grace-period=0", "--wait=false")
        lab.kubectl.wait("the API has forgotten doomed", lambda: lab.kubectl.get("pod", "doomed", NAMESPACE) is None, within_s=10)
        told = setting.in_probe_without_kubelet(lab, "gpu-reclaim trace -o json 2>/dev/null; true")
        after = setting.trace_facts(told)
        forced, alone = setting.joined(lab, after), trace_node(after, None, now=datetime.now(UTC))
    return Truth(pids, uids, facts, node, text, on_node, inside, forced, alone, shared)


def test_the_probe_sees_the_whole_node(truth: Truth) -> None:
    """PID 1 of this machine may be out of reach even for root (facts 4.9); nothing else may be."""
    seen = truth.facts.visibility
    assert [reason for reason in seen.reasons if "1 process could not be read: PID 1 (" not in reason] == []
    assert seen.unreadable_processes <= 1
    assert {one.index for one in truth.node.gpus} == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("name", "gpu_class", "listed"),
    [
        ("plain", GpuClass.IDLE_HOLDER, True),
        ("renamed", GpuClass.IDLE_HOLDER, True),
        ("fork", GpuClass.HIDDEN_HOLDER, False),
        ("setsid", GpuClass.HIDDEN_HOLDER, False),
        ("orphan", GpuClass.ORPHAN_LIVE, True),
        ("mapping", GpuClass.HIDDEN_HOLDER, False),
        ("leader", GpuClass.ZOMBIE_THREADED, True),
    ],
)
def test_every_shape_in_the_container_is_found_and_is_the_pods(truth: Truth, name: str, gpu_class: GpuClass, listed: bool) -> None:
    holder = truth.holder(name)
    assert (holder.gpu_class, holder.known_to_nvml) == (gpu_class, listed), holder.reason
    assert (holder.attribution, holder.pod_uid, holder.pod, holder.container) == (
        Attribution.CONTAINER,
        truth.uids["zoo"],
        "zoo",
        "main",
    ), holder.attribution_reason


def test_a_name_of_the_allow_list_excuses_nobody(truth: Truth) -> None:
    holder = truth.holder("renamed")
    assert (holder.name, holder.gpu_class) == ("nvidia-persiste", GpuClass.IDLE_HOLDER)


def test_a_dead_leader_is_told_by_its_live_thread(truth: Truth) -> None:
    holder = truth.holder("leader")
    assert holder.state == "Z"
    assert "live threads hold the device" in holder.reason


def test_a_plain_zombie_is_no_holder_and_is_told_beside_it(truth: Truth) -> None:
    gpu = setting.gpu(truth.node, ZOO_GPU)
    assert truth.pids["zombie"] not in {holder.pid for holder in gpu.holders}
    (said,) = [finding for finding in gpu.findings if finding.gpu_class is GpuClass.ZOMBIE_BENIGN]
    assert str(truth.pids["zombie"]) in said.detail


def test_a_mapping_alone_is_on_the_gpu_whose_number_it_has(truth: Truth) -> None:
    gpu = setting.gpu(truth.node, MAPPING_GPU)
    assert "by mapping" in truth.holder("mapping").reason
    assert truth.pids["mapping"] in {holder.pid for holder in gpu.holders}


@pytest.mark.parametrize("name", ["hostpid", "privileged"])
def test_pods_that_share_more_with_the_node_are_still_theirs(truth: Truth, name: str) -> None:
    holder = truth.holder(name)
    assert (holder.attribution, holder.pod, holder.gpu_class) == (Attribution.CONTAINER, name, GpuClass.IDLE_HOLDER)


def test_a_process_of_no_pod_is_the_hosts_and_never_gone(truth: Truth) -> None:
    holder = truth.holder("host")
    assert (holder.attribution, holder.pod_uid, holder.gpu_class) == (Attribution.HOST, None, GpuClass.IDLE_HOLDER)


def test_a_cgroup_that_names_a_container_the_pod_never_had_blames_nobody(truth: Truth) -> None:
    holder = truth.holder("pretender")
    assert (holder.attribution, holder.pod_uid, holder.pod) == (Attribution.CONFLICT, None, None), holder.attribution_reason


def test_memory_behind_a_descriptor_in_flight_is_a_ghost_that_no_process_explains(truth: Truth) -> None:
    """In nobody's table: fuser, lsof and this reader are blind to it, and only the memory tells (facts 4.2)."""
    gpu = setting.gpu(truth.node, IN_FLIGHT_GPU)
    if truth.facts.visibility.level is VisibilityLevel.FULL:
        assert gpu.headline is GpuClass.GHOST_CONTEXT, gpu.reason
    else:
        assert gpu.headline is GpuClass.UNKNOWN, gpu.reason
        assert "a holder may be hidden" in gpu.reason
    assert not gpu.holders
    assert (gpu.unexplained_bytes.known() or -1) >= 2 << 30


def test_a_device_given_to_a_pod_without_a_process_is_idle_all_the_same(truth: Truth) -> None:
    gpu = setting.gpu(truth.node, EMPTY_GPU)
    assert not gpu.holders
    assert [(one.pod, one.container) for one in gpu.allocated_to.known() or ()] == [("empty", "main")]
    if truth.facts.visibility.level is VisibilityLevel.FULL:
        assert [finding.gpu_class for finding in gpu.findings] == [GpuClass.IDLE_HOLDER]


def test_where_the_pods_containers_share_a_pid_namespace_pause_is_pid_1_and_reaps_at_once(truth: Truth) -> None:
    """The last row of facts 4.7 that wants a real kubelet. The holder is below pause as well, and still the pod's."""
    assert (truth.shared.name, truth.shared.told) == ("pause", True), truth.shared.words
    assert (truth.shared.adopted, truth.shared.zombies) == (True, [])
    holder = truth.holder("shared")
    assert (holder.attribution, holder.pod, holder.container) == (Attribution.CONTAINER, "shared", "main"), (
        holder.attribution_reason
    )


def test_a_process_whose_cgroup_carries_the_sandboxs_id_is_the_pods_by_the_runtimes_shim(truth: Truth) -> None:
    """As gVisor's and Kata's do (facts 1.8). The probe sees no bundles; containerd's own shim tells it."""
    holder = truth.holder("sandboxed")
    assert (holder.attribution, holder.pod, holder.container) == (Attribution.POD, "sandboxed", None), holder.attribution_reason
    assert "sandbox" in holder.attribution_reason
    assert holder.gpu_class is GpuClass.IDLE_HOLDER, holder.reason


def test_the_process_of_a_force_deleted_pod_is_alive_without_its_pod_and_keeps_its_name(truth: Truth) -> None:
    holder = setting.traced_holder(truth.forced, truth.pids["doomed"])
    assert (holder.attribution, holder.gpu_class) == (Attribution.POD_GONE, GpuClass.POD_GONE_LIVE), holder.reason
    assert (holder.pod_uid, holder.pod, holder.namespace) == (truth.uids["doomed"], "doomed", NAMESPACE)


def test_without_the_api_nobody_calls_that_pod_gone(truth: Truth) -> None:
    holder = setting.traced_holder(truth.forced_alone, truth.pids["doomed"])
    assert (holder.attribution, holder.gpu_class) == (Attribution.CONTAINER, GpuClass.UNKNOWN)
    assert "still exists is not known" in holder.reason


def test_trace_in_the_probe_prints_the_table_marks_the_hidden_and_warns_of_the_ghost(truth: Truth) -> None:
    assert truth.text.returncode == Exit.FOUND_PROBLEMS, truth.text.stderr
    lines = truth.text.stdout.splitlines()
    assert lines[0].split() == ["PID", "STATE", "GPU_MEM", "NSMI", "QOS", "POD", "NAMESPACE", "CONTAINER"]
    rows = {words[0]: words for line in lines[1:] if (words := line.split()) and words[0].isdecimal()}
    fork, plain = rows[str(truth.pids["fork"])], rows[str(truth.pids["plain"])]
    assert (fork[2], fork[3], fork[5], fork[6]) == ("unknown", "no", "zoo", NAMESPACE)
    assert (plain[2:4], plain[4], plain[6]) == (["512", "MiB"], "yes", "zoo")
    assert any(line.startswith(f"warning: GPU {IN_FLIGHT_GPU}: ") for line in lines)
    assert any(line.split()[:2] == ["-", "empty"] and line.split()[5:7] == ["empty", NAMESPACE] for line in lines)


def test_trace_on_the_node_names_containers_by_the_kubelets_log_links(truth: Truth) -> None:
    picture: dict[str, Any] = json.loads(truth.on_node.stdout)
    assert truth.on_node.returncode == Exit.FOUND_PROBLEMS, truth.on_node.stderr
    assert "kubelet's folders" in picture["names_from"]
    by_pid = {holder["pid"]: holder for gpu in picture["traced"]["gpus"] for holder in gpu["holders"]}
    zoo = by_pid[truth.pids["fork"]]
    assert (zoo["attribution"], zoo["pod"], zoo["namespace"], zoo["container"]) == ("container", "zoo", NAMESPACE, "main")
    assert by_pid[truth.pids["pretender"]]["attribution"] == "conflict"
    assert by_pid[truth.pids["host"]]["attribution"] == "host"


def test_observe_inside_the_container_sees_its_own_and_says_what_it_cannot_see(truth: Truth) -> None:
    observation = decode(truth.inside.stdout, Observation, "what observe printed")
    assert truth.inside.returncode == Exit.FOUND_PROBLEMS, truth.inside.stderr
    assert "container" in observation.place
    outcomes = {check.number: check.outcome for check in observation.checks}
    assert (outcomes[3], outcomes[6], outcomes[7]) == (Outcome.PROBLEM, Outcome.NOT_SEEN, Outcome.NOT_SEEN)
    named = {suspect.name: suspect for suspect in observation.suspects}
    assert {"zoo-plain", "zoo-fork", "zoo-setsid", "zoo-orphan", "zoo-mapping", "zoo-leader", "zoo-zombie"} <= set(named)
    assert not {"zoo-hostpid", "zoo-privileged", "zoo-host"} & set(named)
    assert named["zoo-fork"].in_nvml.known() is None
    (pid1,) = [check for check in observation.checks if check.number == 1]
    assert any("is no init" in line for line in pid1.lines), pid1.lines
