"""Build a world through its own API and controllers, so that its past is as lawful as its future."""

import uuid
from datetime import datetime, timedelta
from typing import Any, Final

from sim.world.controllers import collect_garbage
from sim.world.objects import SEED, add, remove
from sim.world.paths import DEPLOYMENT, NAMESPACE, NODE
from sim.world.pods import GPU_RESOURCE
from sim.world.state import Behaviour, SimGpu, SimNode, World
from sim.world.timeline import advance, settle

MIB: Final = 1024**2
GIB: Final = 1024**3
DRIVER: Final = "580.95.05"


class WorldBuilder:
    """A world that starts empty at `now`; `wait` lets it live."""

    def __init__(self, now: datetime) -> None:
        self.world = World(now=now.replace(microsecond=0))

    def namespace(self, name: str, **labels: str) -> None:
        add(self.world, NAMESPACE, None, {"metadata": {"name": name, "labels": labels | {"kubernetes.io/metadata.name": name}}})

    def node(self, name: str, product: str, gpus: int, memory_gib: int) -> SimNode:
        """A ready node that offers `gpus` devices of one product."""
        made = SimNode(
            name=name,
            boot_id=str(uuid.uuid5(SEED, f"boot {name}")),
            driver_version=DRIVER,
            gpus=[_gpu(name, product, index, memory_gib) for index in range(gpus)],
        )
        self.world.nodes[name] = made
        counts = {GPU_RESOURCE: str(gpus), "cpu": "64", "memory": "512Gi", "pods": "110"}
        labels = {"kubernetes.io/hostname": name, "nvidia.com/gpu.product": product.replace(" ", "-")}
        conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        status = {"capacity": counts, "allocatable": dict(counts), "conditions": conditions}
        add(self.world, NODE, None, {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": status})
        return made

    def session(self, namespace: str, name: str, product: str, behaviour: Behaviour, *, gpus: int = 1, grace_s: int = 30) -> None:
        """A Deployment as `deployment` makes it, and at once its pod, on a node or waiting for one."""
        self.deployment(namespace, name, product, behaviour, gpus=gpus, grace_s=grace_s)
        settle(self.world)

    def deployment(
        self, namespace: str, name: str, product: str, behaviour: Behaviour, *, gpus: int = 1, grace_s: int = 30
    ) -> None:
        """A Deployment of one replica on nodes with this product, whose pods behave as described; they come with the next wait."""
        self.world.behaviours[f"{namespace}/{name}"] = behaviour
        container: dict[str, Any] = {
            "name": "session",
            "image": "registry.example/sessions/notebook:2026.11",
            "resources": {"limits": {GPU_RESOURCE: str(gpus)}, "requests": {GPU_RESOURCE: str(gpus)}},
            "volumeMounts": [{"name": "home", "mountPath": "/home/user"}],
        }
        spec = {
            "nodeSelector": {"nvidia.com/gpu.product": product.replace(" ", "-")},
            "terminationGracePeriodSeconds": grace_s,
            "containers": [container],
            "volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": f"home-{name}"}}],
        }
        template = {"metadata": {"labels": {"app": name}}, "spec": spec}
        body = {
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template},
        }
        add(self.world, DEPLOYMENT, namespace, body)

    def delete_session(self, namespace: str, name: str) -> None:
        """Delete the Deployment and wait until its pods are gone from the API."""
        gone = remove(self.world, DEPLOYMENT.path(namespace, name))
        collect_garbage(self.world, gone["metadata"]["uid"])
        self.wait(minutes=2)

    def wait(self, *, hours: float = 0, minutes: float = 0) -> None:
        advance(self.world, timedelta(hours=hours, minutes=minutes).total_seconds())


def _gpu(node: str, product: str, index: int, memory_gib: int) -> SimGpu:
    return SimGpu(
        uuid=f"GPU-{uuid.uuid5(SEED, f'{node}/{index}')}",
        index=index,
        name=product,
        total_bytes=memory_gib * GIB,
        reserved_bytes=600 * MIB,
        baseline_bytes=4 * MIB,
    )
