"""The rendered events: what the Python renders, closed schemas, our own rules, and that each of those can fail."""

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from sensors import MANIFESTS, bus, pods
from sensors.render import OBJECTS, files
from steps.adapters.kubernetes.pods import is_gpu_resource
from steps.contracts.declaration import Form
from tests.manifests import event_rules as rules
from tests.manifests.closed_schema import problems
from workflows import MANIFESTS as WORKFLOWS
from workflows.render import TEMPLATES

Objects = list[dict[str, Any]]


def objects_of(name: str) -> Objects:
    return list(yaml.safe_load_all((MANIFESTS / name / f"{name}.yaml").read_text(encoding="utf-8")))


ALL: Objects = [one for name in OBJECTS for one in objects_of(name)]
TEMPLATES_WRITTEN: Objects = [
    yaml.safe_load((WORKFLOWS / f"{name}.yaml").read_text(encoding="utf-8")) for name in sorted(TEMPLATES)
]


@pytest.mark.parametrize("path", sorted(files()))
def test_the_committed_manifest_is_what_the_python_renders(path: str) -> None:
    committed = (MANIFESTS / path).read_text(encoding="utf-8")
    assert committed == files()[path], f"{path} is stale: run `python -m sensors.render` and read the diff"


def test_no_manifest_outlives_its_python() -> None:
    assert {str(path.relative_to(MANIFESTS)) for path in MANIFESTS.rglob("*") if path.is_file()} == set(files())


