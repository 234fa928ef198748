"""Events in the words of the story: install sources and sensors, delete pods, wait for what they start, read its answer."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from sensors import pods, ticks
from sensors.common import sensor
from sim.node.state_file import DEFAULT_FOLDER
from steps.contracts.parcel import unpack
from steps.contracts.release_check import ReleaseCheck
from tests.cluster.lab.commands import output_of
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.gpu import COUNT
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab
from tests.cluster.lab.places import CHECKOUT
from tests.cluster.scene import SESSION_IMAGE, TEAM, phases

LABEL: Final = "gpu-reclaim.dev/session"
READY_S: Final = 60.0
MOST_GPUS: Final = 5
"""The simulated driver has no more device numbers that no other program opens."""


def install(lab: Lab) -> None:
    """Bus and controller of Argo Events, and what is shipped: accounts, the source of pods, its Sensor; besides a second source
    that watches labelled pods only, as an installation may choose to."""
    lab.events()
    for folder in ("events", "watch/cluster"):
        lab.kubectl.apply(CHECKOUT / "deploy" / folder)
    labelled = pods.source("labelled-pods", labels={LABEL: "yes"})
    lab.kubectl.apply(labelled, pods.pod_deleted("labelled-pod-deleted", "labelled-pods"))
    wait_ready(lab, "pods", "pod-deleted", "labelled-pods", "labelled-pod-deleted")


def wait_ready(lab: Lab, *names: str) -> None:
    """Until the pods of these sources and sensors are ready."""
    lab.kubectl.wait(f"{', '.join(names)} are ready", lambda: set(names) <= set(_ready(lab)), within_s=READY_S)


def _ready(lab: Lab) -> Iterator[str]:
    for pod in lab.kubectl.list("pod", lab.namespace):
        labels = pod["metadata"].get("labels", {})
        name = labels.get("eventsource-name") or labels.get("sensor-name")
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
        if name and ready and "deletionTimestamp" not in pod["metadata"]:
            yield str(name)


@contextmanager
def gpus(lab: Lab, count: int) -> Iterator[None]:
    """So many GPUs on the node for a while."""
    _offer(lab, count)
    try:
        yield
    finally:
        _offer(lab, COUNT)


def _offer(lab: Lab, count: int) -> None:
    library = lab.where.run / "libnvidia-ml.so.1"
    order = [f"--folder={DEFAULT_FOLDER}", "install", f"--gpus={count}", f"--library={library}"]
    output_of([sys.executable, "-m", "sim.node.gpusim", *order], timeout_s=30, more_environ={"PYTHONPATH": str(CHECKOUT)})
    lab.kubectl.wait(f"the node offers {count} GPUs", lambda: lab.gpus() == count, within_s=30)


def gpu_container(name: str, *args: str, gpus: int = 1) -> Json:
    """A container of the test session's image that asks for GPUs, or for none."""
    limits = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    return {"name": name, "image": SESSION_IMAGE, "imagePullPolicy": "IfNotPresent", "args": list(args), "resources": limits}


