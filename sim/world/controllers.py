"""What the cluster's controllers do: Deployment -> ReplicaSet -> pods, and garbage."""

import copy
import hashlib

import msgspec

from sim.world.objects import Owned, add, by_owner, change, of_kind, owned_by, remove
from sim.world.paths import DEPLOYMENT, REPLICA_SET
from sim.world.pods import begin_deletion, make
from sim.world.scheduler import schedule
from sim.world.state import Json, World


def reconcile(world: World) -> None:
    """One pass of every controller. Each reads what the pass before it left, once: a pass is linear in the objects."""
    owned = by_owner(world)
    for path, item in of_kind(world, DEPLOYMENT):
        _deployment(world, path, item, owned)
    owned = by_owner(world)
    for path, item in of_kind(world, REPLICA_SET):
        _replica_set(world, path, item, owned)
    schedule(world)


def collect_garbage(world: World, owner_uid: str) -> None:
    """What an object owned goes after it (background propagation); pods go gracefully."""
    for path, item in owned_by(world, owner_uid):
        if item["kind"] == "Pod":
            begin_deletion(world, path)
        else:
            remove(world, path)
            collect_garbage(world, item["metadata"]["uid"])


def _deployment(world: World, path: str, item: Json, owned: Owned) -> None:
    """One ReplicaSet for each pod template; those of older templates go to zero."""
    mark = hashlib.sha256(msgspec.json.encode(item["spec"]["template"], order="sorted")).hexdigest()[:10]
    sets = [(p, found) for p, found in owned.get(item["metadata"]["uid"], ()) if found["kind"] == "ReplicaSet"]
    if not any(found["metadata"]["labels"]["pod-template-hash"] == mark for _, found in sets):
        _new_replica_set(world, item, mark)
    for set_path, found in sets:
        wanted = item["spec"].get("replicas", 1) if found["metadata"]["labels"]["pod-template-hash"] == mark else 0
        if found["spec"]["replicas"] != wanted:
            changed = copy.deepcopy(found)
            changed["spec"]["replicas"] = wanted
            change(world, set_path, changed)
    pods = [pod for _, found in sets for _, pod in owned.get(found["metadata"]["uid"], ())]
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


def _replica_set(world: World, path: str, item: Json, owned: Owned) -> None:
    live = [
        (pod_path, pod)
        for pod_path, pod in owned.get(item["metadata"]["uid"], ())
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
    item = world.objects[path]
    ready = sum(pod["status"]["phase"] == "Running" for pod in pods)
    counts = {"replicas": len(pods), "readyReplicas": ready}
    status = {key: count for key, count in counts.items() if count} | {"observedGeneration": item["metadata"]["generation"]}
    if item.get("status") != status:
        changed = copy.deepcopy(item)
        changed["status"] = status
        change(world, path, changed)
