"""A pod with a GPU is deleted: its release is checked. The event is a hint: it may be lost, doubled, or sent for a living pod."""

from collections.abc import Mapping
from typing import Final

from sensors.common import API, From, Json, Start, metadata, pod_template, sensor

SOURCE: Final = "pods"
DELETED: Final = "deleted"

ASKED_FOR_A_GPU: Final[Mapping[str, str]] = {
    "key": "[spec.containers.#.resources.limits,spec.initContainers.#.resources.limits]|@tostr",
    "operation": "==",
    "value": r'"nvidia\.com/(gpu|gpu\.shared|mig-[^"]+)":"[1-9]',
}
"""Read from the limits: an extended resource must have one. The source compares text only, so the list of limits is made text."""
WAS_ON_A_NODE: Final[Mapping[str, str]] = {"key": "spec.nodeName", "operation": "==", "value": "."}
"""A pod that never was on a node held nothing."""

STATUS_LISTS: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
CONTAINER_IDS: Final = f"[{','.join(f'body.status.{kind}.#.containerID' for kind in STATUS_LISTS)}]|@flatten"
"""One list of the ids of all kinds of containers."""

START: Final = Start(
    template="release-check",
    prefix="release",
    name=(From("body.metadata.uid"), From("body.metadata.resourceVersion")),
    arguments={
        "uid": From("body.metadata.uid"),
        "namespace": From("body.metadata.namespace"),
        "name": From("body.metadata.name"),
        "node": From("body.spec.nodeName", default=""),
        "containers": From(CONTAINER_IDS, default="[]"),
        "deleted-at": From("body.metadata.deletionTimestamp", default=""),
        "grace-s": From("body.spec.terminationGracePeriodSeconds", default="30"),
    },
)
"""The name holds the uid and the version: taking the label off a living pod sends DELETE as well, and under the uid alone the real
deletion would find its name taken and never be verified (facts/hera-and-argo 4.4)."""


def source(name: str = SOURCE, *, namespace: str = "", labels: Mapping[str, str] | None = None) -> Json:
    """Deleted pods that had asked for a GPU and were on a node. The filter runs in the source, so no other pod's body reaches
    the bus. What goes during a gap in the watch starts nothing, nor would it without a filter (decision 20): the sweep finds it.

    namespace: of the pods, all if empty. labels: only pods that have them; then a label taken off reads as a deletion, too.
    """
    chosen = [{"key": key, "operation": "==", "value": value} for key, value in (labels or {}).items()]
    return {
        "apiVersion": API,
        "kind": "EventSource",
        "metadata": metadata(name),
        "spec": {
            "eventBusName": "default",
            "template": pod_template("eventsource"),
            "resource": {
                DELETED: {
                    "namespace": namespace,
                    "group": "",
                    "version": "v1",
                    "resource": "pods",
                    "eventTypes": ["DELETE"],
                    "filter": {"fields": [dict(ASKED_FOR_A_GPU), dict(WAS_ON_A_NODE)], **({"labels": chosen} if chosen else {})},
                }
            },
        },
    }


def pod_deleted(name: str = "pod-deleted", source_name: str = SOURCE) -> Json:
    """The Sensor that starts release-check."""
    return sensor(name, source_name, DELETED, START)
