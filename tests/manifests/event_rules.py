"""What no schema sees of events: our own rules for a set of sources and sensors (facts/hera-and-argo 4 and 6), each in words."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from tests.manifests.closed_schema import problems

Content = Mapping[str, Any]
Objects = Sequence[Content]

ALWAYS_THERE: Final = frozenset(
    {"body.metadata.uid", "body.metadata.namespace", "body.metadata.name", "body.metadata.resourceVersion", "id"}
)
"""Keys of an event that need no default: every object has them, and every event its id. Besides, a key without which a filter of
the dependency lets nothing through, and what its transform makes of one."""
MADE: Final = re.compile(r"^\.([\w.]+) =")
UNIQUE: Final = (("body.metadata.uid", "body.metadata.resourceVersion"), ("id",), ("body.X-GitHub-Delivery",))
"""What makes a name that the same event makes again and another event does not."""
DNS_PREFIX: Final = re.compile(r"[a-z]([-a-z0-9]{0,15})-")
MAX_AGE: Final = re.compile(r"^maxAge: ([0-9]+)h$", re.MULTILINE)


def dependencies_exist(objects: Objects, templates: Objects) -> list[str]:
    """Each dependency names an event that a source of the set sends."""
    known = {(one["metadata"]["name"], event) for one in of_kind(objects, "EventSource") for event in _events(one)}
    return [
        f"{sensor['metadata']['name']} waits for {dependency['eventSourceName']}/{dependency['eventName']}, which nothing sends"
        for sensor in of_kind(objects, "Sensor")
        for dependency in sensor["spec"]["dependencies"]
        if (dependency["eventSourceName"], dependency["eventName"]) not in known
    ]


def conditions_are_named(objects: Objects, templates: Objects) -> list[str]:
    """Without conditions all dependencies are joined by AND; a dependency outside of them is skipped without a word."""
    found = []
    for sensor, trigger in triggers(objects):
        names = {dependency["name"] for dependency in sensor["spec"]["dependencies"]}
        conditions = set(re.findall(r"[-a-z0-9]+", trigger["template"].get("conditions", "")))
        used = {parameter["src"]["dependencyName"] for parameter in trigger["template"]["k8s"]["parameters"]}
        if not conditions or conditions - names or used - conditions:
            found.append(f"{trigger['template']['name']}: conditions {sorted(conditions)}, parameters of {sorted(used)}")
    return found


def delivered_at_least_once(objects: Objects, templates: Objects) -> list[str]:
    """On the trigger, where it counts: without it neither retry nor dead letter ever acts."""
    return [
        f"{trigger['template']['name']} is not delivered at least once"
        for _, trigger in triggers(objects)
        if trigger.get("atLeastOnce") is not True or "retryStrategy" not in trigger or "atLeastOnce" in trigger["template"]
    ]


def failures_are_left_somewhere(objects: Objects, templates: Objects) -> list[str]:
    return [
        f"{sensor['metadata']['name']} has a trigger without a dead letter"
        for sensor in of_kind(objects, "Sensor")
        for trigger in sensor["spec"]["triggers"]
        if "dlqTrigger" not in trigger
    ]


def names_are_deterministic(objects: Objects, templates: Objects) -> list[str]:
    """A DNS prefix and what is unique to the event; never generateName, and short enough for a label value."""
    found = []
    for _, trigger in triggers(objects):
        k8s = trigger["template"]["k8s"]
        name = k8s["source"]["resource"]["metadata"].get("name", "")
        parts = [parameter for parameter in k8s["parameters"] if parameter["dest"] == "metadata.name"]
        keys = tuple(_key(part) for part in parts if _key(part))
        appended = all(part.get("operation") == "append" for part in parts)
        if not DNS_PREFIX.fullmatch(name) or keys not in UNIQUE or not appended:
            found.append(f"{trigger['template']['name']}: name {name!r} and {keys}")
    return found


def values_are_keys(objects: Objects, templates: Objects) -> list[str]:
    """No Go templates, no raw JSON, and a default wherever a key may be missing."""
    found = []
    for sensor, trigger in triggers(objects):
        sure = ALWAYS_THERE | set(_filtered(sensor))
        for parameter in trigger["template"]["k8s"]["parameters"]:
            source = parameter["src"]
            if {"dataTemplate", "contextTemplate", "useRawData"} & set(source):
                found.append(f"{parameter['dest']}: a template or raw data")
            if _key(parameter) and _key(parameter) not in sure and "value" not in source:
                found.append(f"{parameter['dest']}: {_key(parameter)} may be missing and has no default")
    return found


def workflows_are_by_reference(objects: Objects, templates: Objects) -> list[str]:
    """What a trigger or the clock creates is a valid Workflow of a template's name and arguments, and nothing else."""
    found = []
    for workflow in workflows(objects):
        spec = workflow["spec"]
        if set(spec) != {"workflowTemplateRef", "arguments"} or set(spec["arguments"]) != {"parameters"}:
            found.append(f"{workflow['metadata']['name']}: more than a reference and arguments: {sorted(spec)}")
        found.extend(problems(workflow))
    return found


def arguments_match_the_template(objects: Objects, templates: Objects) -> list[str]:
    """By name, all that have no default, and in the order of the indices that the sensor writes to."""
    known = {one["metadata"]["name"]: one["spec"]["arguments"]["parameters"] for one in templates}
    found = []
    for workflow in workflows(objects):
        declared = known.get(workflow["spec"]["workflowTemplateRef"]["name"], [])
        given = [one["name"] for one in workflow["spec"]["arguments"]["parameters"]]
        needed = [one["name"] for one in declared if "value" not in one]
        if not set(needed) <= set(given) <= {one["name"] for one in declared} or len(given) != len(set(given)):
            found.append(
                f"{workflow['metadata']['name']}: gives {given}, the template declares {[one['name'] for one in declared]}"
            )
    return found + _indices_out_of_range(objects)


