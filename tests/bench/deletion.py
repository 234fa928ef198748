"""From a pod's deletion to the verdict on its memory, on the real cluster, against a workflow of one pod that does nothing.

Both are started by one Sensor from the same event source, in turn, so that a drifting machine hits both alike.
"""

import json
import os
import statistics
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Final

from sensors import pods
from tests.bench.on_cluster import row_on_cluster
from tests.bench.row import Row, measured
from tests.cluster import events_scene as events
from tests.cluster import scene
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab

NAME: Final = "pod deleted -> verdict, less the observation / one-pod no-op workflow through the same sensor (p50)"
TARGET: Final = 1.2
ROUNDS: Final = 7
NOOP: Final = Path(__file__).with_name("noop-one-pod.yaml")
ENDED: Final = ("Succeeded", "Failed", "Error")


def rows() -> list[Row]:
    """One row; not measured, with the reason, where the test cluster cannot run."""
    return row_on_cluster(NAME, TARGET, row, events=True)


def row(lab: Lab) -> Row:
    """Install, delete one pod after the other, and compare the medians."""
    scene.install(lab)
    lab.kubectl.apply(NOOP)
    events.install(lab)
    lab.kubectl.apply(_sensor())
    events.wait_ready(lab, "pod-deleted")
    seen: dict[str, list[float]] = {"check": [], "noop": []}
    with _Watch(lab) as watch:
        events.start_pods(lab, [events.session_pod("noop-warm-up")])
        _one(lab, watch, "noop-warm-up")
        for number in range(ROUNDS):
            for kind, taken_s in seen.items():
                name = f"{kind}-{number}"
                events.start_pods(lab, [events.session_pod(name)])
                taken_s.append(_one(lab, watch, name))
    check_s, noop_s = statistics.median(seen["check"]), statistics.median(seen["noop"])
    setting = (
        f"one node, {os.cpu_count()} cores, requeue 1 s, {ROUNDS} pairs in turn: {check_s:.2f} s / {noop_s:.2f} s; from the pod's "
        "removal in a watch to the pod's end in the Workflow; archive not counted"
    )
    return measured(NAME, check_s / noop_s, TARGET, setting)


def _sensor() -> Json:
    """The shipped Sensor with a second trigger; which of the two acts is in the pod's name."""
    made = pods.pod_deleted()
    spec = made["spec"]
    (dependency,), (trigger,) = spec["dependencies"], spec["triggers"]
    spec["dependencies"] = [_only(dependency, kind) for kind in ("check", "noop")]
    spec["triggers"] = [_renamed(trigger, "check", None), _renamed(trigger, "noop", "noop-one-pod")]
    return made


def _only(dependency: Json, kind: str) -> Json:
    chosen = {"path": "body.metadata.name", "type": "string", "value": [f"^{kind}-"]}
    return {**dependency, "name": kind, "filters": {"data": [chosen]}}


def _renamed(trigger: Json, kind: str, template: str | None) -> Json:
    """The trigger for one kind of pod: same name parts, same source; another template where one is given."""
    text = json.dumps(trigger).replace('"dependencyName": "deleted"', f'"dependencyName": "{kind}"')
    made: dict[str, Any] = json.loads(text.replace('"conditions": "deleted"', f'"conditions": "{kind}"'))
    made["template"]["name"] = kind
    made["dlqTrigger"]["template"]["name"] = f"{kind}-failed"
    if template is not None:
        made["template"]["k8s"]["source"]["resource"]["spec"]["workflowTemplateRef"]["name"] = template
    return made


def _one(lab: Lab, watch: "_Watch", name: str) -> float:
    """Seconds from the pod's removal to the end of the one pod that this started, less what was spent observing."""
    pod = events.pod(lab, name)
    uid = str(pod["metadata"]["uid"])
    events.delete_pods(lab, name)
    lab.kubectl.wait(f"{name} has an answer", lambda: uid in watch.answered and uid in watch.removed, within_s=60)
    ((workflow, *_),) = events.wait_checks(lab, [uid]).values()
    observed_s = 0.0
    if name.startswith("check-"):
        release = events.answer(workflow).release
        if release is None:
            raise LabError(f"the check of {name} watched nothing: {events.answer(workflow).sentence}")
        observed_s = (release.watched_until - release.watched_from).total_seconds()
    return watch.answered[uid] - watch.removed[uid] - observed_s


class _Watch:
    """When, by this machine's clock, pods were removed and the pods of Workflows had ended, as watches told it. By pod uid."""

    def __init__(self, lab: Lab) -> None:
        self.removed: dict[str, float] = {}
        self.answered: dict[str, float] = {}
        self._lab = lab

    def __enter__(self) -> "_Watch":
        workflows = f"/apis/argoproj.io/v1alpha1/namespaces/{self._lab.namespace}/workflows?watch=true"
        pods_path = f"/api/v1/namespaces/{scene.TEAM}/pods?watch=true"
        self._open = [self._start(pods_path, self._pod), self._start(workflows, self._workflow)]
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._open:
            process.kill()
            process.wait()

    def _start(self, path: str, take: Any) -> "subprocess.Popen[str]":
        argv = self._lab.kubectl.argv("get", "--raw", path)
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, args=(process, take), daemon=True).start()
        return process

    def _read(self, process: "subprocess.Popen[str]", take: Any) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            take(json.loads(line), time.monotonic())

    def _pod(self, told: Json, now_s: float) -> None:
        if told["type"] == "DELETED":
            self.removed.setdefault(told["object"]["metadata"]["uid"], now_s)

    def _workflow(self, told: Json, now_s: float) -> None:
        name = told["object"]["metadata"]["name"]
        if not name.startswith("release-"):
            return
        uid = name.removeprefix("release-").rpartition("-")[0]
        nodes = told["object"].get("status", {}).get("nodes", {}).values()
        if any(node["type"] == "Pod" and node.get("phase") in ENDED and node.get("templateName") != "archive" for node in nodes):
            self.answered.setdefault(uid, now_s)
