"""`python -m sim.node.device_plugin`: offers the simulated GPUs to the kubelet as nvidia.com/gpu (device plugin API v1beta1).

Devices and their health come from the state file; a lost GPU is Unhealthy. Registers again whenever the kubelet's socket is a
new one or ours is gone: a kubelet that starts empties the folder. Ends on SIGTERM.
"""

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent import futures
from pathlib import Path
from typing import Any, Final

import grpc

from sim.node.deviceplugin_api import DEVICE_PLUGIN, HEALTHY, MESSAGE, REGISTRATION, UNHEALTHY, VERSION
from sim.node.injection import for_session
from sim.node.state import NOT_LOST, State, StateError
from sim.node.state_file import folder_from, read_state, remove_leftovers

RESOURCE: Final = "nvidia.com/gpu"
SOCKET: Final = "gpu-sim.sock"
KUBELET_SOCKET: Final = "kubelet.sock"
PLUGIN_FOLDER: Final = Path("/var/lib/kubelet/device-plugins")
LOOK_S: Final = 1.0
REGISTER_S: Final = 5.0
STOP_S: Final = 2.0
WATCHERS: Final = 8
AUTHORITY: Final = (("grpc.default_authority", "localhost"),)
"""Without it gRPC over a Unix socket sends the path as authority, and the kubelet refuses."""

Health = tuple[tuple[str, str], ...]
"""UUID and health of each GPU, in the state's order."""


def health_of(state: State) -> Health:
    return tuple((gpu.uuid, HEALTHY if gpu.lost == NOT_LOST else UNHEALTHY) for gpu in state.gpus)


def unhealthy(known: Health) -> Health:
    """What is said while the state cannot be read: a GPU nobody can ask is not handed out."""
    return tuple((uuid, UNHEALTHY) for uuid, _ in known)


class Devices:
    """The devices as last seen; watchers wait here for a change."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._health: Health = ()
        self._version = 0

    @property
    def health(self) -> Health:
        return self._health

    def update(self, health: Health) -> bool:
        """True if it is news."""
        with self._changed:
            if health == self._health:
                return False
            self._health, self._version = health, self._version + 1
            self._changed.notify_all()
            return True

    def wait(self, seen: int) -> tuple[int, Health]:
        """The version and devices after `seen`, or the same ones after a second."""
        with self._changed:
            self._changed.wait_for(lambda: self._version != seen, timeout=LOOK_S)
            return self._version, self._health


class Service:
    """The four calls of the kubelet."""

    def __init__(self, folder: Path, devices: Devices) -> None:
        self._folder, self._devices = folder, devices

    def options(self, _request: Any, _context: Any) -> Any:
        return MESSAGE["DevicePluginOptions"]()

    def list_and_watch(self, _request: Any, context: Any) -> Iterator[Any]:
        seen = -1
        while context.is_active():
            version, health = self._devices.wait(seen)
            if version != seen:
                yield MESSAGE["ListAndWatchResponse"](devices=[MESSAGE["Device"](ID=uuid, health=word) for uuid, word in health])
            seen = version

    def allocate(self, request: Any, context: Any) -> Any:
        try:
            remove_leftovers(self._folder)
            state = read_state(self._folder)
            answers = [container_answer(self._folder, state, list(one.devices_ids)) for one in request.container_requests]
        except StateError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise  # abort has raised already
        say("allocated", devices=[list(one.devices_ids) for one in request.container_requests])
        return MESSAGE["AllocateResponse"](container_responses=answers)

    def pre_start(self, _request: Any, _context: Any) -> Any:
        return MESSAGE["PreStartContainerResponse"]()

    def handler(self) -> Any:
        """These calls as gRPC wants them."""
        unary = {
            "GetDevicePluginOptions": (self.options, "Empty"),
            "Allocate": (self.allocate, "AllocateRequest"),
            "PreStartContainer": (self.pre_start, "PreStartContainerRequest"),
        }
        calls = {
            name: grpc.unary_unary_rpc_method_handler(call, MESSAGE[request].FromString, _to_bytes)
            for name, (call, request) in unary.items()
        }
        calls["ListAndWatch"] = grpc.unary_stream_rpc_method_handler(self.list_and_watch, MESSAGE["Empty"].FromString, _to_bytes)
        return grpc.method_handlers_generic_handler(DEVICE_PLUGIN, calls)


def _to_bytes(message: Any) -> bytes:
    encoded: bytes = message.SerializeToString()
    return encoded


def container_answer(folder: Path, state: State, uuids: Sequence[str]) -> Any:
    """What one container is told: its GPUs' names, nodes, and the folder to lock in. Raises StateError for an unknown GPU."""
    injection = for_session(folder.resolve(), state, uuids)
    return MESSAGE["ContainerAllocateResponse"](
        envs={"NVIDIA_VISIBLE_DEVICES": ",".join(uuids)},
        mounts=[
            MESSAGE["Mount"](container_path=str(mount.container), host_path=str(mount.host), read_only=mount.read_only)
            for mount in injection.mounts
        ],
        devices=[
            MESSAGE["DeviceSpec"](container_path=str(node.container), host_path=str(node.host), permissions="rw")
            for node in injection.devices
        ],
    )


