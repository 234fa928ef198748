"""Scenes for the property tests that no field case has: what only one input tells, with that input there."""

from collections.abc import Mapping
from typing import Any, Final

from steps.contracts.cluster_facts import ContainerFacts, Phase, PodFacts
from steps.contracts.document import Sample
from steps.contracts.node_facts import Health, HoldVia, NodeFacts, PodOnDisk, ProcessActivity, ProcessKind
from tests.unit.trace_world import (
    CONTAINER_A,
    CONTAINER_B,
    GPU_A,
    GPU_B,
    POD_A,
    POD_B,
    allocation,
    cgroup_of,
    facts,
    gpu,
    hold,
    listed,
    memory,
    moment,
    pod,
    process,
)

A, B = pod(), pod(POD_B, (CONTAINER_B,))
BUSY: Final = (moment(8100, util=0.9),) * 4
HOST: Final = ("0::/user.slice/user-1000.slice/session-1.scope",)
DAEMON: Final = ("0::/system.slice/nvidia-persistenced.service",)
ONCE: Final[Mapping[str, Any]] = {"samples": 1, "span_s": 0.0}


def worked(pid: int, ratio: float) -> ProcessActivity:
    return ProcessActivity(pid=pid, sm_ratio=ratio)


def on_disk(
    uid: str = POD_A, kept: bool | None = True, ids: tuple[str, ...] | None = (CONTAINER_A,)
) -> Sample[tuple[PodOnDisk, ...]]:
    containers = None if ids is None else (ContainerFacts(name="main", container_ids=ids),)
    return Sample.measured((PodOnDisk(uid=uid, namespace="team", name="a", kept=kept, containers=containers),))


def listed_on(*entries: Any, used_mib: int = 8100, **other: Any) -> Any:
    return gpu(used_mib=used_mib, processes=entries, **other)


def mig(**instance: Any) -> tuple[Any, Any]:
    """A GPU and its one instance."""
    parent = gpu(used_mib=8100, mig_mode=Sample.measured(True), activity=(moment(8100, util=None),) * 4)
    return parent, gpu("MIG-a", parent_uuid=GPU_A, used_mib=8100, activity=(moment(8100, util=None, sm=0.0),) * 4, **instance)


def in_d(thread: int = 4002, **other: Any) -> Any:
    return process(threads=2, threads_in_d=(thread,), samples_in_d=4, **other)


