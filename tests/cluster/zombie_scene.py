"""The termination experiment on the real cluster: its namespace and account as shipped, one run, its results."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from experiments.zombie.manifest import SESSION
from experiments.zombie.recording import WatchRecording
from experiments.zombie.results import ScenarioResult, Word, ZombieResults
from experiments.zombie.scenarios import Row
from tests.cluster import doors, scene
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab
from tests.cluster.lab.places import CHECKOUT
from tests.cluster.scene import Run

NAMESPACE: Final = "gpu-zombie-test"
TEMPLATE: Final = "zombie-experiment"
IN_THIS_LAB: Final = {"backend": "simulated", "pull": "IfNotPresent"}
"""No GPU and no registry here."""
QUICK: Final = {"grace-s": "8", "prestop-wait-s": "4", "observe-s": "2"}
"""Shorter waits: the order of things is under test, not the length of a grace."""
RUN_S: Final = 420.0


def install(lab: Lab, **defaults: str) -> None:
    """deploy/experiments, and the template's defaults as this cluster needs them, so that a tag can start it without arguments.
    defaults: more of them."""
    lab.kubectl.apply(CHECKOUT / "deploy" / "experiments")
    template = lab.kubectl.get("workflowtemplate", TEMPLATE, lab.namespace)
    if template is None:
        raise AssertionError(f"WorkflowTemplate {TEMPLATE} is not installed")
    values = {**IN_THIS_LAB, **defaults}
    parameters = [
        one | ({"value": values[one["name"]]} if one["name"] in values else {})
        for one in template["spec"]["arguments"]["parameters"]
    ]
    patch = json.dumps({"spec": {"arguments": {"parameters": parameters}}})
    lab.kubectl("patch", "workflowtemplate", TEMPLATE, f"--namespace={lab.namespace}", "--type=merge", f"--patch={patch}")


def experiment(lab: Lab, *, within_s: float = RUN_S, as_shipped: bool = False, **parameters: str) -> Run:
    """Submit it as the form of the Argo UI does, as the submitter, wait for its end, and hand over its evidence.

    as_shipped: with the template's own waits.
    """
    given = {
        "node": lab.node,
        **({} if as_shipped else QUICK),
        **{name.replace("_", "-"): value for name, value in parameters.items()},
    }
    taken, words = doors.by_server(lab, TEMPLATE, given, dry_run=False, account=scene.SUBMITTER)
    if not taken:
        raise LabError(f"Argo's server did not take it: {words}")
    name = json.loads(words)["metadata"]["name"]
    return Run(name, scene.finish(lab, name, within_s=within_s), lab.evidence / name)


def share_of_waiting(run: Run) -> float:
    """The run's time over what it waited for on purpose."""
    provenance = results_of(run).provenance
    assert provenance.took_s is not None
    return provenance.took_s / provenance.waited_s


def is_there(lab: Lab, session: str) -> bool:
    """Whether a pod of this session of a run exists, for example `s2-2`."""
    return bool(lab.kubectl.list("pod", NAMESPACE, selector=f"{SESSION}={session}"))


def stop(lab: Lab, name: str) -> None:
    """As `argo stop` does."""
    patch = json.dumps({"spec": {"shutdown": "Stop"}})
    lab.kubectl("patch", "workflow", name, f"--namespace={lab.namespace}", "--type=merge", f"--patch={patch}")


@contextmanager
def self_heal(lab: Lab, name: str) -> Iterator[list[str]]:
    """Argo CD with self-heal, in small: as soon as the pod is gone, git is applied again, once. Yields the uids it made."""
    ended, made = threading.Event(), list[str]()

    def heal() -> None:
        seen: Json | None = None
        while not ended.is_set() and not made:
            pod = lab.kubectl.get("pod", name, NAMESPACE)
            if pod is None and seen is not None:
                made.append(str(lab.kubectl.create(_as_in_git(seen))["metadata"]["uid"]))
            seen = seen if pod is None else pod
            ended.wait(0.3)

    healer = threading.Thread(target=heal)
    healer.start()
    try:
        yield made
    finally:
        ended.set()
        healer.join(timeout=30)
        lab.kubectl.delete("pod", name, NAMESPACE)


def _as_in_git(pod: Json) -> Json:
    """What a person wrote of a pod: no status, no identity, no node."""
    metadata = {key: pod["metadata"][key] for key in ("name", "namespace", "labels")}
    kept = ("containers", "nodeSelector", "tolerations", "securityContext", "terminationGracePeriodSeconds", "restartPolicy")
    spec = {key: pod["spec"][key] for key in kept} | {"automountServiceAccountToken": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def results_of(run: Run) -> ZombieResults:
    return run.document("results/results.json", ZombieResults)


def result(results: ZombieResults, scenario: str) -> ScenarioResult:
    return next(one for one in results.scenarios if one.scenario.value == scenario)


def words(one: ScenarioResult) -> Mapping[Row, Word]:
    return {verdict.row: verdict.measured for verdict in one.verdicts}


def unstable(results: ZombieResults, repetitions: int) -> list[str]:
    """Rows in which not every repetition gave the same word, each with what it said."""
    return [
        f"{one.scenario.value}, {v.row.value}: {v.measured.value} in {v.n} of {v.of}; "
        + "; ".join(f"{m.word.value} ({m.sentence})" for rep in one.repetitions for m in rep.measured if m.row is v.row)
        for one in results.scenarios
        for v in one.verdicts
        if (v.n, v.of) != (repetitions, repetitions)
    ]


def recording(run: Run, scenario: str) -> WatchRecording:
    return run.document(f"recordings/{scenario}-watch.json", WatchRecording)


def files_of(run: Run) -> set[str]:
    folder: Path = run.folder
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
