"""Who may start what: by template and plain values only, through kubectl, Argo's server and a Sensor alike; and what doctor says.

Refusals are tried as dry runs of the server, which runs the admission policy for them as well.
"""

import json
import sys
from typing import Any

import pytest
import yaml

from tests.cluster import doors, scene
from tests.cluster import events_scene as events
from tests.cluster.lab.commands import ran
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab
from tests.cluster.lab.places import CHECKOUT
from workflows import MANIFESTS

pytestmark = pytest.mark.cluster

UID = "00000000-0000-4000-8000-000000000000"
BRACES = ("{{workflow.name}}", "{{=1+41}}", "v{{=sprig.repeat(3,'ab')}}", "{{")
PLAIN = {"quotes": "\"'`$(id)`;\\", "newlines": "a\nb\n--node=other", "ten-kilobytes": "x" * 10_000}
OWN_POD = {"entrypoint": "a", "templates": [{"name": "a", "container": {"image": "any", "command": ["id"]}}]}
SPECS: dict[str, Json] = {
    "no template named": OWN_POD,
    "a template of the cluster's": {"workflowTemplateRef": {"name": "release-check", "clusterScope": True}},
    "an entrypoint": doors.spec_of("release-check", {"uid": UID}, entrypoint="archive"),
    "an exit handler": doors.spec_of("release-check", {"uid": UID}, onExit="release-check"),
    "templates of one's own": doors.spec_of("release-check", {"uid": UID}, templates=OWN_POD["templates"]),
    "another account": doors.spec_of("release-check", {"uid": UID}, serviceAccountName="stopper"),
    "a pod patch": doors.spec_of("release-check", {"uid": UID}, podSpecPatch='{"hostNetwork":true}'),
    "another executor": doors.spec_of("release-check", {"uid": UID}, executor={"serviceAccountName": "stopper"}),
    "volumes": doors.spec_of("release-check", {"uid": UID}, volumes=[{"name": "root", "hostPath": {"path": "/"}}]),
    "a shorter clean-up": doors.spec_of("release-check", {"uid": UID}, podGC={"strategy": "OnPodCompletion"}),
    "a value from elsewhere": {
        "workflowTemplateRef": {"name": "release-check"},
        "arguments": {
            "parameters": [{"name": "uid", "valueFrom": {"configMapKeyRef": {"name": "gpu-reclaim-policy", "key": "p"}}}]
        },
    },
    "an artifact": {
        "workflowTemplateRef": {"name": "release-check"},
        "arguments": {"parameters": [{"name": "uid", "value": UID}], "artifacts": [{"name": "x", "raw": {"data": "y"}}]},
    },
}


def parameters() -> list[tuple[str, str]]:
    """(template, parameter) of everything that a person may fill in."""
    found = []
    for name in ("release-check", "sweep"):
        content = yaml.safe_load((MANIFESTS / f"{name}.yaml").read_text(encoding="utf-8"))
        found += [(name, one["name"]) for one in content["spec"]["arguments"]["parameters"]]
    return found


def given(template: str, parameter: str, value: str) -> dict[str, str]:
    """Arguments that are right but for one."""
    return {**({"uid": UID} if template == "release-check" else {}), parameter: value}


def test_what_is_meant_to_be_submitted_is_admitted(installed: Lab) -> None:
    assert doors.by_kubectl(installed, doors.spec_of("release-check", {"uid": UID, "node": installed.node})) is None
    assert doors.by_kubectl(installed, doors.spec_of("sweep", {"dry-run": "true"})) is None
    taken, words = doors.by_server(installed, "sweep", {"dry-run": "true"})
    assert taken, words


@pytest.mark.parametrize(("template", "parameter"), parameters())
def test_a_value_with_double_braces_is_refused_by_kubectl_and_by_argos_server(
    installed: Lab, template: str, parameter: str
) -> None:
    """Argo would evaluate it inside the controller."""
    for value in BRACES:
        words = doors.by_kubectl(installed, doors.spec_of(template, given(template, parameter, value)))
        assert words is not None
        assert "an argument value must not hold {{" in words
    taken, words = doors.by_server(installed, template, given(template, parameter, BRACES[1]))
    assert (taken, "an argument value must not hold {{" in words) == (False, True), words


