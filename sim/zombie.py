"""The termination experiment's outside, simulated: sessions over the simulated API, exec into simulated containers, fast looks.

One clock for drive and watch: watch's sleep moves the world, and drive waits until the world has got there. So watch sees
everything that drive does, at its own rate, as it would on a node.
"""

import fcntl
import json
import os
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from experiments.adapters.sessions import KubernetesSessions
from experiments.zombie.ports import Executed, Glance, Glances, Partner, Sessions, Watching, ZombieOutside
from experiments.zombie.recording import WatchedGpu, WatchedProcess
from sim.api import StateFileApi
from sim.outside import NODE_VARIABLE, SimulatedOutside
from sim.world import boxes
from sim.world.boxes_state import BoxProcess, SimBox
from sim.world.paths import POD
from sim.world.pods import container_id
from sim.world.state import World
from sim.world.store import StateFile
from steps.contracts.document import Sample
from steps.contracts.errors import BadInput, SourceUnavailable
from steps.contracts.ports import DeviceNode, Outside

STATE_VARIABLE: Final = "GPU_RECLAIM_SIMULATOR"
STALLED_S: Final = 30.0
UNWATCHED_S: Final = 0.1
"""Real seconds without progress after which drive moves the world itself: while watch lives (on a slow machine it may take its
time, and must not miss anything), and while it is not there yet, or no more."""
LOOK_S: Final = 0.002
ALONE_S: Final = 0.03
"""Real seconds between two looks of watch, with drive there and without: simulated minutes must not pass while drive starts."""
OBSERVE_PID_GAP: Final = 2


class SimulatedZombieOutside:
    """Fits experiments.zombie.ports.ZombieOutside."""

    def __init__(self, base: SimulatedOutside) -> None:
        self._base = base
        self._path = Path(base.environment[STATE_VARIABLE])
        self._partner: SimulatedPartner | None = None

    @property
    def base(self) -> Outside:
        return self._base

    def sessions(self, namespace: str) -> Sessions:
        return KubernetesSessions(StateFileApi(self._path), SimulatedExec(self._path), namespace)

    def partner(self, run: str, scenario: str) -> Partner:
        self._partner = SimulatedPartner(self._path, f"{run}.{scenario}", self._is_watch)
        return self._partner

    @property
    def _watched(self) -> bool:
        return self._partner is not None and self._partner.other_lives()

    @property
    def _is_watch(self) -> bool:
        return self._base.environment.get("GPU_RECLAIM_NODE_POD") is not None

    def glances(self, devices: Sequence[DeviceNode]) -> Glances:
        return SimulatedGlances(self._path, self._base.environment[NODE_VARIABLE])

    def kernel(self) -> Sample[str]:
        return Sample.measured("simulated", "simulator")

    def pace(self, seconds: float) -> None:
        """drive waits until the world has got so far, or moves it if nobody does; watch moves it and leaves drive time to act."""
        clock = self._base.clock
        if self._is_watch:
            time.sleep(LOOK_S if self._partner is not None and self._partner.other_lives() else ALONE_S)
            clock.sleep(seconds)
            return
        target_s, last, moved_at = clock.now().timestamp() + seconds, clock.now(), time.monotonic()
        while (now := clock.now()).timestamp() < target_s:
            if now != last:
                last, moved_at = now, time.monotonic()
            elif time.monotonic() - moved_at > (STALLED_S if self._watched else UNWATCHED_S):
                clock.sleep(min(seconds, target_s - now.timestamp()))
                return
            time.sleep(LOOK_S)


def simulated_outside(base: Outside) -> ZombieOutside:
    """Raises BadInput for a base that is not the simulator's."""
    if not isinstance(base, SimulatedOutside):
        raise BadInput(f"the simulated experiment needs the simulator's outside, not {type(base).__name__}")
    return SimulatedZombieOutside(base)


