"""The setting of test_node_truth: four simulated GPUs, the zoo, and looks at it by the probe as the sweep deploys it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from sim.node.state_file import DEFAULT_FOLDER, read_state
from steps.contracts.document import decode
from steps.contracts.node_facts import NodeFacts
from steps.contracts.parcel import unpack
from steps.contracts.traced import TracedGpu, TracedHolder, TracedNode
from steps.survey.step import Pods
from steps.trace.node import trace_node
from tests.cluster.lab.commands import output_of
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab
from tests.cluster.lab.node import home, socket_of
from tests.cluster.lab.places import CHECKOUT
from tests.cluster.scene import NODE_TRUTH, STEPS_IMAGE

NAMESPACE: Final = NODE_TRUTH
ZOO: Final = (Path(__file__).parent / "zoo.py").read_text(encoding="utf-8")
LOOKS: Final = 4
INTERVAL_S: Final = 20.2
"""Four looks over a minute: what a ghost needs."""
EMPTY_GPU, ZOO_GPU, MAPPING_GPU, IN_FLIGHT_GPU = range(4)
PODS_BY_API: Final = """
import sys, msgspec
from pathlib import Path
from steps.cli import outside
from steps.contracts.node_facts import NodeFacts
from steps.survey.step import pods_of
real, facts = outside(), msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=NodeFacts)
sys.stdout.buffer.write(msgspec.json.encode(pods_of((facts.node,), (facts,), real.cluster(), real.clock)))
"""
ON_THE_NODE: Final = """
set -e
mkdir -p {dev} && mount -t tmpfs -o dev none {dev}
for name in null zero full random urandom tty; do cp -a /dev/$name {dev}/; done
cp -a {nodes}/nvidia* {dev}/
mount --bind {dev} /dev
exec "$@"
"""
"""A /dev with the simulated nodes, for one command in a mount namespace of its own: the machine's own /dev stays as it is."""


@contextmanager
def four_gpus(lab: Lab) -> Iterator[tuple[str, ...]]:
    """Their UUIDs. The third has the number of the kernel's zero, which alone of the stand-ins can be mapped."""
    _install(lab, 4)
    node = DEFAULT_FOLDER / "dev" / f"nvidia{MAPPING_GPU}"
    node.unlink()
    os.mknod(node, 0o666 | 0o020000, os.makedev(1, 5))
    node.chmod(0o666)
    try:
        yield tuple(gpu.uuid for gpu in read_state(DEFAULT_FOLDER).gpus)
    finally:
        _install(lab, 1)


def _install(lab: Lab, gpus: int) -> None:
    library = lab.where.run / "libnvidia-ml.so.1"
    order = [f"--folder={DEFAULT_FOLDER}", "install", f"--gpus={gpus}", f"--library={library}"]
    output_of([sys.executable, "-m", "sim.node.gpusim", *order], timeout_s=30, cwd=CHECKOUT)
    lab.kubectl.wait(f"the node offers {gpus} GPUs", lambda: lab.gpus() == gpus, within_s=30)


def pod(name: str, argv: list[str], *, visible: str = "", spec: Mapping[str, Any] = {}, **container: Any) -> Json:
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": visible}] if visible else []
    main = {"name": "main", "image": STEPS_IMAGE, "imagePullPolicy": "IfNotPresent", "command": argv, "env": env, **container}
    runtime = {"runtimeClassName": "nvidia"} if visible else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 2, **runtime, **spec, "containers": [main]},
    }


def holder(name: str, uuid: str, *, spec: Mapping[str, Any] = {}, **container: Any) -> Json:
    """A pod with one process that holds the zoo's GPU without having asked the scheduler for it."""
    argv = ["python3", "-c", ZOO, "hold", f"zoo-{name}"[:15], str(ZOO_GPU), uuid, "/dev"]
    return pod(name, argv, visible=uuid, spec=spec, **container)


