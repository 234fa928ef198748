"""Exec into a simulated container: the commands of the scenario images, and what they print."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from experiments.zombie.ports import Executed
from sim.world import boxes
from sim.world.boxes_state import BoxProcess
from sim.world.paths import POD
from sim.world.state import World
from sim.world.store import StateFile
from sim.zombie.memory import used_bytes
from steps.contracts.errors import SourceUnavailable

OBSERVE_PID_GAP: Final = 2


class SimulatedExec:
    """Fits adapters.sessions.Exec: knows the commands of the scenario images and no other."""

    def __init__(self, state: Path) -> None:
        self._store = StateFile(state)

    def run(self, namespace: str, pod: str, container: str, argv: Sequence[str], timeout_s: float) -> Executed:
        with self._store.open() as world:
            item = world.objects.get(POD.path(namespace, pod))
            uid = item["metadata"]["uid"] if item else ""
            if uid not in world.boxes:
                raise SourceUnavailable(f"container {container} of pod {namespace}/{pod} does not run (simulated)")
            words = " ".join(argv)
            if "parent.py" in words:
                return _done({"event": "parent.spawned", "worker": _spawn_worker(world, uid, argv)})
            if "observe.py" in words:
                return _done(_observe(world, uid))
            if argv[-1].startswith("kill -9 "):
                boxes.kill(world, uid, int(argv[-1].split()[-1]))
                return Executed(code=0, stdout="", stderr="")
        return Executed(code=127, stdout="", stderr=f"{argv[0]}: not known to the simulated container")


def _done(said: dict[str, Any]) -> Executed:
    return Executed(code=0, stdout=json.dumps(said) + "\n", stderr="")


def _spawn_worker(world: World, uid: str, argv: Sequence[str]) -> int:
    """The parent starts the worker and is gone: PID 1 inherits it."""
    box = world.boxes[uid]
    pod = world.objects[box.path]
    node = world.nodes[pod["spec"]["nodeName"]]
    program = Path(argv[2]).name
    options = dict(word.removeprefix("--").split("=", 1) for word in argv[3:])
    box.next_pid += 1  # the parent's own number
    worker = boxes.spawn(world, box, ppid=1, name="python3", command=f"python3 /opt/scenario/{program}", role="worker")
    bytes_held = int(options["mib"]) * boxes.MIB
    boxes.hold(world, node, pod, worker, bytes_held)
    children = _children(world, uid, worker, options.get("shape", "plain"))
    who = program.removesuffix(".py")
    boxes.say(world, box, f"{who}.holding", worker.pid, mib=int(options["mib"]), backend="simulated", children=children)
    return worker.pid


def _children(world: World, uid: str, worker: BoxProcess, shape: str) -> list[int]:
    box = world.boxes[uid]
    pod = world.objects[box.path]
    node = world.nodes[pod["spec"]["nodeName"]]
    if shape == "training-child":
        child = boxes.spawn(world, box, ppid=worker.pid, name="python3", command=worker.command, role="worker")
        boxes.hold(world, node, pod, child, boxes.CHILD_MIB * boxes.MIB)
        return [child.pid]
    made = []
    for _ in range(2 if shape == "multiprocessing" else 0):
        child = boxes.spawn(world, box, ppid=worker.pid, name="python3", command=worker.command, role="forked")
        boxes.hold(world, node, pod, child, 0, listed=False)
        made.append(child.pid)
    return made


def _observe(world: World, uid: str) -> dict[str, Any]:
    """What images/scenarios/observe.py would print."""
    box = world.boxes[uid]
    node = world.nodes[world.objects[box.path]["spec"]["nodeName"]]
    holding = {one.pid for one in node.processes if one.pod_uid == uid}
    tree = [_seen(one) for one in box.processes]
    suspects = [one for one in box.processes if one.state == "Z" or one.host_pid in holding]
    box.next_pid += OBSERVE_PID_GAP
    return {
        "at": world.now.isoformat(timespec="milliseconds"),
        "pid1": tree[0],
        "tree": tree,
        "zombies": [one.pid for one in box.processes if one.state == "Z"],
        "orphans": [one.pid for one in box.processes if one.ppid == 1],
        "gpus": {
            "problem": None,
            "gpus": [
                {"uuid": gpu.uuid, "used_bytes": used_bytes(node, gpu), "total_bytes": gpu.total_bytes, "processes": []}
                for gpu in node.gpus
            ],
        },
        "holders": [
            {"pid": one.pid, "devices": ["/dev/nvidia0", "/dev/nvidiactl"], "problem": None}
            for one in box.processes
            if one.host_pid in holding
        ],
        "verdicts": [
            {
                "pid": one.pid,
                "in_nvml": None,
                "holds_device": one.host_pid in holding,
                "alive": one.state != "Z",
                "state": one.state,
            }
            for one in suspects
        ],
    }


def _seen(one: BoxProcess) -> dict[str, Any]:
    command = "" if one.state == "Z" else one.command
    return {"pid": one.pid, "ppid": one.ppid, "state": one.state, "name": one.name, "command": command, "threads": 1}