class SimulatedPartner:
    """Two lock files beside the state: each step holds its own while it lives, so that a crash lets go."""

    def __init__(self, state: Path, key: str, is_watch: bool) -> None:
        mine, other = ("watch", "drive") if is_watch else ("drive", "watch")
        self._other = state.with_name(f".{key}.{other}")
        self._mine = os.open(state.with_name(f".{key}.{mine}"), os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(self._mine, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @cached_property
    def _seen(self) -> list[bool]:
        return []

    def watching(self) -> Watching:
        if self._other.exists() and self._other.read_bytes():
            return Watching.READY
        return Watching.ENDED if self._was_there_and_went() else Watching.NOT_YET

    def driving(self) -> bool:
        return self.other_lives()

    def say_ready(self) -> None:
        os.pwrite(self._mine, b"ready\n", 0)

    def _was_there_and_went(self) -> bool:
        held = self.other_lives()
        if held:
            self._seen.append(True)
        return self._other.exists() and not held and (bool(self._seen) or self._other.stat().st_size == 0)

    def other_lives(self) -> bool:
        """Whether the other step holds its lock."""
        try:
            handle = os.open(self._other, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False


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
                {"uuid": gpu.uuid, "used_bytes": _used(node, gpu), "total_bytes": gpu.total_bytes, "processes": []}
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


def _used(node: Any, gpu: Any) -> int:
    held = sum(one.memory_bytes for one in node.processes if one.gpu_uuid == gpu.uuid)
    return int(gpu.baseline_bytes + gpu.ghost_bytes + held)


class SimulatedGlances:
    """Fits ports.Glances."""

    def __init__(self, state: Path, node: str) -> None:
        self._store, self._node = StateFile(state), node

    def look(self, pods: Sequence[str]) -> Glance:
        with self._store.open() as world:
            node = world.nodes[self._node]
            gpus = tuple(WatchedGpu(uuid=gpu.uuid, used_bytes=Sample.measured(_used(node, gpu))) for gpu in node.gpus)
            given = tuple((one.pod_uid, one.container, one.device_id) for one in node.allocations)
            inside = [one for uid in pods if uid in world.boxes for one in _inside(world, uid, world.boxes[uid])]
            return Glance(
                at=world.now, gpus=gpus, processes=(*inside, *self._outside(world, {one.pid for one in inside})), given=given
            )

    def close(self) -> None:
        """Nothing is open."""

    def _outside(self, world: World, known: set[int]) -> list[WatchedProcess]:
        """Holders that belong to no container of the experiment."""
        return [
            WatchedProcess(
                pid=one.pid,
                start_time_ticks=one.start_time_ticks,
                parent_pid=1,
                state=one.state,
                name=one.name,
                pid_in_container=None,
                pod_uid=one.pod_uid,
                container_id=one.container_id,
                holds=True,
                in_nvml=one.listed_by_nvml,
                nvml_bytes=one.memory_bytes if one.listed_by_nvml else None,
            )
            for one in world.nodes[self._node].processes
            if one.pid not in known
        ]


def _inside(world: World, uid: str, box: SimBox) -> list[WatchedProcess]:
    node = world.nodes[world.objects[box.path]["spec"]["nodeName"]]
    held = {one.pid: one for one in node.processes if one.pod_uid == uid}
    hosts = {one.pid: one.host_pid for one in box.processes}
    container = container_id(uid, world.objects[box.path]["spec"]["containers"][0]["name"])
    return [
        WatchedProcess(
            pid=one.host_pid,
            start_time_ticks=one.start_time_ticks,
            parent_pid=hosts.get(one.ppid, 0),
            state=one.state,
            name=one.name,
            pid_in_container=one.pid,
            pod_uid=uid,
            container_id=container,
            holds=one.host_pid in held,
            in_nvml=one.host_pid in held and held[one.host_pid].listed_by_nvml,
            nvml_bytes=held[one.host_pid].memory_bytes if one.host_pid in held and held[one.host_pid].listed_by_nvml else None,
        )
        for one in box.processes
    ]