def probe(lab: Lab) -> Json:
    """The pod that the sweep's template `collect` makes, as rendered, but for its command: it waits to be told."""
    manifest = yaml.safe_load((CHECKOUT / "workflows" / "manifests" / "sweep.yaml").read_text(encoding="utf-8"))
    template = next(one for one in manifest["spec"]["templates"] if one["name"] == "collect")
    container = {**template["container"], "name": "main", "command": ["sleep", "600"], "args": []}
    spec = {
        **json.loads(template["podSpecPatch"]),
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "serviceAccountName": template["serviceAccountName"],
        "securityContext": template["securityContext"],
        "tolerations": template["tolerations"],
        "volumes": template["volumes"],
        "containers": [container],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": lab.namespace}, "spec": spec}


def wait_ready(lab: Lab, name: str, *, says: bool = True) -> Json:
    """The pod, running and with its first word said."""

    def ready() -> bool:
        found = lab.kubectl.get("pod", name, NAMESPACE)
        if found is not None and found["status"].get("phase") == "Failed":
            raise LabError(f"pod {name} failed: {lab.kubectl.logs(name, NAMESPACE)}")
        running = found is not None and found["status"].get("phase") == "Running"
        return running and (not says or "ready" in lab.kubectl.logs(name, NAMESPACE))

    lab.kubectl.wait(f"pod {name} is ready", ready, within_s=60)
    found = lab.kubectl.get("pod", name, NAMESPACE)
    if found is None:
        raise LabError(f"pod {name} was ready and is gone")
    return found


def pid_of(comm: str) -> int:
    """The PID on the node of the one process of that name."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                named = (entry / "comm").read_text(encoding="utf-8", errors="replace").strip()
            except OSError:
                continue
            found += [int(entry.name)] if named == comm else []
    if len(found) != 1:
        raise LabError(f"{len(found)} processes are called {comm}, not one: {found}")
    return found[0]


@dataclass(frozen=True, slots=True)
class HostProcesses:
    """A process of no pod, and one that pretends to be a pod's: its cgroup names a container that the pod never had."""

    plain: int
    pretender: int


@contextmanager
def host_processes(uuid: str, victim_uid: str) -> Iterator[HostProcesses]:
    dev = str(DEFAULT_FOLDER / "dev")
    argv = [[sys.executable, "-c", ZOO, "hold", comm, str(ZOO_GPU), uuid, dev] for comm in ("zoo-host", "zoo-pretender")]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for words in argv]
    spoofed = _hierarchy_of_pods(victim_uid) / ("f" * 64)
    try:
        for one in running:
            if one.stdout is None or one.stdout.readline() != "ready\n":
                raise LabError("a host process does not hold the GPU")
        spoofed.mkdir()
        (spoofed / "cgroup.procs").write_text(str(running[1].pid), encoding="ascii")
        yield HostProcesses(running[0].pid, running[1].pid)
    finally:
        for one in running:
            one.kill()
            one.wait(10)
            if one.stdout is not None:
                one.stdout.close()
        if spoofed.exists():
            spoofed.rmdir()


def _hierarchy_of_pods(uid: str) -> Path:
    """The pod's cgroup in one hierarchy of this machine."""
    for root in (*sorted(Path("/sys/fs/cgroup").glob("*")), Path("/sys/fs/cgroup")):
        for path in root.glob(f"kubepods/**/pod{uid}"):
            return path
    raise LabError(f"no cgroup of pod {uid} is on this machine")


def move_into_sandbox(pid: int, uid: str) -> None:
    """Put a process of the pod into the cgroup of its sandbox, in every hierarchy, where sandboxed runtimes have all of theirs."""
    sandboxes = [path.name for path in _hierarchy_of_pods(uid).iterdir() if path.is_dir() and "pause" in _names_in(path)]
    if len(sandboxes) != 1:
        raise LabError(f"pod {uid} has {len(sandboxes)} cgroups with a pause process, not one")
    for root in (*sorted(Path("/sys/fs/cgroup").glob("*")), Path("/sys/fs/cgroup")):
        for path in root.glob(f"kubepods/**/pod{uid}/{sandboxes[0]}"):
            (path / "cgroup.procs").write_text(str(pid), encoding="ascii")


