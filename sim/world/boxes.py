"""Inside the containers of the termination experiment: process trees that obey what was measured on a real kernel.

The rules are facts/gpu-and-linux 4.6 to 4.8: an orphan goes to PID 1; bash that stays and tini reap at once, sleep never; PID 1
without a handler ignores SIGTERM; tini hands it to its child and ends; when PID 1 ends, everything in its namespace is killed; a
zombie holds no memory; memory goes with the last process that shares the open file.
"""

import json
from datetime import timedelta
from typing import Any, Final

from sim.world.boxes_state import BoxProcess, SimBox
from sim.world.state import Due, Json, SimNode, SimProcess, World

EXPERIMENT: Final = "gpu-reclaim.dev/experiment"
MIB: Final = 1 << 20
REAP_S: Final = 0.04
HANDLER_S: Final = 0.3
TINI_S: Final = 0.1
CHILD_MIB: Final = 256
PROGRAMS: Final = {
    "bash": "/bin/bash -c while true; do sleep 1; done",
    "sleep": "sleep infinity",
    "tini": "/usr/bin/tini -- sleep infinity",
}


def is_box(pod: Json) -> bool:
    labels: Json = pod["metadata"].get("labels", {})
    return labels.get(EXPERIMENT) == "zombie"


def start(world: World, pod: Json, path: str) -> None:
    """The container runs: PID 1 and, below tini, its child."""
    container = pod["spec"]["containers"][0]
    pid1 = _pid1_of(container)
    environment = {one["name"]: one.get("value", "") for one in container.get("env", [])}
    box = SimBox(
        path=path,
        pid1=pid1,
        ignores_term=pid1 != "tini" or "trap" in " ".join(container.get("args", [])),
        prestop="preStop" in container.get("lifecycle", {}),
        wait_s=float(environment.get("PRESTOP_WAIT_S", "20")),
        next_pid=1,
        processes=[],
    )
    world.boxes[pod["metadata"]["uid"]] = box
    world.logs[_log_key(path)] = ""  # a log is one container's, not one name's
    spawn(world, box, ppid=0, name=pid1, command=PROGRAMS[pid1], role="init")
    if pid1 == "tini":
        spawn(world, box, ppid=1, name="sleep", command="sleep infinity", role="child")


def _pid1_of(container: Json) -> str:
    words = " ".join(container.get("command", []))
    if not words:
        return "tini"
    return "bash" if "while" in words else "sleep"


def spawn(world: World, box: SimBox, *, ppid: int, name: str, command: str, role: str) -> BoxProcess:
    """A process in the container, with a number on the node, too."""
    world.serial += 1
    ticks = int(world.now.timestamp() * 100) % 10**9
    made = BoxProcess(
        pid=box.next_pid, ppid=ppid, host_pid=4000 + world.serial, start_time_ticks=ticks, name=name, command=command, role=role
    )
    box.next_pid += 1
    box.processes.append(made)
    return made


def say(world: World, box: SimBox, event: str, pid: int, **values: Any) -> None:
    """A line in the pod log."""
    key = _log_key(box.path)
    line = json.dumps({"at": world.now.isoformat(timespec="milliseconds"), "event": event, "pid": pid, **values})
    world.logs[key] = world.logs.get(key, "") + line + "\n"


def _log_key(path: str) -> str:
    parts = path.split("/")
    return f"{parts[-3]}/{parts[-1]}"


def hold(world: World, node: SimNode, pod: Json, process: BoxProcess, bytes_held: int, *, listed: bool = True) -> None:
    """Give a process memory of the pod's device, or only the open device (0 bytes, not listed)."""
    uid = pod["metadata"]["uid"]
    device = next(entry.device_id for entry in node.allocations if entry.pod_uid == uid)
    status = pod["status"]["containerStatuses"][0]
    node.processes.append(
        SimProcess(
            pid=process.host_pid,
            start_time_ticks=process.start_time_ticks,
            pod_uid=uid,
            container_id=status["containerID"].partition("://")[2],
            name=process.name,
            executable="/usr/bin/python3.11",
            command=process.command,
            gpu_uuid=device,
            memory_bytes=bytes_held,
            listed_by_nvml=listed,
        )
    )


