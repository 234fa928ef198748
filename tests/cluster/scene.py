"""What the cluster tests do, in the words of the story: install, start sessions, run a sweep, read its evidence."""

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

from steps.contracts.decision import Decision, Decisions
from steps.contracts.document import Document, decode
from steps.contracts.release import Release
from steps.contracts.run_record import EvidenceSummary, RunRecord
from steps.contracts.stop_receipt import StopReceipt
from tests.cluster.lab.commands import output_of
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab
from tests.cluster.lab.places import CHECKOUT

D = TypeVar("D", bound=Document)

TEAM: Final = "team-vision"
NODE_TRUTH: Final = "node-truth"
"""Where the holders of the node's tests live."""
SUBMITTER: Final = "gpu-reclaim:submitter"
IDLE_AFTER_S: Final = 8
HELD_MIB: Final = 4096
SESSION_IMAGE: Final = "docker.io/gpureclaim/test-session:0.1.0"
STEPS_IMAGE: Final = "docker.io/gpureclaim/steps:0.1.0"
GRACE_S: Final = 3
QUICK: Final = {"look-interval-s": "1", "capture-interval-s": "1"}
"""Looks follow each other faster than as shipped: the order of things is under test, not the seconds between two looks."""


def install(lab: Lab) -> None:
    """The shipped base, the opt-in of the team's namespace, and a policy that acts there."""
    lab.kubectl.apply(CHECKOUT / "deploy" / "base")
    lab.kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
    lab.kubectl.apply(CHECKOUT / "deploy" / "opt-in", namespace=TEAM)
    set_policy(lab)


def make_room(lab: Lab) -> None:
    """End what other tests left: event sources and sensors, sessions, holders of GPUs. Ready when none of their pods is left."""
    lab.kubectl("delete", "eventsource,sensor", "--all", f"--namespace={lab.namespace}", timeout_s=60)
    lab.kubectl.delete("pod", "probe", lab.namespace, wait=False)
    for namespace in (TEAM, NODE_TRUTH):
        left = ("delete", "deployment,statefulset,replicaset,job,pod", "--all", f"--namespace={namespace}", "--wait=false")
        lab.kubectl(*left, timeout_s=60)
        lab.kubectl.wait(f"no pod is left in {namespace}", partial(_empty, lab, namespace), within_s=90)


def _empty(lab: Lab, namespace: str) -> bool:
    return not lab.kubectl.list("pod", namespace)


def set_policy(lab: Lab, **changes: Any) -> None:
    """Write the policy's ConfigMap: mode act for the team's namespace, with the changes given."""
    policy = {"mode": "act", "namespaces": [TEAM], "idle_after_s": IDLE_AFTER_S, "minimum_age_s": 1, **changes}
    lab.kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "gpu-reclaim-policy", "namespace": lab.namespace},
            "data": {"policy.yaml": yaml.safe_dump(policy)},
        }
    )


def start_session(lab: Lab, name: str, *, mode: str = "idle", claim: str | None = None) -> None:
    """A development session: a Deployment that asks for the GPU, holds its memory, and has a home if a claim is named."""
    container: Json = {
        "name": "session",
        "image": SESSION_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "args": [f"--mib={HELD_MIB}", f"--mode={mode}"],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    pod: Json = {"terminationGracePeriodSeconds": GRACE_S, "containers": [container]}
    if claim is not None:
        container["volumeMounts"] = [{"name": "home", "mountPath": "/home/session"}]
        pod["volumes"] = [{"name": "home", "persistentVolumeClaim": {"claimName": claim}}]
    lab.kubectl.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": TEAM},
            "spec": {
                "replicas": 1,
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": {"session": name}},
                "template": {"metadata": {"labels": {"session": name}}, "spec": pod},
            },
        }
    )


def make_claim(lab: Lab, name: str) -> Path:
    """A home: a claim in the team's namespace and the folder behind it on this machine."""
    folder = lab.volume(name, TEAM)
    lab.kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": TEAM},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}},
        }
    )
    return folder


def pods_of(lab: Lab, session: str) -> list[Json]:
    return list(lab.kubectl.list("pod", TEAM, selector=f"session={session}"))


def running_pod(lab: Lab, session: str) -> Json | None:
    """The session's running and ready pod, None while there is none."""
    for pod in pods_of(lab, session):
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
        if pod["status"]["phase"] == "Running" and ready and "deletionTimestamp" not in pod["metadata"]:
            return pod
    return None


def wait_running(lab: Lab, session: str, *, within_s: float = 40) -> Json:
    lab.kubectl.wait(f"session {session} is running", lambda: running_pod(lab, session) is not None, within_s=within_s)
    pod = running_pod(lab, session)
    if pod is None:
        raise LabError(f"session {session} ran and stopped at once")
    return pod


