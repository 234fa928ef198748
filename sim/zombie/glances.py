"""Fast looks at a simulated node."""

from collections.abc import Sequence
from pathlib import Path

from experiments.zombie.ports import Glance
from experiments.zombie.recording import WatchedGpu, WatchedProcess
from sim.world.boxes_state import SimBox
from sim.world.pods import container_id
from sim.world.state import World
from sim.world.store import StateFile
from sim.zombie.memory import used_bytes
from steps.contracts.document import Sample


class SimulatedGlances:
    """Fits ports.Glances."""

    def __init__(self, state: Path, node: str) -> None:
        self._store, self._node = StateFile(state), node

    def look(self, pods: Sequence[str]) -> Glance:
        with self._store.open() as world:
            node = world.nodes[self._node]
            gpus = tuple(WatchedGpu(uuid=gpu.uuid, used_bytes=Sample.measured(used_bytes(node, gpu))) for gpu in node.gpus)
            given = tuple((one.pod_uid, one.container, one.device_id) for one in node.allocations)
            inside = [one for uid in pods if uid in world.boxes for one in _inside(world, uid, world.boxes[uid])]
            outside = self._outside(world, {one.pid for one in inside})
            return Glance(at=world.now, done_at=world.now, gpus=gpus, processes=(*inside, *outside), given=given)

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