def _names_in(cgroup: Path) -> set[str]:
    pids = (cgroup / "cgroup.procs").read_text(encoding="ascii").split()
    return {Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip() for pid in pids}


def collected(lab: Lab) -> NodeFacts:
    """What the step `collect` says in the probe: looks over a minute."""
    script = (
        f"gpu-reclaim step collect --node={lab.node} --samples={LOOKS} --interval-s={INTERVAL_S} --facts-to=/tmp/facts 2>/tmp/log"
        " || { cat /tmp/log >&2; exit 1; }; cat /tmp/facts"
    )
    told = lab.kubectl.execute("probe", lab.namespace, ["sh", "-c", script], timeout_s=110)
    return unpack(told, NodeFacts, "the probe's facts")


def joined(lab: Lab, facts: NodeFacts) -> TracedNode:
    """The facts with the pods as survey lists them, through the real client: once, and once more for what the node names."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(msgspec.json.encode(facts))
        file.flush()
        command = lab.inside("env", f"KUBECONFIG={lab.kubeconfig}", sys.executable, "-c", PODS_BY_API, file.name)
        told = msgspec.json.decode(output_of(command, timeout_s=60, cwd=CHECKOUT), type=Pods)
    return trace_node(facts, told.pods, now=datetime.now(UTC), lists=told.lists)


@contextmanager
def kubelet_stopped(lab: Lab) -> Iterator[None]:
    """The kubelet does nothing for a moment, as on a node that is cut off."""
    kubelet = lab.ledger.named("kubelet")
    if kubelet is None:
        raise LabError("no kubelet is recorded; this test needs the cluster that the tests start")
    kubelet.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        kubelet.signal(signal.SIGCONT)


def in_probe_without_kubelet(lab: Lab, script: str) -> str:
    """The same container with the same rights, entered by the runtime alone."""
    found = lab.kubectl.get("pod", "probe", lab.namespace)
    if found is None:
        raise LabError("the probe is gone")
    container = str(found["status"]["containerStatuses"][0]["containerID"]).rpartition("/")[2]
    ctr = ["ctr", "--address", str(socket_of(lab.where)), "--namespace", "k8s.io", "tasks", "exec"]
    return output_of([*ctr, f"--exec-id=look-{time.monotonic_ns()}", container, "sh", "-c", script], timeout_s=60)


def trace_facts(text: str) -> NodeFacts:
    """The facts inside what `gpu-reclaim trace -o json` printed."""
    return decode(json.dumps(json.loads(text)["facts"]), NodeFacts, "the facts of gpu-reclaim trace")


def on_the_node(lab: Lab, *argv: str) -> subprocess.CompletedProcess[str]:
    """`gpu-reclaim ...` as root on this machine, without a cluster: simulated nodes in /dev, the library, this kubelet's root."""
    script = ON_THE_NODE.format(dev=lab.where.run / "dev", nodes=DEFAULT_FOLDER / "dev")
    environ = {
        **os.environ,
        "LD_LIBRARY_PATH": str(DEFAULT_FOLDER / "lib"),
        "GPU_RECLAIM_KUBELET_ROOT": str(lab.where.run / "kubelet"),
        "GPU_RECLAIM_CONTAINERD_STATE": str(home(lab.where) / "state"),
        "PYTHONPATH": str(CHECKOUT),
    }
    command = ["unshare", "--mount", "--propagation=private", "sh", "-c", script, "sh", sys.executable, "-m", "steps.cli", *argv]
    return subprocess.run(command, capture_output=True, text=True, env=environ, timeout=60, check=False)


def gpu(node: TracedNode, index: int) -> TracedGpu:
    return next(one for one in node.gpus if one.index == index)


def traced_holder(node: TracedNode, pid: int) -> TracedHolder:
    """The one entry of that process. Raises LabError if it is on no GPU, or on several."""
    found = [one for each in node.gpus for one in each.holders if one.pid == pid]
    if len(found) != 1:
        raise LabError(
            f"PID {pid} is traced {len(found)} times; traced are {[(h.pid, h.name) for g in node.gpus for h in g.holders]}"
        )
    return found[0]
