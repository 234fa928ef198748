"""Missing inputs make a verdict weaker, never stronger: every case again with one input taken away, and with two.

What can be taken away is found in the types of the documents, so that nobody can forget a new field (tests/unit/taking_away.py).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import msgspec
import pytest

from steps.contracts.cluster_facts import PodFacts
from steps.contracts.document import Sample
from steps.contracts.node_facts import Activity, GpuFacts, NodeFacts, PodOnDisk, ProcessFacts, Visibility, VisibilityLevel
from steps.contracts.traced import GpuClass, TracedGpu
from steps.trace.memory import ALLOWANCE_BYTES
from steps.trace.node import trace_node
from tests.unit.field_case import NOON, input_of
from tests.unit.taking_away import GONE, Field, fields_of, without
from tests.unit.test_field_cases import GIVEN, OWN
from tests.unit.weaker_scenes import NODES

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
UNREAD: Final = frozenset(
    {
        "boot_id",
        "driver.cuda_version",
        "driver.driver_version",
        "driver.nvml_version",
        "gpus[].accounted",
        "gpus[].accounted[].peak_memory_bytes",
        "gpus[].accounting_mode",
        "gpus[].energy_j",
        "gpus[].memory.free_bytes",
        "gpus[].memory_clock_mhz",
        "gpus[].minor_number",  # but for devices of GKE's form
        "gpus[].name",
        "gpus[].pci_bus_id",
        "gpus[].performance_state",
        "gpus[].persistence_mode",
        "gpus[].power_w",
        "gpus[].sm_clock_mhz",
        "gpus[].temperature_c",
        "pci_gpu_count",  # it tells of GPUs beside the one that is looked at here
        "pod.started_at",
        "processes[].command",
        "processes[].pid_in_container",
        "sockets",  # connections are decide's
        "sockets[].established",
    }
)
"""Readings on which nothing rests that is said of a GPU: carried for people, for decide, or for the evidence."""
FREE: Final = frozenset({GpuClass.BASELINE, GpuClass.PHANTOM_UTIL, GpuClass.ZOMBIE_BENIGN})
Given = tuple[NodeFacts, tuple[PodFacts, ...] | None]
Taken = Callable[[NodeFacts, tuple[PodFacts, ...] | None], Given]


def of_gpu(change: Callable[[GpuFacts], GpuFacts]) -> Taken:
    def taken(facts: NodeFacts, pods: tuple[PodFacts, ...] | None) -> Given:
        gpus = facts.gpus.known()
        assert gpus is not None
        return replace(facts, gpus=Sample.measured(tuple(change(gpu) for gpu in gpus))), pods

    return taken


def of_moments(gpu: GpuFacts, **changes: Sample[Any]) -> GpuFacts:
    def change(moment: Activity) -> Activity:
        return replace(moment, **changes)

    return replace(gpu, activity=tuple(change(moment) for moment in gpu.activity))


def without_used(gpu: GpuFacts) -> GpuFacts:
    return replace(of_moments(gpu, used_bytes=GONE), memory=replace(gpu.memory, used_bytes=GONE))


def one_gap_in_used(gpu: GpuFacts) -> GpuFacts:
    return replace(gpu, activity=(replace(gpu.activity[0], used_bytes=GONE), *gpu.activity[1:]))


def with_visibility(level: VisibilityLevel) -> Taken:
    """At most that much; a blind reader stays blind."""

    def taken(facts: NodeFacts, pods: tuple[PodFacts, ...] | None) -> Given:
        if facts.visibility.level is VisibilityLevel.BLIND:
            return facts, pods
        return replace(facts, visibility=Visibility(level=level, reasons=("taken away",), unreadable_processes=1)), pods

    return taken


def single_sample(facts: NodeFacts, pods: tuple[PodFacts, ...] | None) -> Given:
    gpus = facts.gpus.known()
    assert gpus is not None
    short = tuple(replace(gpu, activity=gpu.activity[-1:]) for gpu in gpus)
    once = tuple(replace(process, samples_in_state=1) for process in facts.processes)
    return replace(facts, gpus=Sample.measured(short), processes=once, samples=1, span_s=0.0), pods


def unreadable(process: ProcessFacts) -> ProcessFacts:
    return replace(process, holds=(), executable=GONE, command=GONE)


def processes_unreadable(facts: NodeFacts, pods: tuple[PodFacts, ...] | None) -> Given:
    """EACCES on every descriptor table: no holds are found, and the reader says so."""
    blurred, _ = with_visibility(VisibilityLevel.PARTIAL)(facts, pods)
    return replace(blurred, processes=tuple(unreadable(process) for process in facts.processes)), pods


TAKEN: Final[Mapping[str, Taken]] = {
    "used memory": of_gpu(without_used),
    "used memory of the first look": of_gpu(one_gap_in_used),
    "descriptors": processes_unreadable,
    "the API's pod list": lambda facts, pods: (facts, None),
    "some processes": with_visibility(VisibilityLevel.PARTIAL),
    "the PID namespace": with_visibility(VisibilityLevel.BLIND),
    "all looks but one": single_sample,
}


def of_node(field: Field) -> Taken:
    return lambda facts, pods: (without(facts, field), pods)


def of_pods(field: Field) -> Taken:
    return lambda facts, pods: (facts, None if pods is None else tuple(without(pod, field) for pod in pods))


WHOLE: Final = ("gpus",)
"""Without it there is no GPU to judge: the node has a problem, which is another test's."""
IDENTITY: Final = ("config_hash",)
"""By it a static pod is known to the API at all: without it, it is another pod."""
FOUND: Final[Mapping[str, Taken]] = {
    **{field.name: of_node(field) for field in fields_of(NodeFacts) if field.name not in WHOLE},
    **{f"pod.{field.name}": of_pods(field) for field in fields_of(PodFacts) if field.name not in IDENTITY},
}
"""Every reading and every optional field of the documents, by their types."""
ALL: Final = {**FOUND, **TAKEN}


