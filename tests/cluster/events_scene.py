"""Events in the words of the story: install sources and sensors, delete pods, wait for what they start, read its answer."""

import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from statistics import median
from typing import Any, Final

from sensors import pods, ticks
from sensors.common import sensor
from sim.node.state_file import DEFAULT_FOLDER
from steps.contracts.parcel import unpack
from steps.contracts.release_check import Answer, ReleaseCheck
from tests.cluster.lab.commands import output_of
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.gpu import COUNT
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab
from tests.cluster.lab.places import CHECKOUT
from tests.cluster.lab.processes import Started, identified
from tests.cluster.scene import SESSION_IMAGE, TEAM, phases
from tests.cluster.world import processes_of

LABEL: Final = "gpu-reclaim.dev/session"
READY_S: Final = 60.0
MOST_GPUS: Final = 5
"""The simulated driver has no more device numbers that no other program opens."""
FREE: Final = {Answer.RETURNED, Answer.TAKEN_OVER}
"""What a release check says where nothing is wrong."""


SHIPPED: Final = ("pods", "pod-deleted", "labelled-pods", "labelled-pod-deleted")
"""What place() places."""


def install(lab: Lab) -> None:
    """What place() places, ready to work."""
    place(lab)
    wait_ready(lab, *SHIPPED)


def place(lab: Lab) -> None:
    """Bus and controller of Argo Events, and what is shipped: accounts, the source of pods, its Sensor; besides a second source
    that watches labelled pods only, as an installation may choose to. Does not wait for the pods of these."""
    lab.events()
    for folder in ("events", "watch/cluster"):
        lab.kubectl.apply(CHECKOUT / "deploy" / folder)
    labelled = pods.source("labelled-pods", labels={LABEL: "yes"})
    lab.kubectl.apply(labelled, pods.pod_deleted("labelled-pod-deleted", "labelled-pods"))


def wait_ready(lab: Lab, *names: str, within_s: float = READY_S) -> None:
    """Until the pods of these sources and sensors are ready."""
    lab.kubectl.wait(f"{', '.join(names)} are ready", lambda: set(names) <= set(_ready(lab)), within_s=within_s)


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


def delays_told(workflows: Iterable[Json]) -> str:
    """When checks were created and had ended, in seconds after the deletion was due, to a second: for whoever reads the run."""
    due = {one["metadata"]["name"]: one for one in workflows if _argument(one, "deleted-at")}
    made = sorted(_after(one, one["metadata"]["creationTimestamp"]) for one in due.values())
    ended = sorted(_after(one, one["status"]["finishedAt"]) for one in due.values())
    both = (("created", made), ("ended", ended)) if due else ()
    told = [f"{word} {seen[0]:.0f} to {seen[-1]:.0f}, median {median(seen):.0f} s" for word, seen in both]
    return f"{len(due)} checks: {'; '.join(told)} after the deletion was due"


def _after(workflow: Json, moment: str) -> float:
    return (datetime.fromisoformat(moment) - datetime.fromisoformat(_argument(workflow, "deleted-at"))).total_seconds()


def _argument(workflow: Json, name: str) -> str:
    return next((str(one["value"]) for one in workflow["spec"]["arguments"]["parameters"] if one["name"] == name), "")


def delete_pods(lab: Lab, *names: str, force: bool = False) -> None:
    """Delete at once and do not wait."""
    now = ["--grace-period=0", "--force"] if force else []
    lab.kubectl("delete", "pod", *names, f"--namespace={TEAM}", "--wait=false", *now)


def wait_gone(lab: Lab, names: Sequence[str], *, within_s: float = 60) -> None:
    """Until the API has none of these pods."""

    def gone() -> bool:
        return not any(one["metadata"]["name"] in names for one in lab.kubectl.list("pod", TEAM))

    lab.kubectl.wait(f"pods {', '.join(names)} are gone", gone, within_s=within_s)


@contextmanager
def standing_still(lab: Lab, selector: str) -> Iterator[Sequence[Started]]:
    """The processes of gpu-reclaim's pods of the selector, stopped in the middle of whatever they do; those still there go on
    afterwards."""
    own = lab.kubectl.list("pod", lab.namespace, selector=selector)
    stopped = [one for pod in own for pid in processes_of(pod) if (one := identified("pod", pid)) is not None]
    if not stopped:
        raise LabError(f"no process of a pod with {selector}")
    for process in stopped:
        process.signal(signal.SIGSTOP)
    try:
        yield stopped
    finally:
        for process in stopped:
            process.signal(signal.SIGCONT)


def log_of(lab: Lab, selector: str) -> str:
    """What the pods of gpu-reclaim with these labels wrote."""
    return lab.kubectl("logs", f"--selector={selector}", f"--namespace={lab.namespace}", "--tail=-1")


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
