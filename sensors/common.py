"""What all sources and sensors share: names, confined pods, and a trigger that creates a Workflow by reference or leaves an Event.

A Workflow gets a name made of what happened, so that the same event never makes two; its arguments are data keys, never templates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]

API: Final = "argoproj.io/v1alpha1"
NAMESPACE: Final = "gpu-reclaim"
PART_OF: Final = {"app.kubernetes.io/part-of": "gpu-reclaim"}
NOBODY: Final = 65532
AS_NOBODY: Final[Json] = {
    "runAsNonRoot": True,
    "runAsUser": NOBODY,
    "runAsGroup": NOBODY,
    "fsGroup": NOBODY,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""Of a pod."""
CONFINED: Final[Json] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
"""Of a container."""

RETRY: Final[Json] = {"steps": 5, "duration": "1s", "factor": 2}
"""About 15 s. A doubled event finds the name taken and uses up all of it, and the next event of the trigger waits meanwhile."""


@dataclass(frozen=True, slots=True)
class From:
    """Where a value comes from. data, context: a key of the event's data or context. default: where the key is missing; without
    one the trigger fails."""

    data: str = ""
    context: str = ""
    default: str | None = None

    def source(self, dependency: str) -> Json:
        keys = {"dataKey": self.data, "contextKey": self.context}
        found: Json = {"dependencyName": dependency, **{key: value for key, value in keys.items() if value}}
        return found if self.default is None else {**found, "value": self.default}


@dataclass(frozen=True, slots=True)
class Start:
    """A Workflow to create. arguments: fixed texts and data keys, in the order of the template's parameters. name: what follows the
    prefix, joined by dashes. instead: for people, what makes up for a Workflow that could not be created."""

    template: str
    prefix: str
    name: Sequence[From]
    arguments: Mapping[str, From | str]
    instead: str = "The next sweep looks at every node all the same."


def metadata(name: str) -> Json:
    return {"name": name, "namespace": NAMESPACE, "labels": PART_OF}


def pod_template(account: str) -> Json:
    """Pods of a source or sensor: own account, nobody's user, nothing to write to, no way to more rights."""
    return {
        "metadata": {"labels": PART_OF},
        "serviceAccountName": account,
        "securityContext": AS_NOBODY,
        "container": {
            "securityContext": CONFINED,
            "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"cpu": "500m", "memory": "256Mi"}},
        },
    }


def sensor(name: str, source: str, event: str, start: Start, *, only: Mapping[str, Any] | None = None) -> Json:
    """One Sensor for one event: conditions named (else all dependencies are joined by AND), delivered at least once, retried, and
    what failed for good left as a Kubernetes Event. only: the dependency's filters, and its transform, which comes before them."""
    return {
        "apiVersion": API,
        "kind": "Sensor",
        "metadata": metadata(name),
        "spec": {
            "eventBusName": "default",
            "template": pod_template("trigger"),
            "dependencies": [{"name": event, "eventSourceName": source, "eventName": event, **(only or {})}],
            "triggers": [
                {
                    "atLeastOnce": True,
                    "retryStrategy": RETRY,
                    "template": {"name": start.template, "conditions": event, "k8s": _create_workflow(start, event)},
                    "dlqTrigger": _dead_letter(name, start, event),
                }
            ],
        },
    }


def workflow_spec(template: str, arguments: Mapping[str, From | str]) -> Json:
    """By reference, with arguments alone: the admission policy takes nothing else."""
    fixed = {name: value if isinstance(value, str) else "" for name, value in arguments.items()}
    return {
        "workflowTemplateRef": {"name": template},
        "arguments": {"parameters": [{"name": name, "value": value} for name, value in fixed.items()]},
    }


def _create_workflow(start: Start, event: str) -> Json:
    places = enumerate(start.arguments.values())
    keys = [(index, value) for index, value in places if isinstance(value, From)]
    return {
        "operation": "create",
        "source": {
            "resource": {
                "apiVersion": API,
                "kind": "Workflow",
                "metadata": metadata(f"{start.prefix}-"),
                "spec": workflow_spec(start.template, start.arguments),
            }
        },
        "parameters": [
            *_named(start.name, event),
            *({"src": key.source(event), "dest": f"spec.arguments.parameters.{index}.value"} for index, key in keys),
        ],
    }


def _dead_letter(sensor_name: str, start: Start, event: str) -> Json:
    """What is left to do with an event that every retry failed on."""
    template = {"name": f"{start.template}-failed", "conditions": event, "k8s": _leave_event(sensor_name, start, event)}
    return {"atLeastOnce": True, "retryStrategy": RETRY, "template": template}


def _leave_event(sensor_name: str, start: Start, event: str) -> Json:
    """Not the log trigger: it writes the whole event, and a pod's holds environment values."""
    return {
        "operation": "create",
        "source": {
            "resource": {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": metadata(f"{start.prefix}-failed-"),
                "type": "Warning",
                "reason": "WorkflowNotCreated",
                "message": (
                    f"No Workflow {start.template} was created for this event: it exists already (a doubled event, harmless), "
                    f"or the API refused it. {start.instead}"
                ),
                "source": {"component": "gpu-reclaim"},
                "involvedObject": {"apiVersion": API, "kind": "Sensor", "name": sensor_name, "namespace": NAMESPACE},
            }
        },
        "parameters": _named(start.name, event),
    }


def _named(parts: Sequence[From], event: str) -> list[Json]:
    """Appends that put the parts after the prefix and its dash."""
    found: list[Json] = []
    for number, part in enumerate(parts):
        if number:
            found.append({"src": {"dependencyName": event, "value": "-"}, "dest": "metadata.name", "operation": "append"})
        found.append({"src": part.source(event), "dest": "metadata.name", "operation": "append"})
    return found
