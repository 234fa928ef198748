"""Every hostile value in every parameter through Sensors: one event a value, one trigger a parameter, and no controller, so that
nothing runs of what is made.

Whoever can write a Sensor is not kept by any form; and an event's text comes from outside.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sensors.common import API, From, Start, metadata, pod_template, sensor
from tests import hostile
from tests.cluster.doors import Tried, asked
from tests.cluster.events_scene import wait_ready
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab
from tests.cluster.lab.places import CHECKOUT
from tests.hostile import Cell

NAME: Final = "hostile"
EVENT: Final = "given"
PORT: Final = 12000
ENDPOINT: Final = "/given"
SENSORS: Final = tuple(f"{NAME}-{number}" for number in range(6))
"""A Sensor has one client for all its triggers, which asks the API server five times a second."""
KIND: Final = From(data="body.kind")
VALUE: Final = From(data="body.value")
COME_S: Final = 60.0


def place(lab: Lab, others: Mapping[str, Json]) -> None:
    """The source and the Sensors, with the accounts that deploy/events gives them; does not wait for their pods. others: by name,
    specs of Workflows that each event tries to create as well."""
    lab.events()
    for name in ("accounts.yaml", "roles.yaml"):
        lab.kubectl.apply(CHECKOUT / "deploy" / "events" / name, namespace=lab.namespace)
    lab.kubectl.apply(_source(), *_sensors([*_of_parameters(lab), *_of_specs(others)]))


def tell(lab: Lab, others: Sequence[str], *, kept: Cell) -> dict[str, Tried]:
    """Send every value, wait until each trigger has made its Workflow or left its Event, and take all Workflows away again but that
    of `kept`, which runs when the controller is back. Returns what came, by the cell's name or `<other>-<kind>`."""
    wait_ready(lab, NAME, *SENSORS)
    triggers = len(hostile.PARAMETERS) + len(others)
    lab.kubectl.wait("every trigger listens", lambda: _log(lab).count("Subscribing to subject") >= triggers, within_s=30)
    expected = [f"{trigger}-{kind}" for trigger in (*_places(), *others) for kind in hostile.VALUES]
    try:
        with lab.without("workflow-controller"):
            _send(lab)
            come = _wait_for(lab, expected)
            made = [name for name, one in come.items() if one.made is not None and name != kept.name]
            lab.kubectl("delete", "workflow", *made, f"--namespace={lab.namespace}", "--wait=false", timeout_s=60)
    finally:
        lab.kubectl("delete", "sensor", *SENSORS, f"--namespace={lab.namespace}", "--wait=false")
        lab.kubectl("delete", "eventsource", NAME, f"--namespace={lab.namespace}", "--wait=false")
    return come


def _places() -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.place for one in hostile.CELLS))


def _source() -> Json:
    return {
        "apiVersion": API,
        "kind": "EventSource",
        "metadata": metadata(NAME),
        "spec": {
            "eventBusName": "default",
            "template": pod_template("eventsource"),
            "webhook": {EVENT: {"endpoint": ENDPOINT, "port": str(PORT), "method": "POST"}},
        },
    }


def _sensors(triggers: Sequence[Json]) -> Iterator[Json]:
    for number, name in enumerate(SENSORS):
        made = sensor(name, NAME, EVENT, Start("", "", (), {}))
        made["spec"]["triggers"] = triggers[number :: len(SENSORS)]
        yield made


def _of_parameters(lab: Lab) -> Iterator[Json]:
    for template, parameter in hostile.PARAMETERS:
        arguments: dict[str, From | str] = {**hostile.right(template, lab.node), parameter: VALUE}
        yield _trigger(f"{template}-{parameter}", Start(template, f"{template}-{parameter}", (KIND,), arguments))


def _of_specs(specs: Mapping[str, Json]) -> Iterator[Json]:
    for name, spec in specs.items():
        made = _trigger(name, Start("", name, (KIND,), {}))
        made["template"]["k8s"]["source"]["resource"]["spec"] = spec
        yield made


def _trigger(name: str, start: Start) -> Json:
    """As shipped, but for its name and without a second try: what the API server refuses it refuses again."""
    made: Json = sensor(NAME, NAME, EVENT, start)["spec"]["triggers"][0]
    made["retryStrategy"] = {"steps": 1}
    made["template"]["name"] = name
    made["dlqTrigger"]["template"]["name"] = f"{name}-failed"
    return made


def _log(lab: Lab) -> str:
    selector = f"sensor-name in ({','.join(SENSORS)})"
    return lab.kubectl("logs", f"--selector={selector}", f"--namespace={lab.namespace}", "--tail=-1", "--max-log-requests=20")


def _send(lab: Lab) -> None:
    pods = lab.kubectl.list("pod", lab.namespace, selector=f"eventsource-name={NAME}")
    url = f"http://{pods[-1]['status']['podIP']}:{PORT}{ENDPOINT}"
    answers = asked(lab, url, [{"kind": kind, "value": value} for kind, value in hostile.VALUES.items()])
    if not all(taken for taken, _ in answers):
        raise LabError(f"the event source answers {answers}")


def _wait_for(lab: Lab, expected: Sequence[str]) -> dict[str, Tried]:
    come: dict[str, Tried] = {}

    def all_there() -> bool:
        come.update((name, Tried(None, words)) for name, words in _refusals(lab))
        come.update((one["metadata"]["name"], Tried(one)) for one in lab.kubectl.list("workflow", lab.namespace))
        return set(expected) <= set(come)

    try:
        lab.kubectl.wait("each trigger has made its Workflow or left its Event", all_there, within_s=COME_S)
    except LabError as error:
        raise LabError(f"{error}; {sorted(set(expected) - set(come))} are missing") from error
    return {name: come[name] for name in expected}


def _refusals(lab: Lab) -> Iterator[tuple[str, str]]:
    """(what could not be made, reason) of every Event that a dead-letter trigger left."""
    for one in lab.kubectl.list("event", lab.namespace):
        before, failed, kind = str(one["metadata"]["name"]).partition("-failed-")
        if failed and one["type"] == "Warning":
            yield f"{before}-{kind}", str(one["reason"])