def kill(world: World, uid: str, pid: int) -> None:
    """SIGKILL to one process: its memory goes unless a forked child has the same file open; then it waits to be reaped."""
    box = world.boxes[uid]
    process = next((one for one in box.processes if one.pid == pid and one.state != "Z"), None)
    if process is None:
        return
    node = world.nodes[world.objects[box.path]["spec"]["nodeName"]]
    if world.injected == "stuck" and process.role == "worker":
        process.state = "D"
        _mark(node, process, "D")
        return
    _let_go(world, node, box, process)
    for one in box.processes:
        if one.ppid == pid:
            one.ppid = 1
    process.state = "Z"
    if box.pid1 in ("bash", "tini"):
        world.due.append(Due(at=world.now + timedelta(seconds=REAP_S), what="act", path=box.path, uid=uid, note=f"reap {pid}"))


def _let_go(world: World, node: SimNode, box: SimBox, process: BoxProcess) -> None:
    held = next((one for one in node.processes if one.pid == process.host_pid), None)
    if held is None:
        return
    node.processes.remove(held)
    sharers = [one.host_pid for one in box.processes if one.role == "forked" and one.state != "Z" and one.ppid == process.pid]
    heir = next((one for one in node.processes if one.pid in sharers), None)
    if heir is not None:
        heir.memory_bytes += held.memory_bytes
    elif world.injected == "ghost" and process.role == "worker":
        gpu = next(one for one in node.gpus if one.uuid == held.gpu_uuid)
        gpu.ghost_bytes += held.memory_bytes


def _mark(node: SimNode, process: BoxProcess, state: str) -> None:
    for one in node.processes:
        if one.pid == process.host_pid:
            one.state = state


def begin_end(world: World, uid: str, grace_s: float) -> float | None:
    """The kubelet ends the container. Schedules what happens on the way; seconds until it is over, None: it never is (D state)."""
    box = world.boxes[uid]
    if any(one.state == "D" for one in box.processes):
        return None
    if grace_s == 0:
        return 0.0
    waited = _prestop(world, uid, box, grace_s) if box.prestop else 0.0
    return min(waited + TINI_S, grace_s) if not box.ignores_term else float(grace_s)


def _prestop(world: World, uid: str, box: SimBox, grace_s: float) -> float:
    workers = [one for one in box.processes if one.role in ("worker", "forked") and one.state not in "ZD"]
    say(world, box, "prestop.began", 0, pids=" ".join(str(one.pid) for one in workers))
    stubborn = []
    for one in workers:
        if "fixed" in one.command:
            say(world, box, "gpu_worker_fixed.cleanup_began", one.pid)
            _later(world, uid, box, HANDLER_S, f"leave {one.pid}")
        else:
            stubborn.append(str(one.pid))
            if one.role == "worker":
                say(world, box, "gpu_worker.sigterm_ignored", one.pid)
    if not stubborn:
        return HANDLER_S + 0.2 if workers else 0.05
    if box.wait_s < grace_s:
        _later(world, uid, box, box.wait_s, f"hookkill {' '.join(stubborn)}")
    return min(box.wait_s + 0.05, grace_s)


def _later(world: World, uid: str, box: SimBox, after_s: float, note: str) -> None:
    world.due.append(Due(at=world.now + timedelta(seconds=after_s), what="act", path=box.path, uid=uid, note=note))


def act(world: World, due: Due) -> None:
    """What was scheduled inside a container happens, if the container is still there."""
    box = world.boxes.get(due.uid)
    if box is None:
        return
    verb, *pids = due.note.split()
    if verb == "reap":
        box.processes = [one for one in box.processes if str(one.pid) not in pids or one.state != "Z"]
    elif verb == "hookkill":
        say(world, box, "prestop.killing", 0, pids=" ".join(pids))
        for pid in pids:
            kill(world, due.uid, int(pid))
    elif verb == "leave":
        say(world, box, "gpu_worker_fixed.cleanup_done", int(pids[0]))
        kill(world, due.uid, int(pids[0]))


def over(world: World, uid: str) -> None:
    """PID 1 is gone, and with it every process of its namespace."""
    world.boxes.pop(uid, None)
