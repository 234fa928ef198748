"""The scheduler: a waiting pod gets the first node that fits, or the reason why there is none."""

import copy
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from sim.world.objects import change, of_kind
from sim.world.paths import NODE, POD
from sim.world.pods import GPU_RESOURCE, bind, gpus_wanted
from sim.world.state import Json, SimGpu, SimNode, World, stamp_text


def schedule(world: World) -> None:
    """Bind the pods that wait, oldest first; who fits nowhere is told so on the pod, in the scheduler's words."""
    pods = sorted(of_kind(world, POD), key=lambda found: (found[1]["metadata"]["creationTimestamp"], found[0]))
    waiting = [(path, pod) for path, pod in pods if _waits(pod)]
    if not waiting:
        return
    nodes = [node for _, node in of_kind(world, NODE)]
    free = _free_devices(world, [pod for _, pod in pods])
    alive = {pod["metadata"]["uid"] for _, pod in pods}
    for path, pod in waiting:
        wanted = gpus_wanted(pod["spec"])
        place, reasons = _place_for(world, pod, nodes, free, wanted)
        if place is None:
            _mark_unschedulable(world, path, reasons)
            continue
        given, free[place.name] = free[place.name][:wanted], free[place.name][wanted:]
        bind(world, path, place, given, alive)


def _waits(pod: Json) -> bool:
    return not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]


def _free_devices(world: World, pods: list[Json]) -> dict[str, list[SimGpu]]:
    """What the scheduler believes to be free: the device is allocated to no pod that exists. Memory plays no part."""
    bound: defaultdict[str, set[str]] = defaultdict(set)
    for pod in pods:
        bound[pod["spec"].get("nodeName", "")].add(pod["metadata"]["uid"])
    free = {}
    for name, node in world.nodes.items():
        taken = {entry.device_id for entry in node.allocations if entry.pod_uid in bound[name]}
        free[name] = [gpu for gpu in node.gpus if gpu.uuid not in taken and not gpu.lost]
    return free


def _place_for(
    world: World, pod: Json, nodes: list[Json], free: Mapping[str, list[SimGpu]], wanted: int
) -> tuple[SimNode | None, list[str]]:
    """The first node that fits, else what each of them lacks."""
    reasons: list[str] = []
    for node in nodes:
        here = world.nodes.get(node["metadata"]["name"])
        problem = "node(s) had untolerated taint {node.kubernetes.io/unreachable: }" if here is None or here.silent else None
        problem = problem or _mismatch(node, pod["spec"])
        if problem is None and here is not None and len(free[here.name]) >= wanted:
            return here, []
        reasons.append(problem or f"Insufficient {GPU_RESOURCE}")
    return None, reasons


def _mismatch(node: Json, spec: Mapping[str, Any]) -> str | None:
    if node.get("spec", {}).get("unschedulable"):
        return "node(s) were unschedulable"
    labels = node["metadata"].get("labels", {})
    if any(labels.get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
        return "node(s) didn't match Pod's node affinity/selector"
    return None


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
