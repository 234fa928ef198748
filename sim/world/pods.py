"""The life of a pod: made by its ReplicaSet, bound by the scheduler, run and ended by the kubelet."""

import copy
import hashlib
from collections.abc import Container, Mapping
from datetime import timedelta
from typing import Any, Final

from sim.world import boxes
from sim.world.objects import add, change, remove
from sim.world.paths import POD
from sim.world.state import Behaviour, Due, Json, SimAllocation, SimGpu, SimNode, SimProcess, World, stamp_text

GPU_RESOURCE: Final = "nvidia.com/gpu"
START_S: Final = 2.0
VANISH_S: Final = 3.0
"""From the last process to the end of the object; a real kubelet takes seconds as well (facts/kubernetes 1)."""
TICKS_PER_S: Final = 100


def gpus_wanted(spec: Mapping[str, Any]) -> int:
    """Whole GPUs the containers of a pod spec ask for."""
    return sum(int(box.get("resources", {}).get("limits", {}).get(GPU_RESOURCE, "0")) for box in spec["containers"])


def make(world: World, owner: Json, template: Mapping[str, Any]) -> Json:
    """A pod of a ReplicaSet, Pending and bound to nothing."""
    metadata, spec = template.get("metadata", {}), copy.deepcopy(dict(template["spec"]))
    spec.setdefault("terminationGracePeriodSeconds", 30)
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    body = {
        "metadata": {
            "generateName": owner["metadata"]["name"] + "-",
            "labels": dict(metadata.get("labels", {})),
            "annotations": dict(metadata.get("annotations", {})),
            "ownerReferences": [reference],
        },
        "spec": spec,
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }
    return add(world, POD, owner["metadata"]["namespace"], body)


def begin_deletion(world: World, path: str, grace_s: int | None = None) -> Json:
    """Graceful: the object stays, with the time at which its grace ends. A pod that no node has, and one deleted by
    force (grace 0), goes at once; its processes end with it here, where a real kubelet may take its time.

    grace_s: of the request; None takes the pod's own.
    """
    item = copy.deepcopy(world.objects[path])
    if not item["spec"].get("nodeName"):
        return remove(world, path)
    if "deletionTimestamp" in item["metadata"]:
        return item
    grace_s = item["spec"]["terminationGracePeriodSeconds"] if grace_s is None else grace_s
    item["metadata"]["deletionTimestamp"] = stamp_text(world.now + timedelta(seconds=grace_s))
    item["metadata"]["deletionGracePeriodSeconds"] = grace_s
    ends_s = _ends_after(world, item, grace_s)
    if grace_s == 0 and item["metadata"]["uid"] not in world.boxes:
        change(world, path, item)
        end(world, path)
        return remove(world, path)
    if ends_s is not None:
        world.due.append(Due(at=world.now + timedelta(seconds=ends_s), what="exit", path=path, uid=item["metadata"]["uid"]))
    return change(world, path, item)


def _ends_after(world: World, item: Json, grace_s: int) -> float | None:
    """Seconds until the containers are over; None: never, a process is stuck in the driver."""
    if item["metadata"]["uid"] in world.boxes:
        return boxes.begin_end(world, item["metadata"]["uid"], grace_s)
    exits_s = behaviour_of(world, item).exits_after_s
    return grace_s if exits_s is None else min(exits_s, grace_s)


def admitted(body: Mapping[str, Any]) -> Json:
    """A pod that somebody creates by hand, with what a server and the kubelet fill in."""
    item = copy.deepcopy(dict(body))
    item["spec"].setdefault("terminationGracePeriodSeconds", 30)
    item["status"] = {"phase": "Pending", "qosClass": "Burstable"}
    return item


