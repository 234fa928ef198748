"""The doors through which a Workflow comes in: kubectl, and Argo's own server as its web page uses it. The third, a Sensor, is in
hostile_sensors.py."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.cluster.lab.commands import output_of
from tests.cluster.lab.kubectl import Json, objects
from tests.cluster.lab.lab import Lab
from tests.cluster.scene import SUBMITTER

_ASK: Final = """
import http.client, json, sys, urllib.parse
address = urllib.parse.urlsplit(sys.argv[1])
headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {sys.argv[2]}"} if sys.argv[2:] else {})
link = http.client.HTTPConnection(address.hostname, address.port, timeout=20)
answers = []
for body in json.load(sys.stdin):
    link.request("GET" if body is None else "POST", address.path, None if body is None else json.dumps(body), headers)
    answer = link.getresponse()
    answers.append([answer.status, answer.read().decode()])
print(json.dumps(answers))
"""
_REFUSED: Final = re.compile(r'workflows\.argoproj\.io "([-a-z0-9]+)" is forbidden')


@dataclass(frozen=True, slots=True)
class Tried:
    """made: the Workflow as the server keeps it, or would have kept it; None where it was refused, with words that say so."""

    made: Json | None
    words: str = ""

    def argument(self, name: str) -> str | None:
        """The text that the Workflow has for this parameter."""
        given = [] if self.made is None else self.made["spec"]["arguments"]["parameters"]
        return next((one["value"] for one in given if one["name"] == name), None)


def spec_of(template: str, arguments: Mapping[str, str], **more: Any) -> Json:
    parameters = [{"name": name, "value": value} for name, value in arguments.items()]
    return {"workflowTemplateRef": {"name": template}, "arguments": {"parameters": parameters}, **more}


def by_kubectl(lab: Lab, spec: Json) -> str | None:
    """Try to create it, without doing so, as the submitter. Returns the server's words if it was refused."""
    tried = each_by_kubectl(lab, {"tried": spec})["tried"]
    return None if tried.made is not None else tried.words


def each_by_kubectl(lab: Lab, specs: Mapping[str, Json]) -> dict[str, Tried]:
    """Try each by its name as by_kubectl does, for one start of kubectl."""
    workflows = [
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"name": name, "namespace": lab.namespace},
            "spec": spec,
        }
        for name, spec in specs.items()
    ]
    many = json.dumps({"apiVersion": "v1", "kind": "List", "items": workflows})
    told = lab.kubectl.ran(
        "create", "--filename=-", "--dry-run=server", "--output=json", stdin=many, account=SUBMITTER, timeout_s=60
    )
    made = {one["metadata"]["name"]: Tried(one) for one in objects(told.stdout)}
    refused = {found[1]: Tried(None, line) for line in told.stderr.splitlines() if (found := _REFUSED.search(line))}
    return {name: made.get(name) or refused.get(name) or Tried(None, told.stderr) for name in specs}


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
    ((taken, words),) = _submitted(lab, [_form(lab, template, arguments, dry_run, options or {})], account)
    return taken, words


def each_by_server(lab: Lab, forms: Mapping[str, tuple[str, Mapping[str, str]]], *, account: str) -> dict[str, Tried]:
    """Submit each (template, arguments) without starting it, with that account's token, over one connection."""
    bodies = [_form(lab, template, arguments, True, {}) for template, arguments in forms.values()]
    answers = _submitted(lab, bodies, account)
    tried = [Tried(json.loads(words)) if taken else Tried(None, words) for taken, words in answers]
    return dict(zip(forms, tried, strict=True))


def _submitted(lab: Lab, bodies: Sequence[Json], account: str | None) -> list[tuple[bool, str]]:
    return asked(lab, f"{lab.argo_server()}/api/v1/workflows/{lab.namespace}/submit", bodies, account)


def _form(lab: Lab, template: str, arguments: Mapping[str, str], dry_run: bool, options: Mapping[str, str]) -> Json:
    return {
        "namespace": lab.namespace,
        "resourceKind": "WorkflowTemplate",
        "resourceName": template,
        "submitOptions": {
            "parameters": [f"{name}={value}" for name, value in arguments.items()],
            "serverDryRun": dry_run,
            "generateName": "by-server-",
            **options,
        },
    }


def ask_server(lab: Lab, path: str, body: Json | None = None, *, account: str) -> tuple[bool, str]:
    """Read at Argo's server, or post where there is a body, with an account's token."""
    (answer,) = asked(lab, f"{lab.argo_server()}/api/v1/{path}", [body], account)
    return answer


def create_by_server(lab: Lab, spec: Json) -> tuple[bool, str]:
    """Hand Argo's server a whole Workflow, as its web page's editor does."""
    workflow = {"metadata": {"generateName": "by-server-", "namespace": lab.namespace}, "spec": spec}
    body = {"serverDryRun": True, "workflow": workflow}
    (answer,) = asked(lab, f"{lab.argo_server()}/api/v1/workflows/{lab.namespace}", [body])
    return answer


def asked(lab: Lab, url: str, bodies: Sequence[Json | None], account: str | None = None) -> list[tuple[bool, str]]:
    """Whether each body was taken there, and the answer; one connection for all. None: read instead of post."""
    token = [] if account is None else [_token(lab, account)]
    told = output_of(lab.inside(sys.executable, "-c", _ASK, url, *token), timeout_s=90, stdin=json.dumps(list(bodies)))
    return [(status < 300, words) for status, words in json.loads(told)]


def _token(lab: Lab, account: str) -> str:
    """A token of a service account, "namespace:name", good for an hour."""
    namespace, _, name = account.partition(":")
    return lab.kubectl("create", "token", name, f"--namespace={namespace}").strip()
