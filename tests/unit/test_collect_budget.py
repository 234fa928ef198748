"""What one node hands over fits into its share of an Argo argument."""

import random
import uuid

import msgspec
import pytest

from steps.adapters.redact import redact_command
from steps.collect.look import look
from steps.contracts.cluster_facts import ContainerFacts
from steps.contracts.document import Sample
from steps.contracts.node_facts import Allocation, Hold, HoldVia, NodeFacts, PodOnDisk, ProcessFacts, SocketFacts
from steps.contracts.parcel import MAX_PARCEL_BYTES, pack, unpack
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


def full_node(looks: int, holders_a_pod: int) -> NodeFacts:
    """8 GPUs with 8 processes each; somebody is connected to each of their pods, which the kubelet's folders know, too."""
    gpus = [busy_gpu(number) for number in range(GPUS)]
    processes: list[ProcessFacts] = []
    pods: list[tuple[str, str, FakeGpu]] = []
    for gpu in gpus:
        server = CHANCE.randrange(2, 4_000_000)
        for number, one in enumerate(gpu.compute):
            if number % holders_a_pod == 0:
                pods.append((pod := uid(), container(pod), gpu))
                server = CHANCE.randrange(2, 4_000_000)
            processes.append(kernel(one.pid, gpu, pods[-1][1], server))
    processes.sort(key=lambda one: one.pid)
    sockets = tuple(
        SocketFacts(network_namespace=str(4026532000 + 7 * n), cgroup=(cgroup,), established=Sample.measured(n % 3))
        for n, (_, cgroup, _) in enumerate(pods)
    )
    allocations = tuple(
        Allocation(device_id=f"{gpu.uuid}::{n}", resource="nvidia.com/gpu", pod_uid=pod, container="notebook")
        for n, (pod, _, gpu) in enumerate(pods)
    )
    folders = tuple(on_disk(n, pod, cgroup) for n, (pod, cgroup, _) in enumerate(pods))
    world = World(
        [reading(*gpus)],
        [scan(*processes, sockets=Sample.measured(sockets))],
        Sample.measured(allocations),
        folders=Sample.measured(folders),
    )
    return look("gpu-node-17.example.internal", world, looks, 30)


def on_disk(number: int, pod: str, cgroup: str) -> PodOnDisk:
    name = f"jupyter-user-{hex_of(32)}"
    containers = (ContainerFacts(name="notebook", container_ids=(cgroup.removesuffix(".scope")[-64:],)),)
    return PodOnDisk(uid=pod, namespace=f"team-{number % 9}", name=name, kept=True, containers=containers)


@pytest.mark.parametrize("holders_a_pod", [HOLDERS_A_GPU, 1])
def test_a_node_with_8_gpus_and_64_holders_fits_its_budget(holders_a_pod: int) -> None:
    facts = full_node(3, holders_a_pod)
    assert len(facts.processes) == GPUS * HOLDERS_A_GPU
    pods = facts.pods_on_disk.known()
    assert pods is not None
    assert len(pods) == GPUS * HOLDERS_A_GPU / holders_a_pod
    packed = pack(facts)
    assert len(packed) <= MAX_PARCEL_BYTES
    assert unpack(packed, NodeFacts, "here") == facts