def bind(world: World, path: str, node: SimNode, devices: list[SimGpu], alive: Container[str]) -> None:
    """Give the pod to a node and the devices to its first container; the kubelet drops entries of pods that are gone.

    alive: uids of all pods that exist.
    """
    item = copy.deepcopy(world.objects[path])
    item["spec"]["nodeName"] = node.name
    item["status"]["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp_text(world.now)}]
    uid = item["metadata"]["uid"]
    if devices:
        kept = [entry for entry in node.allocations if entry.pod_uid in alive]
        container = item["spec"]["containers"][0]["name"]
        node.allocations = kept + [SimAllocation(device_id=gpu.uuid, pod_uid=uid, container=container) for gpu in devices]
    world.due.append(Due(at=world.now + timedelta(seconds=START_S), what="run", path=path, uid=uid))
    change(world, path, item)


def run(world: World, path: str) -> None:
    """The kubelet starts the containers, and they do what their Deployment's behaviour says."""
    item = copy.deepcopy(world.objects[path])
    now, uid = stamp_text(world.now), item["metadata"]["uid"]
    item["status"] |= {"phase": "Running", "startTime": now}
    item["status"]["conditions"].append({"type": "Ready", "status": "True", "lastTransitionTime": now})
    item["status"]["containerStatuses"] = [
        {
            "name": box["name"],
            "containerID": f"containerd://{container_id(uid, box['name'])}",
            "ready": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": now}},
        }
        for box in item["spec"]["containers"]
    ]
    change(world, path, item)
    behaviour = behaviour_of(world, item)
    world.connections[uid] = behaviour.connections
    if boxes.is_box(item):
        boxes.start(world, item, path)
    else:
        _start_processes(world, item, behaviour)


def end(world: World, path: str) -> None:
    """The containers are over: their processes go, unless the behaviour says that they outlive the pod."""
    item = copy.deepcopy(world.objects[path])
    uid, behaviour = item["metadata"]["uid"], behaviour_of(world, item)
    node = world.nodes[item["spec"]["nodeName"]]
    if not behaviour.outlives_pod:
        node.processes = [process for process in node.processes if process.pod_uid != uid]
    for gpu in devices_of(node, uid):
        gpu.ghost_bytes += behaviour.leaves_ghost_bytes
        gpu.metrics = True if behaviour.breaks_metrics else gpu.metrics
    world.connections.pop(uid, None)
    boxes.over(world, uid)
    killed = behaviour.exits_after_s is None
    item["status"]["phase"] = "Failed" if killed else "Succeeded"
    for status in item["status"].get("containerStatuses", ()):
        status["ready"] = False
        ended = {"exitCode": 137 if killed else 0, "finishedAt": stamp_text(world.now), "containerID": status["containerID"]}
        status["state"] = {"terminated": ended | {"reason": "Error" if killed else "Completed"}}
    world.due.append(Due(at=world.now + timedelta(seconds=VANISH_S), what="vanish", path=path, uid=uid))
    change(world, path, item)


def container_id(pod_uid: str, container: str) -> str:
    return hashlib.sha256(f"{pod_uid}/{container}".encode()).hexdigest()


def devices_of(node: SimNode, pod_uid: str) -> list[SimGpu]:
    given = {entry.device_id for entry in node.allocations if entry.pod_uid == pod_uid}
    return [gpu for gpu in node.gpus if gpu.uuid in given]


def behaviour_of(world: World, pod: Json) -> Behaviour:
    """By namespace and label `app`; a pod nobody described opens no device and leaves when asked."""
    key = f"{pod['metadata']['namespace']}/{pod['metadata'].get('labels', {}).get('app', '')}"
    return world.behaviours.get(key, Behaviour())


def _start_processes(world: World, pod: Json, behaviour: Behaviour) -> None:
    node, uid = world.nodes[pod["spec"]["nodeName"]], pod["metadata"]["uid"]
    container = pod["spec"]["containers"][0]["name"]
    for number, gpu in enumerate(devices_of(node, uid)):
        gpu.latched = behaviour.latches_counter or (gpu.latched and not behaviour.memory_bytes)
        gpu.metrics = gpu.metrics and not behaviour.breaks_metrics
        if not behaviour.memory_bytes:
            continue
        world.serial += 1
        node.processes.append(
            SimProcess(
                pid=4000 + world.serial,
                start_time_ticks=int(world.now.timestamp() * TICKS_PER_S) % 10**9,
                pod_uid=uid,
                container_id=container_id(uid, container),
                name=behaviour.program,
                executable=f"/usr/bin/{behaviour.program}",
                command=behaviour.command,
                gpu_uuid=gpu.uuid,
                memory_bytes=behaviour.memory_bytes,
                sm_ratio=behaviour.sm_ratio if number < behaviour.busy_gpus else 0.0,
            )
        )
