"""The three doors through which a Workflow comes in: kubectl, Argo's own server as its web page uses it, and a Sensor."""

import json
import sys
from collections.abc import Mapping
from typing import Any, Final

from sensors import ticks
from sensors.common import From, Start, sensor
from tests.cluster.events_scene import wait_ready
from tests.cluster.lab.commands import ran
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab
from tests.cluster.scene import SUBMITTER

TICK: Final = "hostile"
_POST: Final = """
import sys, urllib.error, urllib.request
request = urllib.request.Request(sys.argv[1], sys.stdin.buffer.read(), {"Content-Type": "application/json"})
try:
    print(urllib.request.urlopen(request, timeout=20).read().decode())
except urllib.error.HTTPError as error:
    sys.exit(error.read().decode())
"""


def spec_of(template: str, arguments: Mapping[str, str], **more: Any) -> Json:
    parameters = [{"name": name, "value": value} for name, value in arguments.items()]
    return {"workflowTemplateRef": {"name": template}, "arguments": {"parameters": parameters}, **more}


def by_kubectl(lab: Lab, spec: Json) -> str | None:
    """Try to create it, without doing so, as the submitter. Returns the server's words if it was refused."""
    workflow = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"generateName": "tried-", "namespace": lab.namespace},
        "spec": spec,
    }
    tried = lab.kubectl.ran("create", "--filename=-", "--dry-run=server", stdin=json.dumps(workflow), account=SUBMITTER)
    return tried.stderr if tried.returncode else None


def by_server(
    lab: Lab, template: str, arguments: Mapping[str, str], *, dry_run: bool = True, options: Mapping[str, str] | None = None
) -> tuple[bool, str]:
    """Submit as the web page's form does. options: more of its fields. Returns whether it was taken, and the answer."""
    body = {
        "namespace": lab.namespace,
        "resourceKind": "WorkflowTemplate",
        "resourceName": template,
        "submitOptions": {
            "parameters": [f"{name}={value}" for name, value in arguments.items()],
            "serverDryRun": dry_run,
            "generateName": "by-server-",
            **(options or {}),
        },
    }
    return _post(lab, f"{lab.argo_server()}/api/v1/workflows/{lab.namespace}/submit", body)


def create_by_server(lab: Lab, spec: Json) -> tuple[bool, str]:
    """Hand Argo's server a whole Workflow, as its web page's editor does."""
    workflow = {"metadata": {"generateName": "by-server-", "namespace": lab.namespace}, "spec": spec}
    return _post(lab, f"{lab.argo_server()}/api/v1/workflows/{lab.namespace}", {"serverDryRun": True, "workflow": workflow})


def _post(lab: Lab, url: str, body: Json) -> tuple[bool, str]:
    done = ran(lab.inside(sys.executable, "-c", _POST, url), timeout_s=30, stdin=json.dumps(body))
    return done.returncode == 0, done.stdout + done.stderr


def by_sensors(lab: Lab, specs: Mapping[str, Json]) -> None:
    """Let a Sensor for each try to create such a Workflow at the next tick; what was refused leaves an Event of its prefix."""
    made = []
    for name, spec in specs.items():
        one = sensor(name, ticks.SOURCE, TICK, Start("release-check", name, (From(context="id"),), {}))
        trigger = one["spec"]["triggers"][0]
        trigger["retryStrategy"] = {"steps": 1}
        trigger["template"]["k8s"]["source"]["resource"]["spec"] = spec
        made.append(one)
    lab.kubectl.apply(*made)
    wait_ready(lab, *specs)
    source = ticks.source()
    source["spec"]["calendar"] = {TICK: {"interval": "5s"}}
    lab.kubectl.apply(source)
    try:
        lab.kubectl.wait(
            "each sensor has tried", lambda: all(made_by(lab, name) or refusals_of(lab, name) for name in specs), within_s=60
        )
    finally:
        lab.kubectl.delete("eventsource", ticks.SOURCE, lab.namespace)
        for name in specs:
            lab.kubectl.delete("sensor", name, lab.namespace)


def made_by(lab: Lab, name: str) -> list[Json]:
    """The Workflows that a sensor of that name made."""
    return [one for one in lab.kubectl.list("workflow", lab.namespace) if one["metadata"]["name"].startswith(f"{name}-")]


def refusals_of(lab: Lab, name: str) -> list[Json]:
    """The Events that say that it could not make one."""
    return [one for one in lab.kubectl.list("event", lab.namespace) if one["metadata"]["name"].startswith(f"{name}-failed-")]
