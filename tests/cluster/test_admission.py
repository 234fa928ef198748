"""Who may start what: by template and plain values only, through kubectl, Argo's server and a Sensor alike; and what doctor says.

Refusals are tried as dry runs of the server, which runs the admission policy for them as well.
"""

import json
import sys
from collections.abc import Mapping

import pytest

from tests import hostile
from tests.cluster import doors, hostile_sensors, scene
from tests.cluster.doors import Tried
from tests.cluster.lab.commands import ran
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab
from tests.cluster.lab.places import CHECKOUT
from tests.hostile import PLAIN, UID, Cell

pytestmark = pytest.mark.cluster

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
OF_A_SENSOR = {"own-entry": doors.spec_of("release-check", {"uid": UID}, entrypoint="archive"), "own-pod": OWN_POD}
REFUSED = "an argument value must not hold {{"
SAID_BY = {
    "by_kubectl": (REFUSED,),
    "by_server": (REFUSED, "Cannot find end tag="),
    "by_sensor": ("WorkflowNotCreated",),
}
"""Of braces without an end Argo's server speaks before it asks the API; a Sensor by the reason of the Event that it leaves."""
RUN_ANYWAY = Cell("release-check", "uid", "quotes")
"""Of what Sensors make the one that may run."""
BESIDE_A_STEP = tuple(place for place in hostile.PARAMETERS if hostile.goes_to(*place)[1])
"""Parameters whose text goes elsewhere than into a flag of a step: a node's name, a lock's, a condition."""


def test_what_is_meant_to_be_submitted_is_admitted(installed: Lab) -> None:
    assert doors.by_kubectl(installed, doors.spec_of("release-check", {"uid": UID, "node": installed.node})) is None
    assert doors.by_kubectl(installed, doors.spec_of("sweep", {"dry-run": "true"})) is None
    taken, words = doors.by_server(installed, "sweep", {"dry-run": "true"})
    assert taken, words


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
def by_kubectl(installed: Lab) -> Mapping[str, Tried]:
    specs = {one.name: doors.spec_of(one.template, one.arguments(installed.node)) for one in hostile.CELLS}
    return doors.each_by_kubectl(installed, specs)


@pytest.fixture(scope="module")
def by_server(installed: Lab) -> Mapping[str, Tried]:
    forms = {one.name: (one.template, one.arguments(installed.node)) for one in hostile.CELLS}
    return doors.each_by_server(installed, forms, account=scene.SUBMITTER)


@pytest.fixture(scope="module")
def sensors(installed: Lab) -> None:
    """They become ready while other runs go on."""
    hostile_sensors.place(installed, OF_A_SENSOR)


@pytest.fixture(scope="module")
def by_sensor(installed: Lab, ended: Mapping[str, tuple[Json, str]]) -> Mapping[str, Tried]:
    """The controller is down meanwhile, so what runs must have ended."""
    return hostile_sensors.tell(installed, tuple(OF_A_SENSOR), kept=RUN_ANYWAY)


@pytest.fixture(scope="module")
def ended(installed: Lab, sensors: None) -> Mapping[str, tuple[Json, str]]:
    """Runs with hostile values: each as it ended, and what its pods wrote. In all parameters of a step at once, to see how it comes
    to a step; in one alone where it goes elsewhere."""
    lab, runs = installed, dict[str, str]()
    free = [name for template, name in hostile.PARAMETERS if template == "release-check" and name != "node"]
    looks = [name for template, name in hostile.PARAMETERS if template == "sweep" and name != "dry-run"]
    for kind, value in PLAIN.items():
        runs[kind] = scene.submit(lab, "release-check", {**dict.fromkeys(free, value), "node": lab.node})
    runs["sweep"] = scene.submit(lab, "sweep", dict.fromkeys(looks, PLAIN["quotes"]))
    taken, words = doors.by_server(lab, "release-check", {"uid": PLAIN["quotes"], "node": lab.node}, dry_run=False)
    assert taken, words
    runs["by-server"] = json.loads(words)["metadata"]["name"]
    for cell in (Cell(template, name, kind) for template, name in BESIDE_A_STEP for kind in PLAIN):
        runs[cell.name] = scene.submit(lab, cell.template, cell.arguments(node=cell.name))
    return {kind: (scene.finish(lab, name), logs_of(lab, name)) for kind, name in runs.items()}


def logs_of(lab: Lab, run: str) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in sorted((lab.evidence / run / "logs").glob("*.log")))


@pytest.fixture(scope="module", params=sorted(SAID_BY))
def door(request: pytest.FixtureRequest) -> tuple[str, Mapping[str, Tried]]:
    """One of the three doors, and what became of every cell there."""
    return request.param, request.getfixturevalue(request.param)


@pytest.mark.parametrize(("template", "parameter"), hostile.PARAMETERS)
def test_a_hostile_value_is_refused_where_argo_would_evaluate_it_and_else_stays_as_it_was_given(
    door: tuple[str, Mapping[str, Tried]], template: str, parameter: str
) -> None:
    name, tried = door
    for cell in hostile.cells_of(template, parameter):
        seen = tried[cell.name]
        if cell.kind in PLAIN:
            assert seen.argument(parameter) == cell.value, (cell.name, seen.words)
        else:
            assert seen.made is None, cell.name
            assert any(words in seen.words for words in SAID_BY[name]), (cell.name, seen.words)


@pytest.mark.parametrize("kind", [*PLAIN, "sweep", "by-server"])
def test_what_is_no_value_reaches_the_step_as_text_and_is_refused_with_a_sentence(
    ended: Mapping[str, tuple[Json, str]], kind: str
) -> None:
    workflow, log = ended[kind]
    assert workflow["status"]["phase"] == "Failed", scene.phases(workflow)
    assert " got " in log
    assert "; give " in log
    assert "uid=0(" not in log
    assert "Traceback" not in log


@pytest.mark.parametrize(("template", "parameter"), BESIDE_A_STEP)
def test_a_hostile_value_that_goes_into_a_nodes_name_or_a_condition_runs_nothing(
    ended: Mapping[str, tuple[Json, str]], template: str, parameter: str
) -> None:
    for cell in (Cell(template, parameter, kind) for kind in PLAIN):
        workflow, log = ended[cell.name]
        at_its_end = f"{workflow['metadata']['name']}.onExit"
        pods = [one for one in workflow["status"]["nodes"].values() if one["type"] == "Pod" and at_its_end not in one["name"]]
        assert {one["phase"] for one in pods} <= {"Error", "Failed"}, scene.phases(workflow)
        assert "uid=0(" not in log
        assert "Traceback" not in log


@pytest.mark.parametrize("name", sorted(OF_A_SENSOR))
def test_a_sensor_cannot_make_a_workflow_of_its_own_either_and_leaves_an_event(by_sensor: Mapping[str, Tried], name: str) -> None:
    for kind in hostile.VALUES:
        assert by_sensor[f"{name}-{kind}"] == Tried(None, "WorkflowNotCreated")


def test_a_sensors_plain_text_reaches_the_step_as_text(by_sensor: Mapping[str, Tried], lab: Lab) -> None:
    assert by_sensor[RUN_ANYWAY.name].made is not None
    ended = scene.finish(lab, RUN_ANYWAY.name)
    assert ended["status"]["phase"] == "Failed"
    assert "--uid got" in logs_of(lab, RUN_ANYWAY.name)


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
