"""GHOST_CONTEXT, seen whole: real processes, a real descriptor in flight, and a node on which every process can be read.

This machine's own PID 1 may be out of reach even for root, and then no ghost may be told. So the node here is a PID namespace of
its own, whose PID 1 is ours: the reader is told that this namespace is the node's, and everything else is as on any node. Memory is
a lock of the simulated GPU: the kernel keeps it as long as anything refers to the open file. The looks take a minute, because that
is what a ghost needs.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sim.node.state import ordinary_node
from sim.node.state_file import write_state

ROOT = Path(__file__).parents[2]
MEMORY_BYTES = 3 << 30
IN_THE_NAMESPACE = """
import array, fcntl, json, os, socket, sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

from steps.adapters.clock import SystemClock
from steps.adapters.kubelet import CheckpointReader
from steps.adapters.nvml import NvmlReader
from steps.adapters.pods_on_disk import PodFolders
from steps.adapters.procfs import ProcfsReader
from steps.collect.look import look
from steps.contracts.document import Origin
from steps.trace.node import trace_node

sim, uuid, dev, size = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
here = os.readlink("/proc/self/ns/pid")
outside = SimpleNamespace(
    origin=Origin.SIMULATED,
    clock=SystemClock(),
    gpus=lambda reader=NvmlReader(): reader,
    processes=lambda: ProcfsReader(dev=dev, node_namespace=here),
    allocations=lambda: CheckpointReader(sim / "no-kubelet"),
    pods_on_disk=lambda: PodFolders(logs=sim / "no-logs", links=sim / "no-links", pods=sim / "no-pods"),
)


def seen(samples, interval_s):
    facts = look("a-node", outside, samples, interval_s)
    (gpu,) = trace_node(facts, (), now=datetime.now(UTC), lists=2).gpus
    return {
        "pid_1": Path("/proc/1/comm").read_text().strip(),
        "visibility": facts.visibility.level.value,
        "reasons": facts.visibility.reasons,
        "span_s": facts.span_s,
        "headline": gpu.headline.value,
        "reason": gpu.reason,
        "remedy": gpu.remedy,
        "holders": [[holder.pid, holder.gpu_class.value] for holder in gpu.holders],
        "unexplained": gpu.unexplained_bytes.known(),
    }


def take():
    handle = os.open(dev / "nvidia0", os.O_RDWR)
    place = sim / "memory" / uuid
    memory = os.open(place / ".new", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(memory, fcntl.LOCK_EX)
    os.rename(place / ".new", place / f"{size}.x")
    return handle, memory


told = {}
sender, receiver = socket.socketpair()
ready, go = socket.socketpair()
child = os.fork()
if child == 0:
    descriptors = take()
    ready.send(b"r")
    ready.recv(1)
    socket.send_fds(sender, [b"x"], list(descriptors))
    os._exit(0)
go.recv(1)
told["child"] = child
told["held"] = seen(2, 0.5)
go.send(b"g")
os.waitpid(child, 0)
told["once"] = seen(1, 0.0)
told["in flight"] = seen(4, 20.2)
_, descriptors, _, _ = socket.recv_fds(receiver, 1, 2)
told["received"] = seen(2, 0.5)
for one in descriptors:
    os.close(one)
told["closed"] = seen(2, 0.5)
told["here"] = os.getpid()
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("ghost")
    library, sim, dev = folder / "lib" / "libnvidia-ml.so.1", folder / "sim", folder / "dev"
    built = subprocess.run([ROOT / "sim" / "nvml" / "build.sh", library], capture_output=True, text=True, timeout=120, check=False)
    if built.returncode != 0:
        pytest.fail(f"the simulated library could not be built: {built.stderr.strip()}")
    sim.mkdir()
    dev.mkdir()
    state = ordinary_node(1)
    write_state(sim, state)
    os.mknod(dev / "nvidia0", 0o666 | 0o020000, os.makedev(1, 5))
    environment = {**os.environ, "GPU_SIM_DIR": str(sim), "LD_LIBRARY_PATH": str(library.parent)}
    namespace = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", '"$@"; exit $?', "sh")
    words = [*namespace, sys.executable, "-c", IN_THE_NAMESPACE, str(sim), state.gpus[0].uuid, str(dev), str(MEMORY_BYTES)]
    done = subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_every_process_of_that_node_was_read_its_pid_1_included(told: dict[str, Any]) -> None:
    looks = [one for one in told.values() if isinstance(one, dict)]
    assert [(one["visibility"], one["reasons"]) for one in looks] == [("full", [])] * 5
    assert {one["pid_1"] for one in looks} == {"sh"}


def test_while_the_process_holds_it_the_memory_is_its_own(told: dict[str, Any]) -> None:
    held = told["held"]
    assert [pid for pid, _ in held["holders"]] == [told["child"]], held
    assert held["unexplained"] < 64 << 20


def test_memory_behind_a_descriptor_in_flight_is_pending_at_first(told: dict[str, Any]) -> None:
    once = told["once"]
    assert (once["headline"], once["holders"]) == ("UNKNOWN", [])
    assert "pending: a ghost needs 3 samples over 60 s" in once["reason"]


def test_after_three_samples_over_a_minute_it_is_a_ghost_with_its_bytes_and_a_remedy(told: dict[str, Any]) -> None:
    ghost = told["in flight"]
    assert (ghost["headline"], ghost["holders"], ghost["span_s"] >= 60) == ("GHOST_CONTEXT", [], True), ghost["reason"]
    assert ghost["unexplained"] == pytest.approx(MEMORY_BYTES, abs=64 << 20)
    assert "cordon and drain the node" in ghost["remedy"]


def test_once_somebody_takes_the_descriptor_out_there_is_a_holder_and_no_ghost(told: dict[str, Any]) -> None:
    """It holds the node and NVML lists no process for what another one locked: a hidden holder."""
    received = told["received"]
    assert received["headline"] == "HIDDEN_HOLDER", received["reason"]
    assert [gpu_class for _, gpu_class in received["holders"]] == ["HIDDEN_HOLDER"]


def test_once_the_descriptor_is_closed_the_device_is_free(told: dict[str, Any]) -> None:
    closed = told["closed"]
    assert (closed["headline"], closed["holders"]) == ("BASELINE", []), closed["reason"]
