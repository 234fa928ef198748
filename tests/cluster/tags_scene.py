"""A forge before the test cluster: its hook posts deliveries to the event source, most of which must start nothing, and one run of
the termination experiment that does."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sensors import tags
from tests import forge
from tests.cluster import zombie_scene
from tests.cluster.events_scene import wait_ready
from tests.cluster.lab.commands import output_of, ran
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab
from tests.cluster.lab.places import CHECKOUT
from tests.forge import Delivery

DEPLOYED: Final = CHECKOUT / "deploy" / "tags"
TAG: Final = "v1.2.3"
OTHER_TAG: Final = "v1.2.4-rc.1"
THE_SECRET: Final = "f4b0c2d6e8a1937560f4b0c2d6e8a193"
METRICS_PORT: Final = 7777
TRIGGER: Final = f'trigger_name="{tags.START.template}"'
STARTED_S: Final = 60.0
_POST: Final = """
import json, sys, urllib.error, urllib.request
given = json.load(sys.stdin)
request = urllib.request.Request(sys.argv[1], given["body"].encode(), given["headers"])
try:
    answer = urllib.request.urlopen(request, timeout=20)
except urllib.error.HTTPError as error:
    answer = error
print(json.dumps([answer.status, answer.read().decode()]))
"""
_GET: Final = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    words: str


@dataclass(frozen=True, slots=True)
class Counted:
    """What the pods of source and Sensor say of themselves. refused: their creation of the Workflow, as when its name is taken."""

    requests: int
    published: int
    started: int
    refused: int


@dataclass(frozen=True, slots=True)
class Story:
    """What was posted and what came of it. run: name of the experiment that runs. turned_away, let_go: the hook's answers, by what
    was sent. by_gitea: the second run as it was made, deleted while it waited for the first. settled: counts after all of it."""

    run: str
    turned_away: Mapping[str, Answer]
    let_go: Mapping[str, Answer]
    before: Counted
    by_gitea: Json
    again: Answer
    settled: Counted
    runs: tuple[str, ...]


def install(lab: Lab) -> None:
    """Events without the sources of the clock and of deleted pods, whose checks would run beside the experiment; then what is
    shipped for tags, with repository and node of this lab."""
    zombie_scene.install(lab, **zombie_scene.QUICK)
    lab.events()
    for name in ("accounts.yaml", "roles.yaml"):
        lab.kubectl.apply(CHECKOUT / "deploy" / "events" / name, namespace=lab.namespace)
    lab.kubectl("delete", "eventsource", "--all", f"--namespace={lab.namespace}")
    lab.kubectl.apply(DEPLOYED / "accounts.yaml")
    lab.kubectl.apply(DEPLOYED / "secret-policy.yaml", secret(lab, THE_SECRET))
    owner, repository = forge.REPOSITORY.split("/")
    lab.kubectl.apply(tags.source(owner, repository), tags.tag_pushed(owner, repository, lab.node))
    wait_ready(lab, tags.SOURCE, "tag-pushed")
    lab.kubectl.wait("the source listens", lambda: "OK" in _get(lab, f"{_address(lab)}/health"), within_s=30)
    lab.kubectl.wait("the Sensor listens", lambda: "Subscribing to subject" in log_of_sensor(lab), within_s=30)


def secret(lab: Lab, value: str) -> Json:
    """The Secret of the hook."""
    metadata = {"name": tags.SECRET, "namespace": lab.namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"secret": value}}


def tell(lab: Lab) -> Story:
    """First what must start nothing, then a tag of GitHub's, one of Gitea's while the first runs, and the first once more."""
    install(lab)
    turned_away = {name: post(lab, *given) for name, given in _turned_away().items()}
    let_go = {name: post(lab, one, one.github(THE_SECRET)) for name, one in _let_go().items()}
    lab.kubectl.wait("the Sensor has seen them", lambda: log_of_sensor(lab).count("not interested") == len(let_go), within_s=30)
    before = counted(lab)
    tag = forge.github_push(f"refs/tags/{TAG}", annotated=True)
    by_gitea = forge.gitea_push(f"refs/tags/{OTHER_TAG}")
    started(lab, tag, tag.github(THE_SECRET))
    second = started(lab, by_gitea, by_gitea.gitea(THE_SECRET))
    lab.kubectl.delete("workflow", second["metadata"]["name"], lab.namespace)
    again = post(lab, tag, tag.github(THE_SECRET))
    lab.kubectl.wait("the Sensor has tried again", lambda: counted(lab).refused > 0, within_s=90)
    return Story(
        run=name_of(tag),
        turned_away=turned_away,
        let_go=let_go,
        before=before,
        by_gitea=second,
        again=again,
        settled=counted(lab),
        runs=runs(lab),
    )


def _turned_away() -> Mapping[str, tuple[Delivery, Mapping[str, str]]]:
    tag = forge.github_push(f"refs/tags/{TAG}")
    signed = tag.github(THE_SECRET)
    unsigned = {name: value for name, value in signed.items() if "Signature" not in name}
    return {
        "wrong signature": (tag, tag.github("another secret")),
        "wrong signature of Gitea's": (tag, tag.gitea("another secret")),
        "missing signature": (tag, unsigned),
        "empty signature": (tag, {**unsigned, "X-Hub-Signature-256": "sha256="}),
        "signature of another body": (forge.github_push("refs/tags/v6.6.6"), signed),
    }


def _let_go() -> Mapping[str, Delivery]:
    push = forge.github_push
    return {
        "branch push": push("refs/heads/main"),
        "branch named like a tag": push(f"refs/heads/{TAG}"),
        "tag deletion": push(f"refs/tags/{TAG}", deleted=True),
        "tag deletion of Gitea's": forge.gitea_push(f"refs/tags/{TAG}", deleted=True),
        "other event": forge.github_create(TAG),
        "ping": forge.github_ping(),
        "tag that would be evaluated": push("refs/tags/v{{=1+41}}"),
        "tag of another form": push("refs/tags/nightly"),
        "other repository": Delivery("push", {**push(f"refs/tags/{TAG}").body, "repository": {"full_name": "a/fork"}}),
    }


def started(lab: Lab, delivery: Delivery, headers: Mapping[str, str]) -> Json:
    """The Workflow that a delivery starts."""
    answer = post(lab, delivery, headers)
    if answer.status != 200:
        raise LabError(f"the event source answers a signed tag with {answer.status}: {answer.words}")
    name, seen = name_of(delivery), dict[str, Json]()

    def there() -> bool:
        found = lab.kubectl.get("workflow", name, lab.namespace)
        if found is not None and found.get("status", {}).get("phase"):
            seen[name] = found
        return name in seen

    lab.kubectl.wait(f"workflow {name} is there", there, within_s=STARTED_S)
    return seen[name]


def name_of(delivery: Delivery) -> str:
    return f"zombie-{delivery.id}"


def post(lab: Lab, delivery: Delivery, headers: Mapping[str, str]) -> Answer:
    """What the source answers."""
    words = json.dumps({"body": delivery.text, "headers": dict(headers)})
    told = output_of(lab.inside(sys.executable, "-c", _POST, f"{_address(lab)}{tags.ENDPOINT}"), timeout_s=30, stdin=words)
    status, text = json.loads(told)
    return Answer(int(status), str(text))


def runs(lab: Lab) -> tuple[str, ...]:
    """Names of the Workflows that tags made and nobody deleted."""
    names = (one["metadata"]["name"] for one in lab.kubectl.list("workflow", lab.namespace))
    return tuple(sorted(name for name in names if re.fullmatch(rf"zombie-{tags.DELIVERY}", name)))


def counted(lab: Lab) -> Counted:
    """A counter that was never raised is not written, and is zero. The dead letter's trigger has a name of its own."""
    source = _get(lab, f"http://{_ip(lab, 'eventsource-name', tags.SOURCE)}:{METRICS_PORT}/metrics")
    of_sensor = _get(lab, f"http://{_ip(lab, 'sensor-name', 'tag-pushed')}:{METRICS_PORT}/metrics")
    return Counted(
        requests=_sum(source, "event_processing_duration_milliseconds_count"),
        published=_sum(source, "events_sent_total"),
        started=_sum(of_sensor, "action_triggered_total", TRIGGER),
        refused=_sum(of_sensor, "action_failed_total", TRIGGER),
    )