@pytest.mark.parametrize("name", sorted(SPECS))
def test_a_workflow_with_anything_of_its_own_is_refused_with_a_sentence(installed: Lab, name: str) -> None:
    words = doors.by_kubectl(installed, SPECS[name])
    assert words is not None
    assert "denied request: " in words, words
    taken, words = doors.create_by_server(installed, SPECS[name])
    assert not taken, words


def test_argos_form_cannot_choose_an_entrypoint_or_an_account(installed: Lab) -> None:
    for option, value in (("entryPoint", "archive"), ("serviceAccount", "stopper")):
        taken, words = doors.by_server(installed, "release-check", {"uid": UID}, options={option: value})
        assert (taken, "denied request" in words) == (False, True), words


def test_the_controller_takes_templates_by_reference_only_where_the_policy_is_not(installed: Lab) -> None:
    """Strict, as recommended: a second lock behind the first. Seen with the policy's binding taken away for a moment."""
    lab = installed
    lab.kubectl.delete("validatingadmissionpolicybinding", "gpu-reclaim-workflows")
    try:
        lab.kubectl.wait("the policy is off", lambda: doors.by_kubectl(lab, OWN_POD) is None, within_s=20)
        refused = lab.kubectl.create(
            {
                "apiVersion": "argoproj.io/v1alpha1",
                "kind": "Workflow",
                "metadata": {"generateName": "own-pod-", "namespace": lab.namespace},
                "spec": OWN_POD,
            }
        )
        ended = scene.finish(lab, refused["metadata"]["name"], within_s=30)
        told = doctor(lab)
        lab.kubectl.delete("workflow", refused["metadata"]["name"], lab.namespace)
    finally:
        lab.kubectl.apply(CHECKOUT / "deploy" / "admission")
    lab.kubectl.wait("the policy is on", lambda: doors.by_kubectl(lab, OWN_POD) is not None, within_s=20)
    assert (ended["status"]["phase"], "workflowTemplateRef" in ended["status"]["message"]) == ("Error", True), ended["status"]
    assert told["admission policy"] == "problem"


def doctor(lab: Lab) -> dict[str, str]:
    """What doctor finds, by subject."""
    command = lab.inside("env", f"KUBECONFIG={lab.kubeconfig}", sys.executable, "-m", "steps.cli", "doctor", "-o", "json")
    done = ran(command, timeout_s=60)
    return {one["subject"]: one["standing"] for one in json.loads(done.stdout)}


def test_doctor_finds_the_installation_in_order_and_says_what_it_cannot_see(installed: Lab) -> None:
    told = doctor(installed)
    problems = {subject for subject, standing in told.items() if standing == "problem"}
    assert {"clock", "who may make pods"} <= problems, "nothing starts sweeps here, and the controller runs as the admin"
    assert problems <= {"clock", "who may make pods", "accounts"}, told
    assert told["admission policy"] == told["executor's token"] == told["GPU nodes"] == told["probe's rights"] == "ok"
    assert told["workflow-controller"] == "unknown", "in the lab the controller is no Deployment"


@pytest.fixture(scope="module")
def plain_text(installed: Lab) -> dict[str, tuple[Json, str]]:
    """Hostile values that hold no braces, in all parameters at once: each run as it ended, and what its pods wrote."""
    lab, free = installed, [name for template, name in parameters() if template == "release-check" and name != "node"]
    runs = {}
    for kind, value in PLAIN.items():
        everywhere = dict.fromkeys(free, value)
        runs[kind] = scene.submit(lab, "release-check", {**everywhere, "node": lab.node})
        runs[f"{kind}-as-node"] = scene.submit(lab, "release-check", {"uid": UID, "node": value})
    looks = [name for template, name in parameters() if template == "sweep" and name != "dry-run"]
    runs["sweep"] = scene.submit(lab, "sweep", dict.fromkeys(looks, PLAIN["quotes"]))
    taken, words = doors.by_server(lab, "release-check", {"uid": PLAIN["quotes"], "node": lab.node}, dry_run=False)
    assert taken, words
    runs["by-server"] = json.loads(words)["metadata"]["name"]
    return {kind: (scene.finish(lab, name), logs_of(lab, name)) for kind, name in runs.items()}


