"""Missing inputs make a verdict weaker, never stronger: every case again with one input taken away."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
import pytest

from steps.contracts.cluster_facts import PodFacts
from steps.contracts.document import Sample
from steps.contracts.node_facts import Activity, GpuFacts, NodeFacts, PodOnDisk, ProcessFacts, Visibility, VisibilityLevel
from steps.contracts.traced import GpuClass, TracedGpu
from steps.trace.memory import ALLOWANCE_BYTES
from steps.trace.node import trace_node
from tests.unit.field_case import NOON, Input, input_of
from tests.unit.test_field_cases import GIVEN, OWN

replace = msgspec.structs.replace

STRENGTH: Final[Mapping[GpuClass, int]] = {
    # what people would do because of it: drain, reset, reboot
    GpuClass.GHOST_CONTEXT: 5,
    GpuClass.STUCK_D: 5,
    GpuClass.GPU_LOST: 5,
    # end these processes
    GpuClass.POD_GONE_LIVE: 4,
    GpuClass.ZOMBIE_THREADED: 4,
    GpuClass.HIDDEN_HOLDER: 4,
    GpuClass.ORPHAN_LIVE: 4,
    # take the device away, or hand it out
    GpuClass.IDLE_HOLDER: 3,
    GpuClass.BASELINE: 3,
    GpuClass.PHANTOM_UTIL: 3,
    GpuClass.ZOMBIE_BENIGN: 3,
    # leave it to its holder
    GpuClass.SYSTEM_HOLDER: 2,
    GpuClass.IN_GRACE: 2,
    GpuClass.ACTIVE: 2,
    GpuClass.LOW_EFFICIENCY: 2,
    # say that it is not known
    GpuClass.STALE_NVML_PID: 0,
    GpuClass.ACTIVITY_UNKNOWN: 0,
    GpuClass.ACTIVITY_UNKNOWN_SHARED: 0,
    GpuClass.UNKNOWN: 0,
    GpuClass.BLIND: 0,
    GpuClass.ABI_MISMATCH: 0,
}
FREE: Final = frozenset({GpuClass.BASELINE, GpuClass.PHANTOM_UTIL, GpuClass.ZOMBIE_BENIGN})
Given = tuple[NodeFacts, tuple[PodFacts, ...] | None]
Taken = Callable[[NodeFacts, tuple[PodFacts, ...]], Given]
GONE: Final[Sample[Any]] = Sample.error("taken away")


def of_gpu(change: Callable[[GpuFacts], GpuFacts]) -> Taken:
    def taken(facts: NodeFacts, pods: tuple[PodFacts, ...]) -> Given:
        gpus = facts.gpus.known()
        assert gpus is not None
        return replace(facts, gpus=Sample.measured(tuple(change(gpu) for gpu in gpus))), pods

    return taken


def of_processes(change: Callable[[ProcessFacts], ProcessFacts]) -> Taken:
    return lambda facts, pods: (replace(facts, processes=tuple(change(one) for one in facts.processes)), pods)


def of_moments(gpu: GpuFacts, **without: Sample[Any]) -> GpuFacts:
    def change(moment: Activity) -> Activity:
        return replace(moment, **without)

    return replace(gpu, activity=tuple(change(moment) for moment in gpu.activity))


def without_used(gpu: GpuFacts) -> GpuFacts:
    return replace(of_moments(gpu, used_bytes=GONE), memory=replace(gpu.memory, used_bytes=GONE))


def without_figures_of_processes(gpu: GpuFacts) -> GpuFacts:
    listed = gpu.processes.known()
    if listed is None:
        return gpu
    return replace(gpu, processes=Sample.measured(tuple(replace(one, used_memory_bytes=GONE) for one in listed)))


def one_gap_in_used(gpu: GpuFacts) -> GpuFacts:
    return replace(gpu, activity=(replace(gpu.activity[0], used_bytes=GONE), *gpu.activity[1:]))


def with_visibility(level: VisibilityLevel) -> Taken:
    """At most that much; a blind reader stays blind."""

    def taken(facts: NodeFacts, pods: tuple[PodFacts, ...]) -> Given:
        if facts.visibility.level is VisibilityLevel.BLIND:
            return facts, pods
        return replace(facts, visibility=Visibility(level=level, reasons=("taken away",), unreadable_processes=1)), pods

    return taken


def single_sample(facts: NodeFacts, pods: tuple[PodFacts, ...]) -> Given:
    gpus = facts.gpus.known()
    assert gpus is not None
    short = tuple(replace(gpu, activity=gpu.activity[-1:]) for gpu in gpus)
    once = tuple(replace(process, samples_in_state=1) for process in facts.processes)
    return replace(facts, gpus=Sample.measured(short), processes=once, samples=1, span_s=0.0), pods


def unreadable(process: ProcessFacts) -> ProcessFacts:
    return replace(process, holds=(), executable=GONE, command=GONE)


def processes_unreadable(facts: NodeFacts, pods: tuple[PodFacts, ...]) -> Given:
    """EACCES on every descriptor table: no holds are found, and the reader says so."""
    blurred, _ = with_visibility(VisibilityLevel.PARTIAL)(facts, pods)
    return replace(blurred, processes=tuple(unreadable(process) for process in facts.processes)), pods


TAKEN: Final[Mapping[str, Taken]] = {
    "used memory": of_gpu(without_used),
    "used memory of the first look": of_gpu(one_gap_in_used),
    "total memory": of_gpu(lambda gpu: replace(gpu, memory=replace(gpu.memory, total_bytes=GONE))),
    "reserved memory": of_gpu(lambda gpu: replace(gpu, memory=replace(gpu.memory, reserved_bytes=GONE))),
    "utilisation": of_gpu(lambda gpu: of_moments(gpu, utilisation_ratio=GONE)),
    "SM activity": of_gpu(lambda gpu: of_moments(gpu, sm_active_ratio=GONE)),
    "the process list": of_gpu(lambda gpu: replace(gpu, processes=GONE)),
    "memory per process": of_gpu(without_figures_of_processes),
    "cgroups": of_processes(lambda process: replace(process, cgroup=GONE)),
    "executables": of_processes(lambda process: replace(process, executable=GONE)),
    "adoption": of_processes(lambda process: replace(process, adopted=GONE)),
    "descriptors": processes_unreadable,
    "the API's pod list": lambda facts, pods: (facts, None),
    "some processes": with_visibility(VisibilityLevel.PARTIAL),
    "the PID namespace": with_visibility(VisibilityLevel.BLIND),
    "all looks but one": single_sample,
    "allocations": lambda facts, pods: (replace(facts, allocations=GONE), pods),
}


def traced(facts: NodeFacts, pods: tuple[PodFacts, ...] | None) -> TracedGpu:
    return trace_node(facts, pods, now=NOON, lists=2).gpus[0]


@pytest.mark.parametrize("case", GIVEN + OWN, ids=lambda case: str(case["id"]))
def test_an_input_taken_away_makes_the_verdict_weaker_never_stronger(case: dict[str, Any]) -> None:
    given = input_of(case)
    before, strength = traced(given.facts, given.pods).headline, strength_of(given)
    for name, take in TAKEN.items():
        after = traced(*take(given.facts, given.pods))
        assert STRENGTH[after.headline] <= strength, f"without {name} {before} became {after.headline}: {after.reason}"
        used = after.used_bytes.known()
        empty = used is not None and used <= ALLOWANCE_BYTES
        assert after.headline not in FREE or before in FREE or empty, f"without {name} a GPU that was {before} became free"


def strength_of(given: Input) -> int:
    """Grace only defers the class a holder has by its own evidence: that one counts if the grace is not known any more."""
    lasting = tuple(replace(pod, deletion_requested_at=None) for pod in given.pods)
    return max(STRENGTH[traced(given.facts, pods).headline] for pods in (given.pods, lasting))


def test_every_class_has_a_strength() -> None:
    assert set(STRENGTH) == set(GpuClass)


def test_each_input_matters_for_some_case() -> None:
    """A variant that changes no verdict anywhere would test nothing; executables and allocations only add findings."""
    idle = {"executables", "allocations", "total memory", "reserved memory"}
    for name, take in TAKEN.items():
        changed = 0
        for case in GIVEN + OWN:
            given = input_of(case)
            changed += traced(given.facts, given.pods).headline is not traced(*take(given.facts, given.pods)).headline
        assert changed or name in idle, name


def with_folders(facts: NodeFacts, pods: tuple[PodFacts, ...]) -> NodeFacts:
    """The kubelet's folders as they would be: every pod of the API's list is there, with its containers."""
    there = tuple(
        PodOnDisk(
            uid=pod.uid, namespace=pod.namespace, name=pod.name, kept=True, containers=pod.containers, sandbox_ids=pod.sandbox_ids
        )
        for pod in pods
    )
    return replace(facts, pods_on_disk=Sample.measured(there))


@pytest.mark.parametrize("case", GIVEN + OWN, ids=lambda case: str(case["id"]))
def test_the_kubelets_folders_in_place_of_the_api_make_no_verdict_stronger(case: dict[str, Any]) -> None:
    given = input_of(case)
    facts = with_folders(given.facts, given.pods)
    assert traced(facts, given.pods).headline is traced(given.facts, given.pods).headline
    assert STRENGTH[traced(facts, None).headline] <= strength_of(given)
    assert STRENGTH[traced(given.facts, None).headline] <= max(strength_of(given), STRENGTH[traced(facts, None).headline])
