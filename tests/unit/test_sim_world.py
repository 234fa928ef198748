"""The simulated cluster lives by rules of its own: what follows a scale, a deletion, a free device."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sim.api import StateFileApi
from sim.clock import SimulatedClock
from sim.scenarios.builder import GIB, WorldBuilder
from sim.scenarios.large import large_world
from sim.world.state import Behaviour, Forbidden, World
from sim.world.store import StateFile
from steps.contracts.errors import BadInput

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
PODS = "/api/v1/namespaces/team/pods"
SCALE = "/apis/apps/v1/namespaces/team/deployments/a/scale"


class Lab:
    """One node with one GPU, session `a` on it, session `b` behind it."""

    def __init__(self, folder: Path, *, a: Behaviour, b: Behaviour | None = None, grace_s: int = 30) -> None:
        built = WorldBuilder(NOON)
        built.namespace("team")
        built.node("node-1", "GPU-X", gpus=1, memory_gib=80)
        built.session("team", "a", "GPU-X", a, grace_s=grace_s)
        built.wait(minutes=1)
        if b is not None:
            built.session("team", "b", "GPU-X", b)
            built.wait(minutes=1)
        self.file = StateFile(folder / "state.json")
        self.file.create(built.world)
        self.api = StateFileApi(folder / "state.json")
        self.clock = SimulatedClock(folder / "state.json")

    def world(self) -> World:
        with self.file.open() as world:
            return world

    def stop_a(self) -> None:
        assert self.api.patch(SCALE, {"spec": {"replicas": 0}}).ok

    def phases(self) -> dict[str, str]:
        return {pod["metadata"]["labels"]["app"]: pod["status"]["phase"] for pod in self.api.list(PODS).body["items"]}


HOLDING = Behaviour(memory_bytes=10 * GIB, exits_after_s=None)


def test_a_scaled_down_pod_keeps_its_processes_until_the_grace_ends_and_its_object_a_little_longer(tmp_path: Path) -> None:
    lab = Lab(tmp_path, a=HOLDING)
    lab.stop_a()
    seen = []
    for _ in range(4):
        seen.append((len(lab.world().nodes["node-1"].processes), len(lab.api.list(PODS).body["items"])))
        lab.clock.sleep(11)
    assert seen == [(1, 1), (1, 1), (1, 1), (0, 0)]


def test_a_pod_that_handles_the_signal_is_gone_before_its_grace_ends(tmp_path: Path) -> None:
    lab = Lab(tmp_path, a=Behaviour(memory_bytes=GIB, exits_after_s=2.0))
    lab.stop_a()
    lab.clock.sleep(1.9)
    before = len(lab.world().nodes["node-1"].processes)
    lab.clock.sleep(0.2)
    assert (before, lab.world().nodes["node-1"].processes) == (1, [])


def test_the_object_tells_when_its_grace_ends(tmp_path: Path) -> None:
    lab = Lab(tmp_path, a=HOLDING, grace_s=20)
    asked_at = lab.clock.now()
    lab.stop_a()
    (pod,) = lab.api.list(PODS).body["items"]
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 20
    assert pod["metadata"]["deletionTimestamp"] == (asked_at + timedelta(seconds=20)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_the_waiting_pod_gets_the_device_once_the_other_object_is_gone(tmp_path: Path) -> None:
    lab = Lab(tmp_path, a=HOLDING, b=Behaviour(memory_bytes=GIB))
    assert lab.phases() == {"a": "Running", "b": "Pending"}
    device = lab.world().nodes["node-1"].allocations[0].device_id
    lab.stop_a()
    lab.clock.sleep(60)
    (allocation,) = lab.world().nodes["node-1"].allocations
    (pod,) = lab.api.list(PODS).body["items"]
    assert (lab.phases(), allocation.device_id, allocation.pod_uid) == ({"b": "Running"}, device, pod["metadata"]["uid"])


def test_a_waiting_pod_says_so_in_the_schedulers_words(tmp_path: Path) -> None:
    lab = Lab(tmp_path, a=HOLDING, b=Behaviour())
    (waiting,) = lab.api.list(PODS, field_selector="spec.nodeName=").body["items"]
    assert waiting["status"]["conditions"][0]["message"] == "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


def test_the_checkpoint_keeps_a_dead_pods_device_until_the_next_allocation(tmp_path: Path) -> None:
    lab = Lab(tmp_path, a=HOLDING)
    (before,) = lab.world().nodes["node-1"].allocations
    lab.stop_a()
    lab.clock.sleep(120)
    assert lab.api.list(PODS).body["items"] == []
    assert lab.world().nodes["node-1"].allocations == [before]


def test_a_deleted_pod_of_a_deployment_is_made_again(tmp_path: Path) -> None:
    lab = Lab(tmp_path, a=Behaviour(memory_bytes=GIB))
    (old,) = lab.api.list(PODS).body["items"]
    assert lab.api.delete(f"{PODS}/{old['metadata']['name']}", uid=old["metadata"]["uid"]).ok
    lab.clock.sleep(60)
    (new,) = lab.api.list(PODS).body["items"]
    assert (new["metadata"]["uid"] != old["metadata"]["uid"], new["status"]["phase"]) == (True, "Running")


def test_what_a_session_leaves_behind_stays_on_the_device(tmp_path: Path) -> None:
    lab = Lab(tmp_path, a=Behaviour(memory_bytes=GIB, leaves_ghost_bytes=2 * GIB))
    lab.stop_a()
    lab.clock.sleep(60)
    node = lab.world().nodes["node-1"]
    assert (node.processes, node.gpus[0].ghost_bytes) == ([], 2 * GIB)


def test_a_forbidden_path_answers_403_and_changes_nothing(tmp_path: Path) -> None:
    lab = Lab(tmp_path, a=HOLDING)
    with lab.file.open() as world:
        world.forbidden.append(Forbidden(verb="patch", path="*/deployments/*/scale"))
    assert lab.api.patch(SCALE, {"spec": {"replicas": 0}}).status == 403
    assert lab.api.get(SCALE).body["spec"] == {"replicas": 1}


def test_reading_the_world_does_not_change_the_file(tmp_path: Path) -> None:
    lab = Lab(tmp_path, a=HOLDING, b=Behaviour())
    before = (tmp_path / "state.json").read_bytes()
    lab.api.list(PODS)
    lab.clock.now()
    assert (tmp_path / "state.json").read_bytes() == before


def test_the_log_of_a_pod_is_its_end(tmp_path: Path) -> None:
    lab = Lab(tmp_path, a=HOLDING)
    (pod,) = lab.api.list(PODS).body["items"]
    with lab.file.open() as world:
        world.logs[f"team/{pod['metadata']['name']}"] = "first line\nlast line\n"
    assert lab.api.text(f"{PODS}/{pod['metadata']['name']}/log", limit_bytes=10) == (200, "last line\n")


@pytest.mark.parametrize("content", [None, b"", b"{}", b'{"now": 3}'])
def test_a_state_file_that_holds_no_world_is_bad_input(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "state.json").write_bytes(content)
    with pytest.raises(BadInput, match=r"state\.json"):
        StateFileApi(tmp_path / "state.json").get("/api/v1/nodes")


def test_who_looked_before_sees_what_another_has_changed_since(tmp_path: Path) -> None:
    """A version of the file is decoded once by each who looks; what replaced it must not be missed."""
    lab = Lab(tmp_path, a=HOLDING)
    reader, seen = StateFile(tmp_path / "state.json"), []
    for _ in range(20):
        seen.append((reader.read().now - NOON).total_seconds())
        lab.clock.sleep(1)
    assert seen == [60.0 + second for second in range(20)]


def test_a_world_with_more_sessions_than_devices_leaves_the_rest_waiting() -> None:
    world = large_world(NOON, nodes=2, sessions=19)
    pods = [item for item in world.objects.values() if item["kind"] == "Pod"]
    waiting = [pod for pod in pods if pod["status"]["phase"] == "Pending"]
    assert (world.now, len(pods), len(waiting)) == (NOON, 19, 3)
    assert {pod["status"]["conditions"][0]["message"] for pod in waiting} == {
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    }
    given = [entry.device_id for node in world.nodes.values() for entry in node.allocations]
    assert sorted(given) == sorted(gpu.uuid for node in world.nodes.values() for gpu in node.gpus)
