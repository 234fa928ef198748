"""Zombies and connections of pods: real cgroups, real network namespaces, nobody's cluster."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steps.adapters.procfs import ProcfsReader
from steps.contracts.node_facts import Scan
from steps.contracts.ports import DeviceNode
from tests.node import cgroups
from tests.node.children import Children

Devices = tuple[DeviceNode, ...]


@pytest.fixture
def pod() -> Iterator[str]:
    cgroups.make(cgroups.CONTAINER)
    yield cgroups.CONTAINER
    deadline = time.monotonic() + 5
    while (cgroups.unified() / cgroups.CONTAINER).exists() and time.monotonic() < deadline:
        cgroups.remove(cgroups.CONTAINER)
        time.sleep(0.05)


@pytest.fixture
def pod_children(pod: str) -> Iterator[Children]:
    """Ends before the cgroup is removed."""
    started = Children()
    yield started
    started.end()


ZOMBIE = """
child = os.fork()
if child == 0:
    time.sleep(1.0)
    os._exit(0)
say(os.getpid(), child); wait()
"""


def test_a_zombie_in_a_pods_cgroup_is_told(reader: ProcfsReader, devices: Devices, pod: str, pod_children: Children) -> None:
    _, child = pod_children.start(ZOMBIE)
    cgroups.enter(pod, child)
    time.sleep(1.5)
    told = {process.pid: process for process in reader.scan(devices, (), Scan.FULL).processes}
    assert told[child].state == "Z"
    assert any(line.endswith(pod) for line in told[child].cgroup.known() or ())


SERVER = """
import subprocess
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
subprocess.run(["ip", "addr", "add", "10.9.8.7/32", "dev", "lo"], check=True)
dual = socket.create_server(("::", 8888), family=socket.AF_INET6, dualstack_ipv6=True)
inner = socket.create_server(("127.0.0.1", 7777))
own = socket.create_connection(("127.0.0.1", 7777))
accepted = inner.accept()
say(os.getpid())
kept = []
while True:
    kept.append(dual.accept())
"""
FROM_OUTSIDE = """
libc = ctypes.CDLL(None)
home, there = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(f"/proc/{sys.argv[1]}/ns/net", os.O_RDONLY)
assert libc.setns(there, 0x40000000) == 0
kept = [socket.create_connection((address, 8888)) for address in sys.argv[2:]]
assert libc.setns(home, 0x40000000) == 0
say(os.getpid())
wait()
"""
"""As the runtime does for `kubectl port-forward`: dialled inside, held by a process of the host."""


@pytest.fixture
def server(pod: str, pod_children: Children) -> int:
    """A process of a pod in a network namespace of its own. It talks to itself over loopback and listens on 8888."""
    (pid,) = pod_children.start(SERVER, before=("unshare", "--net"))
    cgroups.enter(pod, pid)
    return pid


def established(reader: ProcfsReader, devices: Devices, pid: int) -> int | None:
    """Connections into the namespace of `pid`; fails if it is not told of."""
    namespace = str(Path(f"/proc/{pid}/ns/net").stat().st_ino)
    sockets = reader.scan(devices, (), Scan.FULL).sockets.known()
    assert sockets is not None
    (one,) = (space for space in sockets if space.network_namespace == namespace)
    assert any(line.endswith(cgroups.CONTAINER) for line in one.cgroup)
    return one.established.known()


def test_a_pod_that_only_talks_to_itself_has_nobody(reader: ProcfsReader, devices: Devices, server: int) -> None:
    assert established(reader, devices, server) == 0


@pytest.mark.parametrize("address", ["127.0.0.1", "10.9.8.7", "::1"])
def test_a_connection_from_outside_is_somebody_even_over_loopback(
    address: str, reader: ProcfsReader, devices: Devices, server: int, pod_children: Children
) -> None:
    pod_children.start(FROM_OUTSIDE, str(server), address)
    assert established(reader, devices, server) == 1


def test_connections_are_counted_and_closed_ones_are_not(
    reader: ProcfsReader, devices: Devices, server: int, pod_children: Children
) -> None:
    two_and_one_closed = FROM_OUTSIDE.replace("say(", "kept.pop().close(); say(")
    pod_children.start(two_and_one_closed, str(server), "10.9.8.7", "10.9.8.7", "10.9.8.7")
    assert established(reader, devices, server) == 2


def test_a_pod_on_the_hosts_network_is_not_told_of_because_its_connections_cannot_be_told_apart(
    reader: ProcfsReader, devices: Devices, pod: str, pod_children: Children
) -> None:
    (pid,) = pod_children.start("say(os.getpid()); wait()")
    cgroups.enter(pod, pid)
    namespace = str(Path(f"/proc/{pid}/ns/net").stat().st_ino)
    sockets = reader.scan(devices, (), Scan.FULL).sockets.known()
    assert sockets is not None
    assert namespace not in {space.network_namespace for space in sockets}
