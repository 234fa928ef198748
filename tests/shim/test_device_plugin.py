"""The device plugin against a kubelet that is not there: registration, health, allocation, a kubelet that starts again."""

import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest

from sim.node.device_plugin import AUTHORITY, KUBELET_SOCKET, SOCKET, Plugin
from sim.node.deviceplugin_api import DEVICE_PLUGIN, MESSAGE, MESSAGES, REGISTRATION
from sim.node.state import GPU_IS_LOST, State, ordinary_node
from sim.node.state_file import write_state
from tests.shim.conftest import ROOT, eventually

CALL_S = 5.0


class FakeKubelet:
    """Takes registrations, and calls the plugin back as the kubelet does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.registered: list[tuple[str, str, str]] = []
        self._server: Any = None

    def start(self) -> None:
        self._server = grpc.server(futures.ThreadPoolExecutor(2))
        handler = grpc.unary_unary_rpc_method_handler(
            self._register, MESSAGE["RegisterRequest"].FromString, lambda message: message.SerializeToString()
        )
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(REGISTRATION, {"Register": handler}),))
        self._server.add_insecure_port(f"unix://{self._folder / KUBELET_SOCKET}")
        self._server.start()

    def stop(self) -> None:
        self._server.stop(0).wait(CALL_S)
        (self._folder / KUBELET_SOCKET).unlink(missing_ok=True)

    def _register(self, request: Any, _context: Any) -> Any:
        self.registered.append((request.version, request.endpoint, request.resource_name))
        return MESSAGE["Empty"]()

    def call(self, name: str, request: Any, answer: str) -> Any:
        with grpc.insecure_channel(f"unix://{self._folder / SOCKET}", options=AUTHORITY) as channel:
            ask = channel.unary_unary(f"/{DEVICE_PLUGIN}/{name}", type(request).SerializeToString, MESSAGE[answer].FromString)
            return ask(request, timeout=CALL_S)

    def watch(self, seen: list[dict[str, str]], ended: threading.Event) -> None:
        """Collect the lists of devices until told to end."""
        with grpc.insecure_channel(f"unix://{self._folder / SOCKET}", options=AUTHORITY) as channel:
            listen = channel.unary_stream(
                f"/{DEVICE_PLUGIN}/ListAndWatch", MESSAGE["Empty"].SerializeToString, MESSAGE["ListAndWatchResponse"].FromString
            )
            stream = listen(MESSAGE["Empty"](), timeout=60)
            threading.Thread(target=lambda: (ended.wait(60), stream.cancel()), daemon=True).start()
            with contextlib.suppress(grpc.RpcError):  # cancelled
                seen.extend({device.ID: device.health for device in update.devices} for update in stream)


@pytest.fixture
def state() -> State:
    return ordinary_node(2)


@pytest.fixture
def folder(tmp_path: Path, state: State) -> Path:
    made = tmp_path / "gpu-sim"
    made.mkdir()
    write_state(made, state)
    return made


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[FakeKubelet]:
    (tmp_path / "plugins").mkdir()
    made = FakeKubelet(tmp_path / "plugins")
    made.start()
    yield made
    made.stop()


@pytest.fixture
def plugin(tmp_path: Path, folder: Path, kubelet: FakeKubelet) -> Iterator[Plugin]:
    made = Plugin(folder, tmp_path / "plugins")
    yield made
    made.stop()


def test_it_registers_once_with_a_kubelet_and_again_with_the_next(plugin: Plugin, kubelet: FakeKubelet) -> None:
    plugin.look()
    plugin.look()
    assert kubelet.registered == [("v1beta1", SOCKET, "nvidia.com/gpu")]
    kubelet.stop()
    plugin.look()
    kubelet.start()
    plugin.look()
    assert len(kubelet.registered) == 2


def test_it_registers_again_when_a_starting_kubelet_emptied_the_folder(
    plugin: Plugin, kubelet: FakeKubelet, tmp_path: Path
) -> None:
    plugin.look()
    (tmp_path / "plugins" / SOCKET).unlink()
    plugin.look()
    assert len(kubelet.registered) == 2
    assert kubelet.call("GetDevicePluginOptions", MESSAGE["Empty"](), "DevicePluginOptions") is not None


def test_a_kubelet_that_refuses_is_asked_again_at_the_next_turn(plugin: Plugin, kubelet: FakeKubelet, tmp_path: Path) -> None:
    kubelet.stop()
    (tmp_path / "plugins" / KUBELET_SOCKET).touch()  # nobody listens
    plugin.look()
    (tmp_path / "plugins" / KUBELET_SOCKET).unlink()
    kubelet.start()
    plugin.look()
    assert len(kubelet.registered) == 1


def test_a_lost_gpu_becomes_unhealthy_and_healthy_again(plugin: Plugin, kubelet: FakeKubelet, folder: Path, state: State) -> None:
    first, second = (gpu.uuid for gpu in state.gpus)
    seen: list[dict[str, str]] = []
    ended = threading.Event()
    plugin.look()
    watcher = threading.Thread(target=kubelet.watch, args=(seen, ended))
    watcher.start()
    eventually(lambda: len(seen) == 1, "the first list")
    for lost in (GPU_IS_LOST, 0):
        write_state(folder, state.with_gpu(first, lost=lost))
        plugin.look()
        eventually(lambda want=lost: seen[-1][first] == ("Unhealthy" if want else "Healthy"), "the changed list")  # type: ignore[misc]
    ended.set()
    watcher.join(CALL_S)
    assert [update[second] for update in seen] == ["Healthy"] * 3


def test_while_the_state_cannot_be_read_no_gpu_is_handed_out(plugin: Plugin, folder: Path, state: State) -> None:
    plugin.look()
    (folder / "state").unlink()
    plugin.look()
    assert plugin.devices.health == tuple((gpu.uuid, "Unhealthy") for gpu in state.gpus)
    write_state(folder, state)
    plugin.look()
    assert plugin.devices.health == tuple((gpu.uuid, "Healthy") for gpu in state.gpus)


def test_an_allocation_names_gpu_nodes_and_what_may_be_written(
    plugin: Plugin, kubelet: FakeKubelet, folder: Path, state: State
) -> None:
    uuid = state.gpus[1].uuid
    plugin.look()
    request = MESSAGE["AllocateRequest"](container_requests=[MESSAGE["ContainerAllocateRequest"](devices_ids=[uuid])])
    (answer,) = kubelet.call("Allocate", request, "AllocateResponse").container_responses
    assert dict(answer.envs) == {"NVIDIA_VISIBLE_DEVICES": uuid}
    assert [(one.container_path, one.host_path, one.permissions) for one in answer.devices] == [
        ("/dev/nvidiactl", f"{folder}/dev/nvidiactl", "rw"),
        ("/dev/nvidia1", f"{folder}/dev/nvidia1", "rw"),
    ]
    writable = {one.container_path: one.host_path for one in answer.mounts if not one.read_only}
    assert writable == {f"/var/lib/gpu-sim/{kind}/{uuid}": f"{folder}/{kind}/{uuid}" for kind in ("memory", "activity")}
    assert {one.container_path.rsplit("/", 1)[1] for one in answer.mounts if one.read_only} == {"gpu-sim", "libnvidia-ml.so.1"}


def test_an_allocation_of_an_unknown_gpu_is_refused_with_a_sentence(plugin: Plugin, kubelet: FakeKubelet) -> None:
    plugin.look()
    request = MESSAGE["AllocateRequest"](container_requests=[MESSAGE["ContainerAllocateRequest"](devices_ids=["GPU-x"])])
    with pytest.raises(grpc.RpcError, match="no simulated GPU GPU-x"):
        kubelet.call("Allocate", request, "AllocateResponse")


def published_messages(proto: str) -> dict[str, dict[str, tuple[int, str]]]:
    """Fields of each message of a .proto file: number and type."""
    field = re.compile(r"^\s*(repeated |)([\w<>, ]+?) (\w+) = (\d+);", re.MULTILINE)
    bodies = re.findall(r"^message (\w+) \{(.*?)^\}", proto, re.MULTILINE | re.DOTALL)
    return {
        name: {word: (int(n), f"{'[]' if many else ''}{kind}") for many, kind, word, n in field.findall(body)}
        for name, body in bodies
    }


def test_names_and_numbers_are_those_the_kubelet_publishes() -> None:
    found = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, text=True, timeout=60, check=False)
    protos = sorted(Path(found.stdout.strip() or "/nowhere").glob("k8s.io/kubelet@v0.34.*/pkg/apis/deviceplugin/v1beta1/api.proto"))
    if not protos:
        pytest.skip("the module k8s.io/kubelet is not in this machine's Go cache")
    published = published_messages(protos[-1].read_text(encoding="utf-8"))
    for name, fields in MESSAGES.items():
        for word, number, kind in fields:
            assert published[name][word] == (number, "map<string, string>" if kind == "map" else kind)


def test_the_daemon_ends_on_sigterm(folder: Path, kubelet: FakeKubelet, tmp_path: Path) -> None:
    words = ["-m", "sim.node.device_plugin", "--folder", str(folder), "--plugin-folder", str(tmp_path / "plugins")]
    with subprocess.Popen([sys.executable, *words], cwd=ROOT, stderr=subprocess.PIPE, text=True) as daemon:
        eventually(lambda: len(kubelet.registered) == 1, "it registered")
        daemon.send_signal(signal.SIGTERM)
        _, said = daemon.communicate(timeout=CALL_S * 2)
    assert daemon.returncode == 0
    assert [json.loads(line)["event"] for line in said.splitlines()] == [
        "device_plugin.devices",
        "device_plugin.registered",
        "device_plugin.ended",
    ]
