"""What the cluster's controllers do: Deployment -> ReplicaSet -> pods, garbage, and the scheduler."""

import copy
import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from sim.world.objects import add, change, of_kind, owned_by, remove
from sim.world.paths import DEPLOYMENT, NODE, POD, REPLICA_SET
from sim.world.pods import GPU_RESOURCE, begin_deletion, bind, gpus_wanted, make
from sim.world.state import Json, SimGpu, SimNode, World, stamp_text


def reconcile(world: World) -> None:
    """One pass of every controller."""
    for path, item in of_kind(world, DEPLOYMENT):
        _deployment(world, path, item)
    for path, item in of_kind(world, REPLICA_SET):
        _replica_set(world, path, item)
    for path, _ in sorted(of_kind(world, POD), key=lambda found: (found[1]["metadata"]["creationTimestamp"], found[0])):
        _schedule(world, path)


def collect_garbage(world: World, owner_uid: str) -> None:
    """What an object owned goes after it (background propagation); pods go gracefully."""
    for path, item in owned_by(world, owner_uid):
        if item["kind"] == "Pod":
            begin_deletion(world, path)
        else:
            remove(world, path)
            collect_garbage(world, item["metadata"]["uid"])


def _deployment(world: World, path: str, item: Json) -> None:
    """One ReplicaSet for each pod template; those of older templates go to zero."""
    mark = hashlib.sha256(msgspec.json.encode(item["spec"]["template"], order="sorted")).hexdigest()[:10]
    sets = [(p, found) for p, found in owned_by(world, item["metadata"]["uid"]) if found["kind"] == "ReplicaSet"]
    if not any(found["metadata"]["labels"]["pod-template-hash"] == mark for _, found in sets):
        _new_replica_set(world, item, mark)
    for set_path, found in sets:
        wanted = item["spec"].get("replicas", 1) if found["metadata"]["labels"]["pod-template-hash"] == mark else 0
        changed = copy.deepcopy(found)
        changed["spec"]["replicas"] = wanted
        change(world, set_path, changed)
    pods = [pod for set_path, found in sets for _, pod in owned_by(world, found["metadata"]["uid"])]
    _status(world, path, [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]])


def _new_replica_set(world: World, item: Json, mark: str) -> None:
    metadata, template = item["metadata"], copy.deepcopy(item["spec"]["template"])
    template.setdefault("metadata", {}).setdefault("labels", {})["pod-template-hash"] = mark
    reference = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    body = {
        "metadata": {
            "name": f"{metadata['name']}-{mark}",
            "labels": dict(template["metadata"]["labels"]),
            "ownerReferences": [reference | {"blockOwnerDeletion": True}],
        },
        "spec": {
            "replicas": item["spec"].get("replicas", 1),
            "selector": {"matchLabels": item["spec"]["selector"]["matchLabels"] | {"pod-template-hash": mark}},
            "template": template,
        },
    }
    add(world, REPLICA_SET, metadata["namespace"], body)


def _replica_set(world: World, path: str, item: Json) -> None:
    live = [
        (pod_path, pod)
        for pod_path, pod in owned_by(world, item["metadata"]["uid"])
        if pod["kind"] == "Pod" and "deletionTimestamp" not in pod["metadata"]
    ]
    surplus = len(live) - item["spec"].get("replicas", 1)
    for pod_path, _ in sorted(live, key=lambda found: found[1]["status"]["phase"] == "Running")[: max(surplus, 0)]:
        begin_deletion(world, pod_path)
    for _ in range(-surplus):
        make(world, item, item["spec"]["template"])
    _status(world, path, [pod for _, pod in live])


def _status(world: World, path: str, pods: list[Json]) -> None:
    """Counts as the API writes them: zero is left out."""
    changed = copy.deepcopy(world.objects[path])
    ready = sum(pod["status"]["phase"] == "Running" for pod in pods)
    counts = {"replicas": len(pods), "readyReplicas": ready}
    changed["status"] = {key: count for key, count in counts.items() if count}
    changed["status"]["observedGeneration"] = changed["metadata"]["generation"]
    change(world, path, changed)


def _schedule(world: World, path: str) -> None:
    """Bind the pod to the first node that fits, or say on the pod why there is none, in the scheduler's words."""
    pod = world.objects[path]
    if pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
        return
    reasons: list[str] = []
    wanted = gpus_wanted(pod["spec"])
    for _, node in of_kind(world, NODE):
        here = world.nodes.get(node["metadata"]["name"])
        problem = "node(s) had untolerated taint {node.kubernetes.io/unreachable: }" if here is None or here.silent else None
        problem = problem or _mismatch(node, pod["spec"])
        free = _free_devices(world, here) if here is not None else []
        if problem is None and here is not None and len(free) >= wanted:
            bind(world, path, here, free[:wanted])
            return
        reasons.append(problem or f"Insufficient {GPU_RESOURCE}")
    _mark_unschedulable(world, path, reasons)


def _mismatch(node: Json, spec: Mapping[str, Any]) -> str | None:
    if node.get("spec", {}).get("unschedulable"):
        return "node(s) were unschedulable"
    labels = node["metadata"].get("labels", {})
    if any(labels.get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
        return "node(s) didn't match Pod's node affinity/selector"
    return None


def _free_devices(world: World, node: SimNode) -> list[SimGpu]:
    """What the scheduler believes to be free: the device is allocated to no pod that exists. Memory plays no part."""
    bound = {item["metadata"]["uid"] for _, item in of_kind(world, POD) if item["spec"].get("nodeName") == node.name}
    taken = {entry.device_id for entry in node.allocations if entry.pod_uid in bound}
    return [gpu for gpu in node.gpus if gpu.uuid not in taken and not gpu.lost]


def _mark_unschedulable(world: World, path: str, reasons: list[str]) -> None:
    counted = ", ".join(f"{reasons.count(reason)} {reason}" for reason in sorted(set(reasons)))
    message = f"0/{len(reasons)} nodes are available: {counted}." if reasons else "no nodes available to schedule pods"
    changed = copy.deepcopy(world.objects[path])
    conditions = changed["status"].get("conditions", [])
    if conditions and conditions[0].get("message") == message:
        return
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    since = conditions[0]["lastTransitionTime"] if conditions else stamp_text(world.now)
    changed["status"]["conditions"] = [condition | {"lastTransitionTime": since}]
    change(world, path, changed)