NODES: Final[Mapping[str, tuple[NodeFacts, tuple[PodFacts, ...] | None]]] = {
    "a layout that only the total betrays": (facts((listed_on(listed(mib=90000), used_mib=500),), (process(4002),)), (A,)),
    "a layout that only the total betrays, beside a daemon": (
        facts(
            (listed_on(listed(mib=90000), used_mib=20000),),
            (process(executable=Sample.measured("/usr/bin/nvidia-persistenced"), cgroup=DAEMON),),
        ),
        (A,),
    ),
    "a dead PID in a list of the wrong layout": (facts((listed_on(listed(9999, mib=90000), used_mib=20000),)), (A,)),
    "a pod that the API lacks, seen once": (facts((listed_on(listed()),), (process(samples_in_state=1),), **ONCE), ()),
    "a busy pod that the API lacks, seen once": (
        facts((listed_on(listed(), activity=BUSY[:1]),), (process(samples_in_state=1),), **ONCE),
        (),
    ),
    "a pod that the API lacks": (facts((listed_on(listed()),), (process(),)), ()),
    "a pod that the API lacks and the kubelet has": (facts((listed_on(listed()),), (process(),), pods_on_disk=on_disk()), ()),
    "a pod that the kubelet has finished with": (
        facts((listed_on(listed()),), (process(),), pods_on_disk=on_disk(kept=False)),
        None,
    ),
    "a container that the kubelet never had": (
        facts((listed_on(listed(), activity=BUSY),), (process(),), pods_on_disk=on_disk(ids=(CONTAINER_B,))),
        None,
    ),
    "a container that the kubelet has": (facts((listed_on(listed()),), (process(),), pods_on_disk=on_disk()), None),
    "a container that the pod never had": (
        facts((listed_on(listed(), activity=BUSY),), (process(cgroup=cgroup_of(POD_B)),)),
        (A, B),
    ),
    "a sharer that only its allocation shows": (
        facts((listed_on(listed(), activity=BUSY),), (process(),), allocations=(allocation(), allocation(pod=POD_B))),
        (A, B),
    ),
    "a sharer whose pod has ended": (
        facts((listed_on(listed(), activity=BUSY),), (process(),), allocations=(allocation(), allocation(pod=POD_B))),
        (A, pod(POD_B, (CONTAINER_B,), phase=Phase.SUCCEEDED)),
    ),
    "a sharer that works": (
        facts(
            (listed_on(listed(), listed(4002), activity=BUSY, figures=(worked(4001, 0.0), worked(4002, 0.9))),),
            (process(), process(4002, cgroup=cgroup_of(POD_B, CONTAINER_B))),
        ),
        (A, B),
    ),
    "a client of MPS beside its server": (
        facts(
            (
                listed_on(
                    listed(4001, kind=ProcessKind.MPS),
                    listed(50),
                    activity=BUSY,
                    figures=(worked(4001, 0.0), worked(50, 0.9)),
                    mps_active=Sample.measured(True),
                ),
            ),
            (
                process(),
                process(50, name="nvidia-cuda-mps", executable=Sample.measured("/usr/bin/nvidia-cuda-mps-server"), cgroup=HOST),
            ),
        ),
        (A,),
    ),
    "a server of MPS alone": (
        facts(
            (
                listed_on(
                    listed(50),
                ),
            ),
            (process(50, executable=Sample.measured("/usr/bin/nvidia-cuda-mps-server"), cgroup=HOST),),
        ),
        (A,),
    ),
    "a process that works while the device's counters stand at zero": (
        facts((listed_on(listed(), figures=(worked(4001, 0.4),)),), (process(),)),
        (A,),
    ),
    "SMs that work while utilisation stands at zero": (
        facts((listed_on(listed(), activity=(moment(8100, util=0.0, sm=0.4),) * 4),), (process(),)),
        (A,),
    ),
    "kernels while the SMs stand still": (
        facts((listed_on(listed(), activity=(moment(8100, util=0.9, sm=0.0, graphics=0.9),) * 4),), (process(),)),
        (A,),
    ),
    "a thread in D of a live leader": (facts((listed_on(listed()),), (in_d(),)), (A,)),
    "a thread in D of a leader that is terminating": (facts((listed_on(listed()),), (in_d(),)), (pod(terminating_s=5.0),)),
    "a holder in D": (facts((listed_on(listed()),), (process(state="D"),)), (A,)),
    "a dead leader's thread in D": (
        facts(
            (listed_on(listed()),),
            (process(state="Z", threads=2, holds=(hold(via=HoldVia.THREAD, thread_id=4002, thread_state="D"),)),),
        ),
        (A,),
    ),
    "memory in v1 with a small reserve": (
        facts((gpu(used_mib=1700, memory=memory(1700, reserved_mib=10, accounting="v1")),)),
        (A,),
    ),
    "memory in v1 beyond any reserve": (
        facts((gpu(used_mib=9000, memory=memory(9000, reserved_mib=600, accounting="v1")),)),
        (A,),
    ),
    "memory in v1 of an idle device": (
        facts((gpu(used_mib=700, memory=memory(700, reserved_mib=600, accounting="v1")),)),
        (A,),
    ),
    "memory that nobody holds": (facts((gpu(used_mib=9000),)), (A,)),
    "memory of a terminating pod that was given the device": (
        facts((gpu(used_mib=9000),), allocations=(allocation(),)),
        (pod(terminating_s=5.0),),
    ),
    "a hidden holder": (facts((gpu(),), (process(),)), (A,)),
    "a hidden holder that is a daemon": (
        facts((gpu(),), (process(executable=Sample.measured("/usr/bin/nvidia-persistenced"), cgroup=DAEMON),)),
        (A,),
    ),
    "an orphan": (facts((listed_on(listed()),), (process(adopted=Sample.measured(True)),)), (A,)),
    "a holder of a MIG instance": (
        facts(mig(processes=(listed(mib=6900),)), (process(),)),
        (A,),
    ),
    "a holder of a MIG instance that no list has": (facts(mig(processes=()), (process(),)), (A,)),
    "a stuck counter": (facts((gpu(activity=(moment(0, util=1.0),) * 4),)), (A,)),
    "a given device that nobody uses": (facts((gpu(),), allocations=(allocation(),)), (A,)),
    "a zombie of the pod that was given the device": (
        facts((gpu(),), (process(state="Z", holds=()),), allocations=(allocation(),)),
        (A,),
    ),
    "a GPU that is lost": (facts((gpu(health=Health.LOST),), pci_gpu_count=Sample.measured(2)), (A,)),
    "two GPUs of different pods": (
        facts(
            (listed_on(listed()), gpu(GPU_B, index=1, used_mib=4000, processes=(listed(4002, 3900),))),
            (process(), process(4002, cgroup=cgroup_of(POD_B, CONTAINER_B), holds=(hold("nvidia1", GPU_B),))),
            allocations=(allocation(), allocation(GPU_B, POD_B)),
        ),
        (A, B),
    ),
}