@pytest.mark.parametrize("one", ALL, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_an_object_has_no_field_that_argo_does_not_know(one: dict[str, Any]) -> None:
    assert problems(one) == []


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_the_events_keep_our_rule(rule: Callable[[Any, Any], list[str]]) -> None:
    assert rule(ALL, TEMPLATES_WRITTEN) == []


def test_a_misplaced_field_breaks_the_closed_schema() -> None:
    sensor = copy.deepcopy(named("Sensor", "pod-deleted"))
    sensor["spec"]["triggers"][0]["template"]["atLeastOnce"] = True
    assert any("atLeastOnce" in problem for problem in problems(sensor))


def named(kind: str, name: str, objects: Objects = ALL) -> dict[str, Any]:
    return next(one for one in objects if one["kind"] == kind and one["metadata"]["name"] == name)


def trigger(objects: Objects, name: str = "pod-deleted") -> dict[str, Any]:
    found: dict[str, Any] = named("Sensor", name, objects)["spec"]["triggers"][0]
    return found


def resource(objects: Objects) -> dict[str, Any]:
    found: dict[str, Any] = named("EventSource", "pods", objects)["spec"]["resource"]["deleted"]
    return found


def created(objects: Objects) -> dict[str, Any]:
    found: dict[str, Any] = trigger(objects)["template"]["k8s"]["source"]["resource"]
    return found


BREAKS: dict[Callable[[Any, Any], list[str]], list[Callable[[Objects], Any]]] = {
    rules.dependencies_exist: [lambda o: named("Sensor", "tick", o)["spec"]["dependencies"][0].update(eventName="swep")],
    rules.conditions_are_named: [
        lambda o: trigger(o)["template"].pop("conditions"),
        lambda o: trigger(o)["template"]["k8s"]["parameters"][0]["src"].update(dependencyName="delted"),
    ],
    rules.delivered_at_least_once: [
        lambda o: trigger(o).pop("atLeastOnce"),
        lambda o: trigger(o)["template"].update(atLeastOnce=True),
        lambda o: trigger(o).pop("retryStrategy"),
    ],
    rules.failures_are_left_somewhere: [lambda o: trigger(o).pop("dlqTrigger")],
    rules.names_are_deterministic: [
        lambda o: trigger(o)["template"]["k8s"]["parameters"].pop(2),
        lambda o: created(o)["metadata"].update(name="Release_"),
        lambda o: created(o)["metadata"].update(generateName=created(o)["metadata"].pop("name")),
        lambda o: trigger(o)["template"]["k8s"]["parameters"][0].pop("operation"),
    ],
    rules.values_are_keys: [
        lambda o: trigger(o)["template"]["k8s"]["parameters"][3]["src"].update(dataTemplate="{{ .Input.body }}"),
        lambda o: trigger(o)["template"]["k8s"]["parameters"][6]["src"].pop("value"),
    ],
    rules.workflows_are_by_reference: [
        lambda o: created(o)["spec"].update(serviceAccountName="stopper"),
        lambda o: created(o)["spec"]["workflowTemplateRef"].update(nme="x"),
    ],
    rules.arguments_match_the_template: [
        lambda o: created(o)["spec"]["arguments"]["parameters"][3].update(name="nod"),
        lambda o: created(o)["spec"]["arguments"]["parameters"].pop(0),
        lambda o: trigger(o)["template"]["k8s"]["parameters"][3].update(dest="spec.arguments.parameters.7.value"),
    ],
    rules.no_trigger_writes_bodies: [lambda o: trigger(o)["template"].update(log={"intervalSeconds": 1})],
    rules.sources_filter_early: [
        lambda o: resource(o).pop("filter"),
        lambda o: resource(o)["filter"]["fields"].pop(0),
        lambda o: resource(o)["filter"].update(afterStart=True),
    ],
    rules.bus_keeps_little: [
        lambda o: named("EventBus", "default", o)["spec"]["jetstream"].update(streamConfig="maxAge: 168h\n"),
        lambda o: named("EventBus", "default", o)["spec"]["jetstream"].update(version="latest"),
    ],
    rules.pods_are_confined: [
        lambda o: named("EventSource", "ticks", o)["spec"]["template"].update(serviceAccountName="stopper"),
        lambda o: named("EventSource", "tags", o)["spec"]["template"].update(serviceAccountName="eventsource"),
    ],
}


@pytest.mark.parametrize(
    ("rule", "broken"),
    [(rule, broken) for rule in rules.RULES for broken in BREAKS[rule]],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_rule_finds_what_breaks_it(rule: Callable[[Any, Any], list[str]], broken: Callable[[Objects], Any]) -> None:
    objects = copy.deepcopy(ALL)
    broken(objects)
    assert rule(objects, TEMPLATES_WRITTEN) != []


@pytest.mark.parametrize(
    "resources",
    [
        '"cpu":"1"',
        '"nvidia.com/gpu":"0"',
        '"nvidia.com/gpu":"1"',
        '"nvidia.com/gpu":"16"',
        '"nvidia.com/gpu.shared":"2"',
        '"nvidia.com/mig-1g.10gb":"1"',
        '"nvidia.com/mig-1g.10gb":"0"',
        '"example.com/nvidia.com-gpu":"1"',
        '"nvidia.com/gpumem":"1000"',
    ],
)
def test_the_source_takes_for_a_gpu_what_the_survey_takes_for_one(resources: str) -> None:
    """The list of limits as the source makes it text; that it does so was seen on a real one (docs/events.md)."""
    name, quantity = (part.strip('"') for part in resources.split(":"))
    asked = re.search(pods.ASKED_FOR_A_GPU["value"], f"[[{{{resources}}}],[]]") is not None
    assert asked == (is_gpu_resource(name) and quantity != "0")


def test_the_container_ids_of_an_event_are_what_the_step_takes() -> None:
    """Ids as a real source joined them into one list, and none at all."""
    for listed in ("[]", '["containerd://0123456789ab","containerd://ba9876543210"]', '[""]'):
        assert re.fullmatch(Form.CONTAINER_IDS.value[0], listed)


def test_a_small_bus_and_an_existing_one_keep_events_as_long_as_the_standard_one() -> None:
    ages = {re.search("maxAge: .*", bus.STREAM.format(replicas=replicas)) is not None for replicas in (1, 3)}
    assert ages == {True}
    assert bus.existing_bus(1)["spec"]["jetstreamExotic"]["streamConfig"] == bus.STREAM.format(replicas=1)
