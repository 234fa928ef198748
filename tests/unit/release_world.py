"""A node that changes with time, a receipt and a capture: what a release is judged from."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from steps.contracts.cluster_facts import OwnerRef
from steps.contracts.decision import JudgedPod
from steps.contracts.document import Origin, Sample, Stamp
from steps.contracts.node_facts import GpuFacts, NodeFacts
from steps.contracts.release import DeviceRelease, Release
from steps.contracts.stop_receipt import StopReceipt
from steps.verify.watch import Task, watch
from tests.unit.trace_world import CONTAINER_B, GPU_A, NODE, NOON, POD_A, POD_B, allocation, cgroup_of, facts, gpu, listed, process

OWNER = OwnerRef(api_version="apps/v1", kind="Deployment", namespace="team", name="notebook", uid="session-a")
Node = Callable[[float], NodeFacts]
"""The node as a look at so many seconds after the stop shows it."""


@dataclass
class FakeClock:
    """Fits the Clock protocol; sleeping costs nothing."""

    now_utc: datetime = NOON

    def now(self) -> datetime:
        return self.now_utc

    def sleep(self, seconds: float) -> None:
        self.now_utc += timedelta(seconds=seconds)


def judged_pod(
    uid: str = POD_A, node: str | None = NODE, grace_s: int = 30, devices: tuple[str, ...] | None = (GPU_A,)
) -> JudgedPod:
    known: Sample[tuple[str, ...]] = Sample.absent("not known") if devices is None else Sample.measured(devices)
    return JudgedPod(uid=uid, name="notebook-0", node=node, grace_s=grace_s, devices=known)


def receipt(*pods: JudgedPod, acted: bool = True) -> StopReceipt:
    return StopReceipt(
        stamp=Stamp(made_by="stop", made_at=NOON, origin=Origin.SIMULATED),
        decision_id="d-1",
        owner=OWNER,
        acted=acted,
        refusal=None,
        sentence="scaled to 0" if acted else "dry run",
        switch="deployments/scale",
        replicas_before=1,
        replicas_after=0,
        acted_at=NOON if acted else None,
        pods=pods or (judged_pod(),),
    )


def one_look(gpus: tuple[GpuFacts, ...], at_s: float, *processes: Any, **other: Any) -> NodeFacts:
    at = NOON + timedelta(seconds=at_s)
    return facts(gpus, processes, at=at, samples=1, span_s=0.0, **other)


def held(at_s: float = -5, **other: Any) -> NodeFacts:
    """The session's process alive on the device, listed with nearly all of what is used."""
    device = gpu(used_mib=8100, processes=(listed(4001, 8000),), samples=1)
    return one_look((device,), at_s, process(4001, samples_in_state=1, **other), allocations=(allocation(),))


def free(at_s: float, used_mib: int | None = 4, **other: Any) -> NodeFacts:
    """Nobody holds the device; the kubelet still remembers the allocation."""
    return one_look((gpu(used_mib=used_mib, samples=1),), at_s, **{"allocations": (allocation(),), **other})


def ghost(at_s: float, **other: Any) -> NodeFacts:
    return free(at_s, used_mib=8000, **other)


def taken(at_s: float, pid: int = 5001, mib: int | None = 6000, used_mib: int = 6100) -> NodeFacts:
    """Pod B was given the device and its process holds it."""
    device = gpu(used_mib=used_mib, processes=(listed(pid, mib),), samples=1)
    tenant = process(pid, cgroup_of(POD_B, CONTAINER_B), samples_in_state=1)
    return one_look((device,), at_s, tenant, allocations=(allocation(pod=POD_B),))


FOREVER = float("inf")


def until(*stages: tuple[float, Node]) -> Node:
    """The first stage whose end (seconds after the stop) has not come yet."""

    def at(at_s: float) -> NodeFacts:
        return next(node for end_s, node in stages if at_s < end_s)(at_s)

    return at


def watched(
    node: Node,
    *,
    stop: StopReceipt | None = None,
    capture: NodeFacts | None = None,
    no_capture: bool = False,
    interval_s: float = 1,
) -> tuple[Release, float]:
    """The Release, and how many seconds after the stop it was known."""
    clock = FakeClock()
    before = None if no_capture else held() if capture is None else capture

    def look() -> NodeFacts:
        return node((clock.now() - NOON).total_seconds())

    def stamp_of(now: datetime) -> Stamp:
        return Stamp(made_by="verify", made_at=now, origin=Origin.SIMULATED)

    task = Task(stop or receipt(), NODE, before, interval_s)
    release = watch(task, look, clock, stamp_of)
    return release, (clock.now() - NOON).total_seconds()


def only(release: Release) -> DeviceRelease:
    (device,) = release.devices
    return device