def no_trigger_writes_bodies(objects: Objects, templates: Objects) -> list[str]:
    """The log trigger writes the whole event; argoWorkflow runs an old CLI and submits twice (facts 4.5)."""
    return [
        f"{trigger['template']['name']} is of another kind than k8s"
        for _, trigger in triggers(objects)
        if set(trigger["template"]) - {"name", "conditions", "k8s"}
    ]


def sources_filter_early(objects: Objects, templates: Objects) -> list[str]:
    """Bodies carry secrets: only pods that asked for a GPU and were on a node. afterStart would drop the long-terminating ones."""
    found = []
    for source in of_kind(objects, "EventSource"):
        for event, watched in source["spec"].get("resource", {}).items():
            chosen = watched.get("filter", {})
            keys = {one["key"] for one in chosen.get("fields", [])}
            if "spec.nodeName" not in keys or not any("limits" in key for key in keys) or chosen.get("afterStart"):
                found.append(f"{source['metadata']['name']}/{event} lets through {sorted(keys)}")
    return found


def bus_keeps_little(objects: Objects, templates: Objects) -> list[str]:
    found = []
    for bus in of_kind(objects, "EventBus"):
        settings = {**bus["spec"].get("jetstream", {}), **bus["spec"].get("jetstreamExotic", {})}
        age = MAX_AGE.search(settings.get("streamConfig", ""))
        if "nats" in bus["spec"] or age is None or int(age[1]) > 4 or settings.get("version", "") == "latest":
            found.append("the bus is of another kind, keeps bodies for long, or has no pinned version")
    return found


def pods_are_confined(objects: Objects, templates: Objects) -> list[str]:
    """A source that is reached from outside has an account of its own, without rights."""
    accounts = {"EventSource": "eventsource", "Sensor": "trigger"}
    found = []
    for one in objects:
        if one["kind"] not in accounts:
            continue
        account = "hook" if {"github", "webhook"} & set(one["spec"]) else accounts[one["kind"]]
        pod, inside = one["spec"]["template"], one["spec"]["template"].get("container", {}).get("securityContext", {})
        confined = (
            pod.get("serviceAccountName") == account
            and pod.get("securityContext", {}).get("runAsNonRoot") is True
            and inside.get("readOnlyRootFilesystem") is True
            and inside.get("allowPrivilegeEscalation") is False
            and inside.get("capabilities") == {"drop": ["ALL"]}
        )
        if not confined:
            found.append(f"{one['kind']} {one['metadata']['name']} has more rights than it needs, or another account")
    return found


RULES: Final[tuple[Callable[[Objects, Objects], list[str]], ...]] = (
    dependencies_exist,
    conditions_are_named,
    delivered_at_least_once,
    failures_are_left_somewhere,
    names_are_deterministic,
    values_are_keys,
    workflows_are_by_reference,
    arguments_match_the_template,
    no_trigger_writes_bodies,
    sources_filter_early,
    bus_keeps_little,
    pods_are_confined,
)


def of_kind(objects: Objects, kind: str) -> list[Content]:
    return [one for one in objects if one["kind"] == kind]


def triggers(objects: Objects) -> Iterator[tuple[Content, Content]]:
    """Every trigger with its sensor, dead letters included."""
    for sensor in of_kind(objects, "Sensor"):
        for trigger in sensor["spec"]["triggers"]:
            yield sensor, trigger
            if "dlqTrigger" in trigger:
                yield sensor, trigger["dlqTrigger"]


def workflows(objects: Objects) -> Iterator[Content]:
    """What triggers and the clock create."""
    for _, trigger in triggers(objects):
        made = trigger["template"].get("k8s", {}).get("source", {}).get("resource", {})
        if made.get("kind") == "Workflow":
            yield made
    for cron in of_kind(objects, "CronWorkflow"):
        yield {
            "apiVersion": cron["apiVersion"],
            "kind": "Workflow",
            "metadata": cron["metadata"],
            "spec": cron["spec"]["workflowSpec"],
        }


def _events(source: Content) -> Iterator[str]:
    for kind in ("resource", "calendar", "github", "webhook"):
        yield from source["spec"].get(kind, {})


def _filtered(sensor: Content) -> Iterator[str]:
    """Keys without which the event of a dependency is let through by no filter, and the key that its transform makes."""
    for dependency in sensor["spec"]["dependencies"]:
        yield from (one["path"] for one in dependency.get("filters", {}).get("data", []))
        yield from MADE.findall(dependency.get("transform", {}).get("jq", ""))


def _key(parameter: Content) -> str:
    return str(parameter["src"].get("dataKey") or parameter["src"].get("contextKey") or "")


def _indices_out_of_range(objects: Objects) -> list[str]:
    """A destination beyond the list would append a nameless parameter."""
    found = []
    for _, trigger in triggers(objects):
        k8s = trigger["template"]["k8s"]
        made = k8s["source"]["resource"]
        count = len(made.get("spec", {}).get("arguments", {}).get("parameters", []))
        for parameter in k8s["parameters"]:
            place = re.fullmatch(r"spec\.arguments\.parameters\.(\d+)\.value", parameter["dest"])
            if parameter["dest"] != "metadata.name" and (place is None or int(place[1]) >= count):
                found.append(f"{trigger['template']['name']}: nothing is at {parameter['dest']}")
    return found
