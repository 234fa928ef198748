"""What one node hands over fits into its share of an Argo argument."""

import random
import uuid

import msgspec

from steps.adapters.redact import redact_command
from steps.collect.look import look
from steps.contracts.document import Sample
from steps.contracts.node_facts import Allocation, Hold, HoldVia, NodeFacts, ProcessFacts, SocketFacts
from steps.contracts.parcel import MAX_PARCEL_BYTES, pack
from tests.unit.fake_nvml import GIB, FakeGpu, listed
from tests.unit.node_world import World, process, reading, scan

GPUS, HOLDERS_A_GPU = 8, 8
CHANCE = random.Random(20261130)


def hex_of(bits: int) -> str:
    return f"{CHANCE.getrandbits(bits):0{bits // 4}x}"


def uid() -> str:
    return str(uuid.UUID(int=CHANCE.getrandbits(128), version=4))


def container(pod: str) -> str:
    slice_name = f"kubepods-burstable-pod{pod.replace('-', '_')}.slice"
    return f"0::/kubepods.slice/kubepods-burstable.slice/{slice_name}/cri-containerd-{hex_of(256)}.scope"


def busy_gpu(number: int) -> FakeGpu:
    pids = [CHANCE.randrange(2, 4_000_000) for _ in range(HOLDERS_A_GPU)]
    return FakeGpu(
        uuid=f"GPU-{uid()}",
        minor=number,
        used=CHANCE.randrange(80 * GIB),
        utilisation=CHANCE.randrange(101),
        sm_percent=CHANCE.random() * 100,
        graphics_percent=CHANCE.random() * 100,
        compute=[listed(pid, CHANCE.randrange(9 * GIB)) for pid in pids],
    )


def kernel(pid: int, gpu: FakeGpu, cgroup: str, server: int) -> ProcessFacts:
    """A Jupyter kernel: it leads its own session and group, and its parent is the pod's server."""
    devices = ((f"nvidia{gpu.minor}", gpu.uuid), ("nvidia-uvm", None), ("nvidiactl", None))
    return msgspec.structs.replace(
        process(pid, start=CHANCE.randrange(10**9), cgroup=cgroup),
        parent_pid=server,
        command=Sample.measured(
            redact_command(["/opt/venv/bin/python", "-m", "ipykernel_launcher", "-f", f"/run/kernel-{uid()}.json"])
        ),
        threads=CHANCE.randrange(20, 400),
        holds=tuple(Hold(device=name, gpu_uuid=gpu_uuid, via=HoldVia.DESCRIPTOR) for name, gpu_uuid in devices),
        pid_in_container=CHANCE.randrange(2, 3000),
        parent_executable="/opt/venv/bin/python3.11",
        adopted=Sample.absent("its parent is the container's PID 1: an original child and an adopted one look the same"),
    )


def full_node(looks: int) -> NodeFacts:
    """8 GPUs, each given to a pod of its own with 8 processes on it, and somebody connected to each."""
    gpus = [busy_gpu(number) for number in range(GPUS)]
    pods = [uid() for _ in gpus]
    cgroups = [container(pod) for pod in pods]
    servers = [CHANCE.randrange(2, 4_000_000) for _ in gpus]
    processes = [
        kernel(one.pid, gpu, cgroup, server)
        for gpu, cgroup, server in zip(gpus, cgroups, servers, strict=True)
        for one in gpu.compute
    ]
    processes.sort(key=lambda one: one.pid)
    sockets = tuple(
        SocketFacts(network_namespace=str(4026532000 + n), cgroup=(container(pod),), established=Sample.measured(n))
        for n, pod in enumerate(pods)
    )
    allocations = tuple(
        Allocation(device_id=gpu.uuid, resource="nvidia.com/gpu", pod_uid=pod, container="notebook")
        for gpu, pod in zip(gpus, pods, strict=True)
    )
    world = World([reading(*gpus)], [scan(*processes, sockets=Sample.measured(sockets))], Sample.measured(allocations))
    return look("gpu-node-17.example.internal", world, looks, 30)


def test_a_node_with_8_gpus_and_64_holders_fits_its_budget() -> None:
    facts = full_node(looks=3)
    assert len(facts.processes) == GPUS * HOLDERS_A_GPU
    assert len(pack(facts)) <= MAX_PARCEL_BYTES
