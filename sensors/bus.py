"""The event bus. What waits on it holds whole pods, environment values included: kept for an hour, encrypted on the wire.

An hour is enough for a sensor to come back. What is lost after it the next sweep finds.
"""

from typing import Final

from sensors.common import API, AS_NOBODY, CONFINED, Json, metadata

NATS_VERSION: Final = "2.10.29"
STREAM: Final = """\
maxMsgs: 50000
maxAge: 1h
maxBytes: -1
replicas: {replicas}
duplicates: 300s
retention: 0
discard: 0
"""
"""Whole: an existing NATS takes these settings all or not at all. retention stays Limits (argo-events#3377)."""

_APART: Final[Json] = {
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 100,
                "podAffinityTerm": {
                    "labelSelector": {"matchLabels": {"eventbus-name": "default"}},
                    "topologyKey": "kubernetes.io/hostname",
                },
            }
        ]
    }
}
"""Argo Events sets none, and three replicas on one node go with it. Preferred: a cluster of one node can have them all the same."""


def bus(replicas: int = 3) -> Json:
    """A JetStream of its own, which Argo Events sets up with TLS and encrypted files; its pods are confined as all others are."""
    return {
        "apiVersion": API,
        "kind": "EventBus",
        "metadata": metadata("default"),
        "spec": {
            "jetstream": {
                "version": NATS_VERSION,
                "replicas": replicas,
                "persistence": {"accessMode": "ReadWriteOnce", "volumeSize": "2Gi"},
                "streamConfig": STREAM.format(replicas=replicas),
                "affinity": _APART,
                "securityContext": AS_NOBODY,
                "containerTemplate": {"securityContext": CONFINED},
                "reloaderContainerTemplate": {"securityContext": CONFINED},
                "metricsContainerTemplate": {"securityContext": CONFINED},
            }
        },
    }


def existing_bus(replicas: int = 3) -> Json:
    """A NATS that is there already; the overlay that uses it names its address."""
    exotic = {"url": "nats://nats.nats.svc:4222", "streamConfig": STREAM.format(replicas=replicas)}
    return {"apiVersion": API, "kind": "EventBus", "metadata": metadata("default"), "spec": {"jetstreamExotic": exotic}}
