"""A version tag is pushed to GitHub or Gitea: the termination experiment runs, and its evidence names tag and commit.

Both forges sign the body with the hook's secret, and both say `push` for a tag, with the commit that it points to. Their event
`create` would not do: GitHub's carries no commit at all, Gitea's the id of the tag object where the tag is annotated.

Where each refusal is counted: what is wrongly signed or not signed never leaves the source; every other push reaches the Sensor,
whose filters take only a new tag of the allowed form, in one repository (docs/experiments.md).
"""

from dataclasses import replace
from typing import Final

from sensors.common import API, From, Json, Start, metadata, pod_template, sensor

SOURCE: Final = "tags"
PUSHED: Final = "pushed"
ACCOUNT: Final = "hook"
"""Without any right and without a token: this pod is reached from outside, and a github source asks nothing of the API."""
PORT: Final = 12000
ENDPOINT: Final = "/push"
SECRET: Final = "gpu-reclaim-webhook"
"""Holds the hook's secret under the key `secret`. Without the Secret the source's pod does not start; an empty value would mean
that nothing is verified, so the admission policy of deploy/tags refuses one."""

OWNER: Final = "your-organisation"
REPOSITORY: Final = "your-repository"
NODE: Final = "your-gpu-node"
"""Placeholders, which deploy/tags puts right: the repository, and the node that the experiment may have for itself."""

TAG: Final = r"v[0-9]{1,6}\.[0-9]{1,6}\.[0-9]{1,6}(-[a-z0-9.]{1,40})?"
"""The tags that start a run, without braces, blanks, quotes: a value that Argo would evaluate has no such form. Each pattern below
is anchored, since a filter of Argo Events matches anywhere."""
COMMIT: Final = "[0-9a-f]{40}([0-9a-f]{24})?"
DELIVERY: Final = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""A UUID with both forges. It becomes the run's name, so a delivery that is sent again finds its name taken."""

START: Final = Start(
    template="zombie-experiment",
    prefix="zombie",
    name=(From("body.X-GitHub-Delivery"),),
    arguments={"node": NODE, "tag": From("body.tag"), "commit": From("body.head_commit.id")},
    instead="Nothing makes up for it: deliver the hook again from the forge's page, or start the run from the Argo UI.",
)

SHORT_NAME: Final = '.body.tag = (.body.ref | if type == "string" then ltrimstr("refs/tags/") else null end)'
"""jq. The ref stays beside it: it alone tells a tag from a branch of the same name."""


def source(owner: str = OWNER, repository: str = REPOSITORY) -> Json:
    """An HTTP endpoint that takes signed bodies only. owner, repository: the source wants to be told, but does not compare them."""
    return {
        "apiVersion": API,
        "kind": "EventSource",
        "metadata": metadata(SOURCE),
        "spec": {
            "eventBusName": "default",
            "template": pod_template(ACCOUNT),
            "service": {"ports": [{"port": PORT, "targetPort": PORT}]},
            "github": {
                PUSHED: {
                    "repositories": [{"owner": owner, "names": [repository]}],
                    "webhook": {"endpoint": ENDPOINT, "port": str(PORT), "method": "POST"},
                    "webhookSecret": {"name": SECRET, "key": "secret"},
                }
            },
        },
    }


def tag_pushed(owner: str = OWNER, repository: str = REPOSITORY, node: str = NODE) -> Json:
    """The Sensor that starts zombie-experiment. Of a tag that was deleted neither forge names a commit."""
    only = {
        "transform": {"jq": SHORT_NAME},
        "filters": {
            "data": [
                _is("body.X-GitHub-Event", "push"),
                _is("body.repository.full_name", f"{owner}/{repository}".replace(".", r"\.")),
                _is("body.ref", f"refs/tags/{TAG}"),
                _is("body.head_commit.id", COMMIT),
                _is("body.X-GitHub-Delivery", DELIVERY),
            ]
        },
    }
    start = replace(START, arguments={**START.arguments, "node": node})
    return sensor("tag-pushed", SOURCE, PUSHED, start, only=only)


def _is(path: str, pattern: str) -> Json:
    return {"path": path, "type": "string", "value": [f"^{pattern}$"]}