def session_pod(name: str, *, labels: Mapping[str, str] | None = None, gpus: int = 1, **spec: Any) -> Json:
    """A plain pod that asks for GPUs and holds a little of their memory."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": TEAM, "labels": {"story": "events", **(labels or {})}},
        "spec": {"terminationGracePeriodSeconds": 2, "containers": [gpu_container("session", "--mib=256", gpus=gpus)], **spec},
    }


def stateful_set(name: str) -> Json:
    """One replica, whose pod comes again under its own name."""
    pod = session_pod("template", labels={"app": name})
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": TEAM},
        "spec": {
            "replicas": 1,
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"]},
        },
    }


def pod(lab: Lab, name: str) -> Json:
    found = lab.kubectl.get("pod", name, TEAM)
    if found is None:
        raise LabError(f"pod {name} is not there")
    return found


def wait_pod(lab: Lab, name: str) -> Json:
    """The pod of that name once it is ready."""

    def ready() -> bool:
        found = lab.kubectl.get("pod", name, TEAM)
        return found is not None and is_ready(found)

    lab.kubectl.wait(f"pod {name} is ready", ready, within_s=60)
    return pod(lab, name)


def finished_pods(lab: Lab, *names: str, within_s: float = 180) -> list[Json]:
    """Pods that had a GPU each, a few at a time as the node has them, and have ended by themselves; they are still in the API."""
    brief = gpu_container("session", "--mib=64", "--seconds=1")
    lab.kubectl.apply(*(session_pod(name, restartPolicy="Never", containers=[brief]) for name in names))

    def ended() -> list[Json]:
        return [
            one
            for one in lab.kubectl.list("pod", TEAM)
            if one["metadata"]["name"] in names and one["status"]["phase"] == "Succeeded"
        ]

    lab.kubectl.wait(f"{len(names)} pods have ended", lambda: len(ended()) == len(names), within_s=within_s)
    return ended()


def start_pods(lab: Lab, pods: Sequence[Json], *, within_s: float = 90) -> list[Json]:
    """Create pods and wait until each is running. Returns them as they are then."""
    lab.kubectl.apply(*pods)
    names = [pod["metadata"]["name"] for pod in pods]

    def running() -> list[Json]:
        return [pod for pod in lab.kubectl.list("pod", TEAM) if pod["metadata"]["name"] in names and is_ready(pod)]

    lab.kubectl.wait(f"pods {', '.join(names)} run", lambda: len(running()) == len(names), within_s=within_s)
    return running()


def is_ready(pod: Json) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


def checks_of(lab: Lab, uid: str) -> list[Json]:
    """The Workflows that were started for the pod with this uid."""
    return [one for one in lab.kubectl.list("workflow", lab.namespace) if one["metadata"]["name"].startswith(f"release-{uid}-")]


def wait_checks(
    lab: Lab, uids: Sequence[str], *, within_s: float = 120, ended: bool = True, each: int = 1
) -> dict[str, list[Json]]:
    """Until every uid has so many Workflows, finished unless `ended` is False. Raises LabError with the phases of what ran."""
    seen: dict[str, list[Json]] = {}

    def all_there() -> bool:
        seen.clear()
        for one in lab.kubectl.list("workflow", lab.namespace):
            name = one["metadata"]["name"]
            for uid in uids:
                if name.startswith(f"release-{uid}-") and (not ended or one.get("status", {}).get("finishedAt")):
                    seen.setdefault(uid, []).append(one)
        return len(seen) == len(set(uids)) and all(len(found) >= each for found in seen.values())

    try:
        lab.kubectl.wait(f"{len(uids)} release checks end", all_there, within_s=within_s)
    except LabError as error:
        running = [phases(one) for uid in uids for one in checks_of(lab, uid)]
        raise LabError(f"{error}; {len(seen)} did; those that were started:\n" + "\n".join(running)) from error
    return seen


def answer(workflow: Json) -> ReleaseCheck:
    """The check in a finished Workflow's status."""
    for node in workflow["status"]["nodes"].values():
        for output in node.get("outputs", {}).get("parameters", []):
            if output["name"] == "check" and node["type"] == "Pod":
                return unpack(output["value"], ReleaseCheck, node["displayName"])
    raise LabError(f"{workflow['metadata']['name']} gave no answer:\n{phases(workflow)}")


def delete_pods(lab: Lab, *names: str, force: bool = False) -> None:
    """Delete at once and do not wait."""
    now = ["--grace-period=0", "--force"] if force else []
    lab.kubectl("delete", "pod", *names, f"--namespace={TEAM}", "--wait=false", *now)


def clock(lab: Lab, *events: str, interval: str) -> None:
    """A calendar source with one tick or several at the same moments, and a Sensor for each."""
    source = ticks.source()
    source["spec"]["calendar"] = {event: {"interval": interval} for event in events}
    sensors = []
    for event in events:
        one = sensor(f"tick-{event}", ticks.SOURCE, event, ticks.START)
        one["spec"]["triggers"][0]["template"]["k8s"]["source"]["resource"]["spec"]["arguments"]["parameters"] = [
            {"name": "dry-run", "value": "false"},
            {"name": "look-interval-s", "value": "1"},
            {"name": "capture-interval-s", "value": "1"},
        ]
        sensors.append(one)
    lab.kubectl.apply(*sensors)
    wait_ready(lab, *(f"tick-{event}" for event in events))
    lab.kubectl.apply(source)


def stop_clock(lab: Lab, *events: str) -> None:
    lab.kubectl.delete("eventsource", ticks.SOURCE, lab.namespace)
    for event in events:
        lab.kubectl.delete("sensor", f"tick-{event}", lab.namespace)


def settle(seconds: float) -> None:
    """Long enough for something to happen that must not."""
    time.sleep(seconds)