def _sum(metrics: str, name: str, label: str = "") -> int:
    lines = re.findall(rf"^argo_events_{name}\{{([^}}]*)\}} (\S+)$", metrics, re.MULTILINE)
    return sum(int(float(value)) for labels, value in lines if label in labels)


def log_of_sensor(lab: Lab) -> str:
    name = _pod(lab, "sensor-name", "tag-pushed")["metadata"]["name"]
    return lab.kubectl("logs", name, f"--namespace={lab.namespace}", "--container=main")


def _address(lab: Lab) -> str:
    return f"http://{_ip(lab, 'eventsource-name', tags.SOURCE)}:{tags.PORT}"


def _ip(lab: Lab, label: str, name: str) -> str:
    return str(_pod(lab, label, name)["status"]["podIP"])


def _pod(lab: Lab, label: str, name: str) -> Json:
    found = [one for one in lab.kubectl.list("pod", lab.namespace, selector=f"{label}={name}") if one["status"].get("podIP")]
    if not found:
        raise LabError(f"no pod has {label}={name} and an address")
    return found[-1]


def _get(lab: Lab, url: str) -> str:
    """Empty if nothing answers there."""
    done = ran(lab.inside(sys.executable, "-c", _GET, url), timeout_s=20)
    return done.stdout if done.returncode == 0 else ""