def scheduler_words(lab: Lab, session: str) -> str:
    """Why the session's pod is Pending, in the scheduler's words; empty while it has not spoken."""
    for pod in pods_of(lab, session):
        for condition in pod["status"].get("conditions", []):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return str(condition.get("message", ""))
    return ""


def order(lab: Lab, session: str, mode: str) -> None:
    """Tell a session's workload what to do: idle, busy, free, exit."""
    pod = wait_running(lab, session)
    lab.kubectl.execute(pod["metadata"]["name"], TEAM, ["sh", "-c", f"mkdir -p /tmp/workload && echo {mode} > /tmp/workload/mode"])


def replicas(lab: Lab, session: str) -> int:
    """What the Deployment's spec asks for. The API omits no zero here: spec.replicas is always written."""
    found = lab.kubectl.get("deployment", session, TEAM)
    if found is None:
        raise LabError(f"Deployment {session} is gone")
    return int(found["spec"]["replicas"])


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run: its Workflow as the controller left it, and the evidence it wrote."""

    name: str
    workflow: Json
    folder: Path

    @property
    def phase(self) -> str:
        return str(self.workflow["status"].get("phase"))

    def document(self, relative: str, kind: type[D]) -> D:
        path = self.folder / relative
        return decode(path.read_bytes(), kind, str(path))

    def decision(self, session: str) -> Decision:
        """The verdict on a session of the team."""
        decisions = self.document("shard-0/decisions.json", Decisions).decisions
        found = [decision for decision in decisions if decision.owner.name == session]
        if len(found) != 1:
            raise LabError(f"run {self.name} judged {[d.owner.name for d in decisions]}, not {session} once")
        return found[0]

    def receipt(self, session_uid: str) -> StopReceipt:
        return self.document(f"sessions/{session_uid}/receipt.json", StopReceipt)

    def release(self, session_uid: str, node: str) -> Release:
        return self.document(f"sessions/{session_uid}/release-{node}.json", Release)

    @property
    def summary(self) -> EvidenceSummary:
        return self.document("summary.json", EvidenceSummary)

    @property
    def record(self) -> RunRecord:
        return self.document("run.json", RunRecord)

    def damaged(self) -> list[str]:
        """Evidence files that SHA256SUMS does not vouch for: missing, changed, or not listed."""
        told = [line.split("  ", 1) for line in (self.folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines()]
        listed = {name: digest for digest, name in told}
        present = {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in self.folder.rglob("*")
            if path.is_file() and path.name != "SHA256SUMS"
        }
        return sorted(name for name in listed.keys() | present.keys() if listed.get(name) != present.get(name))


def submit(lab: Lab, template: str, parameters: Mapping[str, str], *, account: str = SUBMITTER) -> str:
    """Create a Workflow from a template as a person does: by reference, with arguments. Returns its name."""
    created = lab.kubectl.create(
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"generateName": f"{template}-", "namespace": lab.namespace},
            "spec": {
                "workflowTemplateRef": {"name": template},
                "arguments": {"parameters": [{"name": name, "value": value} for name, value in parameters.items()]},
            },
        },
        account=account,
    )
    return str(created["metadata"]["name"])


def finish(lab: Lab, name: str, *, within_s: float = 150) -> Json:
    """The finished Workflow. Raises LabError with the phases of its nodes if it does not end in time."""
    seen: Json = {}

    def ended() -> bool:
        seen["workflow"] = lab.kubectl.get("workflow", name, lab.namespace)
        return bool(seen["workflow"] and seen["workflow"].get("status", {}).get("finishedAt"))

    try:
        lab.kubectl.wait(f"workflow {name} ends", ended, within_s=within_s)
    except LabError as error:
        raise LabError(f"{error}; its nodes: {phases(seen['workflow'])}") from error
    workflow: Json = seen["workflow"]
    return workflow


def phases(workflow: Json) -> str:
    """Every node's phase and message on a line, for the person who reads a failed test."""
    nodes = workflow.get("status", {}).get("nodes", {}).values()
    return "\n".join(f"  {n['displayName']} ({n['type']}): {n.get('phase')} {n.get('message', '')}" for n in nodes)


def sweep(lab: Lab, *, dry_run: bool, within_s: float = 150) -> Run:
    """Submit a sweep, wait for its end, and hand over its evidence."""
    name = submit(lab, "sweep", {"dry-run": json.dumps(dry_run), **QUICK})
    return Run(name, finish(lab, name, within_s=within_s), lab.evidence / name)


def cli(lab: Lab, *argv: str, within_s: float = 60) -> str:
    """What `gpu-reclaim` wrote to stdout, run on this machine with the rights of the cluster's admin."""
    command = lab.inside("env", f"KUBECONFIG={lab.kubeconfig}", sys.executable, "-m", "steps.cli", *argv)
    return output_of(command, timeout_s=within_s)
