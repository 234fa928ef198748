"""Raw pods to PodFacts, and which of them wait for a GPU. Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from steps.adapters.kubernetes.api import Json
from steps.adapters.kubernetes.fields import (
    count_at,
    instant_at,
    list_at,
    mapping_at,
    name_of,
    namespace_of,
    text_at,
    texts_at,
    uid_of,
)
from steps.contracts.cluster_facts import ContainerFacts, Phase, PodFacts, Waiter, grace_as_kept
from steps.contracts.document import Sample
from steps.contracts.errors import SourceUnavailable

GPU_RESOURCES: Final = ("nvidia.com/gpu", "nvidia.com/gpu.shared")
MIG_PREFIX: Final = "nvidia.com/mig-"
CONFIG_HASHES: Final = ("kubernetes.io/config.hash", "kubernetes.io/config.mirror")
"""Annotations of a static pod's mirror: either has the hash that the kubelet uses as the pod's uid on the node (facts 1.5)."""
STATUS_LISTS: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
MOST_ADDED_S: Final = (2**63 - 1) // 10**9
"""The longest grace that the server's arithmetic, in nanoseconds of 64 bits, can add to a time."""


def is_gpu_resource(name: str) -> bool:
    return name in GPU_RESOURCES or name.startswith(MIG_PREFIX)


def gpus_in(resources: Mapping[str, Any]) -> int:
    """GPUs and MIG slices in a resource list such as `allocatable` or `limits`."""
    return sum(_whole(quantity) for name, quantity in resources.items() if is_gpu_resource(name))


def _whole(quantity: object) -> int:
    """An extended resource is a whole number; the server writes 1000 as `1k`."""
    written = str(quantity)
    factor = 1000 if written.endswith("k") else 1
    digits = written.removesuffix("k")
    if not digits.isdecimal():
        raise SourceUnavailable(
            f"the API server gave {written!r} as a number of GPUs; look at the object, it must be a whole number"
        )
    return int(digits) * factor


def gpus_requested(pod_spec: Mapping[str, Any]) -> int:
    """GPUs that the scheduler reserves for one pod: the containers and sidecars together, or more if an init container,
    beside the sidecars started before it, needs more (Kubernetes: sharing between init and app containers)."""
    sidecars = 0
    peak = 0
    for container in list_at(pod_spec, "initContainers"):
        asked = _asked(container)
        if container.get("restartPolicy") == "Always":
            sidecars += asked
            peak = max(peak, sidecars)
        else:
            peak = max(peak, sidecars + asked)
    return max(peak, sidecars + sum(_asked(container) for container in list_at(pod_spec, "containers")))


def _asked(container: Mapping[str, Any]) -> int:
    """Limits and requests of an extended resource are equal; either may be the one that was written."""
    resources = mapping_at(container, "resources")
    return max(gpus_in(mapping_at(resources, "limits")), gpus_in(mapping_at(resources, "requests")))


def pod_facts(raw: Json, owner_uid: str | None) -> PodFacts:
    """The facts of one pod. Raises SourceUnavailable if the API left out what every pod has."""
    created_at = instant_at(raw, "metadata", "creationTimestamp")
    if created_at is None or not uid_of(raw):
        raise SourceUnavailable(f"the API server sent pod {namespace_of(raw)}/{name_of(raw)} without uid or creation time")
    return PodFacts(
        uid=uid_of(raw),
        name=name_of(raw),
        namespace=namespace_of(raw),
        node=text_at(raw, "spec", "nodeName"),
        phase=_phase(raw),
        created_at=created_at,
        started_at=instant_at(raw, "status", "startTime"),
        deletion_requested_at=_deletion_requested_at(raw, created_at),
        grace_s=_grace_s(raw),
        gpus_requested=gpus_requested(mapping_at(raw, "spec")),
        containers=tuple(containers_of(raw)),
        config_hash=_config_hash(texts_at(raw, "metadata", "annotations")),
        owner_uid=owner_uid,
    )


def _deletion_requested_at(raw: Json, created_at: datetime) -> datetime | None:
    """The server writes the *end* of the grace into deletionTimestamp (registry/rest/delete.go: now + grace, in nanoseconds of 64
    bits). Of a grace that overflows there the end says nothing; then it is the pod's creation, before which it cannot have been."""
    ends_at = instant_at(raw, "metadata", "deletionTimestamp")
    if ends_at is None or mapping_at(raw, "metadata").get("deletionGracePeriodSeconds") is None:
        return ends_at
    grace_s = count_at(raw, "metadata", "deletionGracePeriodSeconds")
    return created_at if grace_s > MOST_ADDED_S else ends_at - timedelta(seconds=grace_s)


def _config_hash(annotations: Mapping[str, str]) -> str | None:
    return next((annotations[name] for name in CONFIG_HASHES if name in annotations), None)


def _phase(raw: Json) -> Phase:
    written = text_at(raw, "status", "phase")
    return Phase(written) if written in {phase.value for phase in Phase} else Phase.UNKNOWN


def _grace_s(raw: Json) -> int:
    """The grace of the deletion under way, else the pod's own; 30 s is what Kubernetes fills in."""
    for holder, field in (("metadata", "deletionGracePeriodSeconds"), ("spec", "terminationGracePeriodSeconds")):
        if mapping_at(raw, holder).get(field) is not None:
            return grace_as_kept(count_at(raw, holder, field))
    return 30


def containers_of(raw: Json) -> list[ContainerFacts]:
    """Containers with the ids the runtime knows them by, from all three status lists: a holder may be in any of them."""
    statuses = [status for field in STATUS_LISTS for status in list_at(raw, "status", field)]
    return [ContainerFacts(name=text_at(status, "name") or "", container_ids=_ids(status)) for status in statuses]


def _ids(status: Json) -> tuple[str, ...]:
    """Current and last, newest first, without `containerd://`; before the first start there is none."""
    written = (
        text_at(status, "containerID"),
        *(text_at(status, field, state, "containerID") for field in ("state", "lastState") for state in ("running", "terminated")),
    )
    ids = [identity.rpartition("://")[2] for identity in written if identity]
    return tuple(dict.fromkeys(ids))


def waiter_of(raw: Json) -> Waiter | None:
    """The pod as a waiter: Pending, asks for a GPU, and the scheduler found no place for it."""
    gpus = gpus_requested(mapping_at(raw, "spec"))
    if _phase(raw) is not Phase.PENDING or not gpus or text_at(raw, "metadata", "deletionTimestamp"):
        return None
    verdict = next((c for c in list_at(raw, "status", "conditions") if c.get("type") == "PodScheduled"), None)
    if verdict is None or verdict.get("status") != "False" or verdict.get("reason") != "Unschedulable":
        return None
    facts = pod_facts(raw, None)
    words = text_at(verdict, "message")
    return Waiter(
        pod_uid=facts.uid,
        name=facts.name,
        namespace=facts.namespace,
        gpus_requested=gpus,
        pending_since=instant_at(verdict, "lastTransitionTime") or facts.created_at,
        message=Sample.measured(words, "kubernetes") if words else Sample.absent("the scheduler gave no message", "kubernetes"),
    )


def is_over(raw: Json) -> bool:
    """The pod ended: completed, failed or evicted. Its containers do not run, and nothing it was given is still reserved."""
    return _phase(raw) in {Phase.SUCCEEDED, Phase.FAILED}