class Plugin:
    """The server on its socket, and its registration with the kubelet that is running now."""

    def __init__(self, folder: Path, plugin_folder: Path) -> None:
        self._folder, self._socket, self._kubelet = folder, plugin_folder / SOCKET, plugin_folder / KUBELET_SOCKET
        self.devices = Devices()
        self._server: Any = None
        self._registered_with: tuple[int, int] | None = None

    def look(self) -> None:
        """One turn: devices as the state has them, and registered with the kubelet if there is one."""
        self._look_at_devices()
        kubelet = identity(self._kubelet)
        if kubelet is None:
            self._registered_with = None
        elif kubelet != self._registered_with or not self._socket.exists():
            self._serve()
            self._registered_with = kubelet if self._register() else None

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop(STOP_S).wait(STOP_S)
            self._server = None

    def _look_at_devices(self) -> None:
        try:
            health = health_of(read_state(self._folder))
        except StateError as error:
            health = unhealthy(self.devices.health)
            if self.devices.update(health):
                say("state_unreadable", problem=str(error))
            return
        if self.devices.update(health):
            say("devices", health=dict(health))

    def _serve(self) -> None:
        self.stop()
        self._socket.unlink(missing_ok=True)
        self._server = grpc.server(futures.ThreadPoolExecutor(WATCHERS))
        self._server.add_generic_rpc_handlers((Service(self._folder, self.devices).handler(),))
        self._server.add_insecure_port(f"unix://{self._socket}")
        self._server.start()

    def _register(self) -> bool:
        request = MESSAGE["RegisterRequest"](version=VERSION, endpoint=SOCKET, resource_name=RESOURCE)
        with grpc.insecure_channel(f"unix://{self._kubelet}", options=AUTHORITY) as channel:
            call = channel.unary_unary(f"/{REGISTRATION}/Register", _to_bytes, MESSAGE["Empty"].FromString)
            try:
                call(request, timeout=REGISTER_S)
            except grpc.RpcError as error:
                say("registration_failed", problem=str(error.code()))
                return False
        say("registered", resource=RESOURCE)
        return True


def identity(path: Path) -> tuple[int, int] | None:
    """What tells one socket from the next at the same place; None: there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns


def say(event: str, **values: object) -> None:
    print(json.dumps({"event": f"device_plugin.{event}", **values}), file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    made = argparse.ArgumentParser(prog="device_plugin", description=__doc__.partition("\n")[0])
    made.add_argument("--folder", type=Path, default=folder_from(os.environ), help="default: GPU_SIM_DIR or /var/lib/gpu-sim")
    made.add_argument("--plugin-folder", type=Path, default=PLUGIN_FOLDER)
    options = made.parse_args(arguments)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: ended.set())
    signal.signal(signal.SIGINT, lambda _number, _frame: ended.set())
    plugin = Plugin(options.folder, options.plugin_folder)
    while not ended.is_set():  # bounded by the node's life: it is the node's daemon
        plugin.look()
        ended.wait(LOOK_S)
    plugin.stop()
    say("ended")
    return 0


if __name__ == "__main__":
    sys.exit(main())