def logs_of(lab: Lab, run: str) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in sorted((lab.evidence / run / "logs").glob("*.log")))


@pytest.mark.parametrize("kind", [*PLAIN, "sweep", "by-server"])
def test_other_hostile_values_reach_the_step_as_text_and_are_refused_with_a_sentence(
    plain_text: dict[str, tuple[Json, str]], kind: str
) -> None:
    workflow, log = plain_text[kind]
    assert workflow["status"]["phase"] == "Failed", scene.phases(workflow)
    assert " got " in log
    assert "; give " in log
    assert "uid=0(" not in log
    assert "Traceback" not in log


@pytest.mark.parametrize("kind", PLAIN)
def test_a_hostile_node_gets_no_pod(plain_text: dict[str, tuple[Json, str]], kind: str) -> None:
    workflow, log = plain_text[f"{kind}-as-node"]
    assert workflow["status"]["phase"] in ("Failed", "Error"), scene.phases(workflow)
    assert "release-check.answered" not in log


@pytest.fixture(scope="module")
def sensors(installed: Lab) -> dict[str, Any]:
    """Sensors that try what a person may not: whoever can write one is no longer kept from it by forms."""
    events.install(installed)
    tried = {
        "braces": doors.spec_of("release-check", {"uid": "{{=1+41}}"}),
        "own-entry": doors.spec_of("release-check", {"uid": UID}, entrypoint="archive"),
        "own-pod": OWN_POD,
        "quotes": doors.spec_of("release-check", {"uid": PLAIN["quotes"], "node": installed.node}),
    }
    doors.by_sensors(installed, tried)
    return tried


@pytest.mark.parametrize("name", ["braces", "own-entry", "own-pod"])
def test_a_sensor_is_refused_as_well_and_leaves_an_event(sensors: dict[str, Any], lab: Lab, name: str) -> None:
    assert name in sensors
    assert doors.made_by(lab, name) == []
    refusals = doors.refusals_of(lab, name)
    assert {(one["reason"], one["type"]) for one in refusals} == {("WorkflowNotCreated", "Warning")}


def test_a_sensors_plain_text_reaches_the_step_as_text(sensors: dict[str, Any], lab: Lab) -> None:
    workflow = doors.made_by(lab, "quotes")[0]
    ended = scene.finish(lab, workflow["metadata"]["name"])
    assert ended["status"]["phase"] == "Failed"
    assert "--uid got" in logs_of(lab, ended["metadata"]["name"])


def test_the_namespaces_of_sessions_take_no_node_pod(installed: Lab) -> None:
    """Where a team's namespace enforces baseline nobody gets hostPID there; gpu-reclaim's own namespace takes such pods."""
    lab = installed
    lab.kubectl("label", "namespace", scene.TEAM, "pod-security.kubernetes.io/enforce=baseline", "--overwrite")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "host", "namespace": scene.TEAM},
        "spec": {"hostPID": True, "containers": [{"name": "main", "image": scene.STEPS_IMAGE}]},
    }
    tried = lab.kubectl.ran("create", "--filename=-", "--dry-run=server", stdin=json.dumps(pod))
    own = {**pod, "metadata": {"name": "host", "namespace": lab.namespace}}
    taken = lab.kubectl.ran("create", "--filename=-", "--dry-run=server", stdin=json.dumps(own))
    lab.kubectl("label", "namespace", scene.TEAM, "pod-security.kubernetes.io/enforce-")
    assert "violates PodSecurity" in tried.stderr
    assert taken.returncode == 0, taken.stderr