@dataclass(frozen=True)
class Scene:
    """What is judged, and how strong the verdict may be at most with less: on the GPU, and on each holder."""

    node: NodeFacts
    pods: tuple[PodFacts, ...] | None
    whole: TracedGpu
    strength: int
    of_holders: Mapping[int, int]


def traced(facts: NodeFacts, pods: tuple[PodFacts, ...] | None, lists: int = 2) -> TracedGpu:
    return trace_node(facts, pods, now=NOON, lists=lists).gpus[0]


def scene_of(node: NodeFacts, pods: tuple[PodFacts, ...] | None) -> Scene:
    """Grace only defers the class a holder has by its own evidence: that one counts if the grace is not known any more."""
    lasting = None if pods is None else tuple(replace(pod, deletion_requested_at=None) for pod in pods)
    views = [traced(node, pods), traced(node, lasting)]
    holders = [(holder.pid, STRENGTH[holder.gpu_class]) for view in views for holder in view.holders]
    of_holders = {pid: max(strength for other, strength in holders if other == pid) for pid, _ in holders}
    return Scene(node, pods, views[0], max(STRENGTH[view.headline] for view in views), of_holders)


SCENES: Final = {
    **{str(case["id"]): scene_of(given.facts, given.pods) for case in GIVEN + OWN for given in (input_of(case),)},
    **{name: scene_of(node, pods) for name, (node, pods) in NODES.items()},
}


def check(scene: Scene, taken: str, after: TracedGpu) -> None:
    """Neither the GPU's verdict nor a holder's got stronger, and a GPU that is in use, or may be, did not become free."""
    became = f"without {taken} {scene.whole.headline} became {after.headline}: {after.reason}"
    assert STRENGTH[after.headline] <= scene.strength, became
    used = after.used_bytes.known()
    empty = used is not None and used <= ALLOWANCE_BYTES
    assert after.headline not in FREE or scene.whole.headline in FREE or empty, f"a GPU that was not free became so: {became}"
    for holder in after.holders:
        told = f"without {taken} PID {holder.pid} is {holder.gpu_class}: {holder.reason}"
        assert STRENGTH[holder.gpu_class] <= scene.of_holders.get(holder.pid, STRENGTH[GpuClass.STUCK_D]), told


@pytest.mark.parametrize("name", SCENES)
def test_an_input_taken_away_makes_the_verdict_weaker_never_stronger(name: str) -> None:
    scene = SCENES[name]
    check(scene, "a second list", traced(scene.node, scene.pods, lists=1))
    for taken, take in ALL.items():
        check(scene, taken, traced(*take(scene.node, scene.pods)))


def classes_of(gpu: TracedGpu) -> tuple[GpuClass, ...]:
    return (gpu.headline, *(holder.gpu_class for holder in gpu.holders), *(finding.gpu_class for finding in gpu.findings))


def that_change(told: Callable[[TracedGpu], object]) -> list[str]:
    """The inputs without which this is told differently somewhere."""
    whole = {name: told(scene.whole) for name, scene in SCENES.items()}
    return [
        taken
        for taken, take in ALL.items()
        if any(told(traced(*take(scene.node, scene.pods))) != whole[name] for name, scene in SCENES.items())
    ]


@pytest.fixture(scope="module")
def telling() -> list[str]:
    """Those that decide a class; the rest need no pairs."""
    return that_change(classes_of)


@pytest.mark.parametrize("name", SCENES)
def test_two_inputs_taken_away_at_once_make_it_no_stronger_either(name: str, telling: list[str]) -> None:
    scene = SCENES[name]
    for first, second in combinations(telling, 2):
        facts, pods = ALL[first](scene.node, scene.pods)
        check(scene, f"{first} and {second}", traced(*ALL[second](facts, pods)))


def test_what_tells_nothing_here_is_known_by_name() -> None:
    """A new field of the documents is either read by trace, and then told by some scene, or stands in this list."""
    assert set(FOUND) - set(that_change(lambda gpu: gpu)) == UNREAD


def test_every_class_has_a_strength() -> None:
    assert set(STRENGTH) == set(GpuClass)


def test_each_input_matters_for_some_case() -> None:
    """A variant that changes no verdict anywhere would test nothing; executables add findings only."""
    for taken, take in TAKEN.items():
        changed = [scene for scene in SCENES.values() if traced(*take(scene.node, scene.pods)).headline is not scene.whole.headline]
        assert changed, taken


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
    scene = scene_of(given.facts, given.pods)
    assert STRENGTH[traced(facts, None).headline] <= scene.strength
    assert STRENGTH[traced(given.facts, None).headline] <= max(scene.strength, STRENGTH[traced(facts, None).headline])
