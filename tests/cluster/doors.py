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
token = {"Authorization": f"Bearer {sys.argv[2]}"} if sys.argv[2:] else {}
body = sys.stdin.buffer.read() or None
request = urllib.request.Request(sys.argv[1], body, {"Content-Type": "application/json", **token})
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
    lab: Lab,
    template: str,
    arguments: Mapping[str, str],
    *,
    dry_run: bool = True,
    options: Mapping[str, str] | None = None,
    account: str | None = None,
) -> tuple[bool, str]:
    """Submit as the web page's form does. options: more of its fields. account: "namespace:name" of whose token is sent along, the
    server's own rights if None. Returns whether it was taken, and the answer."""
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
    return _post(lab, f"{lab.argo_server()}/api/v1/workflows/{lab.namespace}/submit", body, account)


def ask_server(lab: Lab, path: str, body: Json | None = None, *, account: str) -> tuple[bool, str]:
    """Read at Argo's server, or post where there is a body, with an account's token."""
    return _post(lab, f"{lab.argo_server()}/api/v1/{path}", body, account)


def create_by_server(lab: Lab, spec: Json) -> tuple[bool, str]:
    """Hand Argo's server a whole Workflow, as its web page's editor does."""
    workflow = {"metadata": {"generateName": "by-server-", "namespace": lab.namespace}, "spec": spec}
    return _post(lab, f"{lab.argo_server()}/api/v1/workflows/{lab.namespace}", {"serverDryRun": True, "workflow": workflow})


def _post(lab: Lab, url: str, body: Json | None, account: str | None = None) -> tuple[bool, str]:
    token = [] if account is None else [_token(lab, account)]
    words = "" if body is None else json.dumps(body)
    done = ran(lab.inside(sys.executable, "-c", _POST, url, *token), timeout_s=30, stdin=words)
    return done.returncode == 0, done.stdout + done.stderr


def _token(lab: Lab, account: str) -> str:
    """A token of a service account, "namespace:name", good for an hour."""
    namespace, _, name = account.partition(":")
    return lab.kubectl("create", "token", name, f"--namespace={namespace}").strip()


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
