"""Some looks at a node, put together: no gap gets lost, and no sign of life either."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from steps.capture.declaration import STEP as CAPTURE
from steps.capture.step import run as capture
from steps.collect.declaration import STEP as COLLECT
from steps.collect.look import look
from steps.collect.step import run as collect
from steps.contracts.declaration import Inputs, Step
from steps.contracts.document import Origin, Sample, State
from steps.contracts.errors import BadInput, Exit
from steps.contracts.node_facts import Allocation, Health, NodeFacts, ProcessFacts, Scan, SocketFacts, Visibility, VisibilityLevel
from steps.contracts.parcel import unpack
from steps.contracts.ports import DeviceNode, GpuReading, Outside
from tests.unit.fake_nvml import NOON, FakeGpu, FakeNvml, listed, read, worked
from tests.unit.node_world import CGROUP, POD, World, given, process, reading, scan, space

NO_NVML = read(FakeNvml(errors={"nvmlInit": 12}))
OTHER_POD = "99992222-3333-4444-5555-666677778888"


def looked(world: World, samples: int = 1, interval_s: float = 10) -> NodeFacts:
    return look("node-a", world, samples, interval_s)


def zombie(pid: int, pod: str = POD) -> ProcessFacts:
    return process(pid, state="Z", device=None, cgroup=CGROUP.replace(POD, pod))


def test_one_look_is_what_the_readers_say() -> None:
    facts = looked(World([reading(FakeGpu())], [scan(process())]))
    assert (facts.node, facts.samples, facts.span_s, facts.scan) == ("node-a", 1, 0, Scan.FULL)
    assert (facts.stamp.made_by, facts.stamp.origin) == ("collect", Origin.REAL)
    assert [gpu.uuid for gpu in facts.gpus.known() or ()] == ["GPU-a"]
    assert [one.pid for one in facts.processes] == [7]
    assert facts.visibility.level is VisibilityLevel.FULL


def test_the_processes_that_nvml_lists_are_looked_up() -> None:
    world = World(
        [reading(FakeGpu(compute=[listed(9), listed(7)]), FakeGpu(uuid="GPU-b", graphics=[listed(7), listed(8)]))], [scan()]
    )
    looked(world)
    assert world.asked == [(("nvidia0", "nvidia1"), (7, 8, 9), Scan.FULL)]


@pytest.mark.parametrize("samples", [0, -1])
def test_no_look_at_all_is_refused(samples: int) -> None:
    with pytest.raises(BadInput, match="no look at all"):
        looked(World([reading()], [scan()]), samples)


def test_looks_are_the_interval_apart_and_the_last_needs_no_wait() -> None:
    world = World([reading(FakeGpu())], [scan()])
    facts = looked(world, samples=3, interval_s=30)
    assert (facts.samples, facts.span_s, world.clock.slept_s) == (3, 60, 60)


def test_every_look_adds_a_moment_of_activity_oldest_first() -> None:
    facts = looked(World([reading(FakeGpu(utilisation=10)), reading(FakeGpu(utilisation=90))], [scan()]), samples=2)
    (gpu,) = facts.gpus.known() or ()
    assert [moment.utilisation_ratio.known() for moment in gpu.activity] == [0.1, 0.9]


def test_a_look_that_failed_is_a_gap_and_not_a_shorter_watch() -> None:
    facts = looked(World([NO_NVML, reading(FakeGpu())], [scan()]), samples=2)
    (gpu,) = facts.gpus.known() or ()
    assert [moment.utilisation_ratio.state for moment in gpu.activity] == [State.ERROR, State.MEASURED]
    assert gpu.activity[0].taken_at == NOON
    assert gpu.process_activity.state is State.ERROR


def test_if_the_last_look_failed_the_gpus_are_unknown_with_its_reason() -> None:
    facts = looked(World([reading(FakeGpu()), NO_NVML], [scan()]), samples=2)
    assert (facts.gpus.value, facts.gpus.state) == (None, State.ERROR)
    assert "libnvidia-ml" in (facts.gpus.reason or "")


def test_a_gpu_that_vanished_between_two_looks_is_lost_and_not_left_out() -> None:
    both, one = reading(FakeGpu(), FakeGpu(uuid="GPU-b")), reading(FakeGpu())
    gpus = looked(World([both, one], [scan()]), samples=2).gpus.known()
    assert gpus is not None
    assert [(gpu.uuid, gpu.health) for gpu in gpus] == [("GPU-a", Health.OK), ("GPU-b", Health.LOST)]
    assert gpus[1].activity[-1].used_bytes.state is State.ERROR


def test_a_process_that_worked_in_any_look_has_worked() -> None:
    facts = looked(
        World([reading(FakeGpu(process_samples=(worked(7, 40),))), reading(FakeGpu(process_samples=(worked(7, 0),)))], [scan()]),
        samples=2,
    )
    (gpu,) = facts.gpus.known() or ()
    assert [(one.pid, one.sm_ratio) for one in gpu.process_activity.known() or ()] == [(7, 0.4)]


@pytest.mark.parametrize(
    ("earlier", "times"),
    [
        ([process(state="D"), process(state="D")], 3),
        ([process(state="D"), process(state="S")], 1),
        ([process(state="S"), process(state="D")], 2),
        ([process(state="D"), process(state="D", start=99)], 1),  # the PID passed to another process
    ],
)
def test_a_state_is_counted_over_the_latest_looks_in_a_row(earlier: list[ProcessFacts], times: int) -> None:
    scans = [scan(one) for one in (*earlier, process(state="D"))]
    (told,) = looked(World([reading(FakeGpu())], scans), samples=3).processes
    assert told.samples_in_state == times


@pytest.mark.parametrize(
    ("earlier", "times"),
    [([(8,), (8,)], 3), ([(), (8,)], 2), ([(8,), ()], 1), ([(9,), (9,)], 1), ([(8, 9), (9, 8)], 3), ([(9,), (9, 8)], 2)],
)
def test_a_thread_in_d_counts_as_long_as_it_is_the_same_thread(earlier: list[tuple[int, ...]], times: int) -> None:
    """Threads that take turns at waiting for the disk are not stuck."""
    scans = [scan(msgspec.structs.replace(process(), threads_in_d=threads)) for threads in (*earlier, (8,))]
    (told,) = looked(World([reading(FakeGpu())], scans), samples=3).processes
    assert (told.threads_in_d, told.samples_in_d) == ((8,), times)


@pytest.mark.parametrize(("first", "second", "count"), [(2, 0, 2), (0, 0, 0), (None, 0, None), (0, None, None), (1, None, 1)])
def test_connections_are_the_most_that_any_look_saw(first: int | None, second: int | None, count: int | None) -> None:
    scans = [scan(sockets=Sample.measured((space(seen),))) for seen in (first, second)]
    sockets = looked(World([reading(FakeGpu())], scans), samples=2).sockets.known()
    assert sockets is not None
    assert sockets[0].established.known() == count


def test_a_look_without_connections_makes_none_seen_unknown_and_some_seen_known() -> None:
    scans = [scan(sockets=Sample.error("no")), scan(sockets=Sample.measured((space(0, "1"), space(2, "2"))))]
    sockets = looked(World([reading(FakeGpu())], scans), samples=2).sockets.known()
    assert sockets is not None
    assert [one.established.known() for one in sockets] == [None, 2]


def test_visibility_is_the_worst_of_all_looks() -> None:
    partial = Visibility(level=VisibilityLevel.PARTIAL, reasons=("PID 1",), unreadable_processes=1)
    facts = looked(World([reading(FakeGpu())], [scan(visibility=partial), scan()]), samples=2)
    assert facts.visibility == partial


@pytest.mark.parametrize("nodes", [Sample.absent("no nodes here"), Sample.measured(())])
def test_a_gpu_whose_device_number_is_unknown_makes_the_look_partial(nodes: Sample[tuple[DeviceNode, ...]]) -> None:
    facts = looked(World([reading(FakeGpu())], [scan()], nodes=nodes))
    assert facts.visibility.level is VisibilityLevel.PARTIAL
    assert "holders of GPU-a cannot be recognised" in facts.visibility.reasons[0]


def test_a_mig_instance_needs_no_node_of_its_own() -> None:
    gpu = FakeGpu(mig=(FakeGpu(uuid="MIG-1", gpu_instance=1),))
    assert looked(World([reading(gpu)], [scan()])).visibility.level is VisibilityLevel.FULL


def test_connections_and_zombies_of_pods_without_a_gpu_are_left_out() -> None:
    other = CGROUP.replace(POD, OTHER_POD)
    sockets: Sample[tuple[SocketFacts, ...]] = Sample.measured((space(1), space(1, "2", other)))
    facts = looked(World([reading(FakeGpu())], [scan(zombie(3), zombie(4, OTHER_POD), sockets=sockets)]))
    assert [one.pid for one in facts.processes] == [3]
    assert [one.network_namespace for one in facts.sockets.known() or ()] == ["4026532000"]


def test_a_pod_that_holds_a_device_counts_although_the_kubelet_gave_it_none() -> None:
    facts = looked(World([reading(FakeGpu())], [scan(process(), sockets=Sample.measured((space(1),)))], allocated=given()))
    assert len(facts.sockets.known() or ()) == 1


def test_if_allocations_are_unknown_every_pod_may_have_a_gpu() -> None:
    unknown: Sample[tuple[Allocation, ...]] = Sample.absent("no checkpoint")
    facts = looked(World([reading(FakeGpu())], [scan(zombie(3), sockets=Sample.measured((space(1),)))], allocated=unknown))
    assert (len(facts.processes), len(facts.sockets.known() or ())) == (1, 1)


def test_a_zombie_that_nvml_lists_is_told_whatever_its_pod() -> None:
    world = World([reading(FakeGpu(compute=[listed(4)]))], [scan(zombie(4, OTHER_POD))])
    assert [one.pid for one in looked(world).processes] == [4]


def test_processes_of_one_cgroup_stand_side_by_side() -> None:
    other = CGROUP.replace(POD, OTHER_POD)
    found = [process(1), process(2, cgroup=other), process(3), process(4, cgroup=other)]
    assert [one.pid for one in looked(World([reading(FakeGpu())], [scan(*found)])).processes] == [1, 3, 2, 4]


@pytest.mark.parametrize(("zombies", "told"), [(32, 32), (33, 32), (266, 32)])
def test_many_zombies_are_a_number(zombies: int, told: int) -> None:
    facts = looked(World([reading(FakeGpu())], [scan(*(zombie(pid) for pid in range(1, zombies + 1)))]))
    assert len(facts.processes) == told
    assert (f"{zombies} zombies" in " ".join(facts.visibility.reasons)) is (zombies > told)
    assert facts.visibility.level is VisibilityLevel.FULL


@pytest.mark.parametrize("word", ["full", "quick"])
def test_collect_looks_as_thoroughly_as_it_is_told_and_says_so(word: str, tmp_path: Path) -> None:
    world, target = World([reading(FakeGpu())], [scan(process())]), tmp_path / "facts"
    assert collect(Inputs(COLLECT, {"node": "node-a", "scan": word}, {"facts": str(target)}), world) is Exit.DONE
    assert unpack(target.read_bytes(), NodeFacts, "facts").scan is Scan(word)
    assert [asked for _, _, asked in world.asked] == [Scan(word)]


def test_another_word_for_the_scan_is_bad_input(tmp_path: Path) -> None:
    inputs = Inputs(COLLECT, {"node": "node-a", "scan": "slow"}, {"facts": str(tmp_path / "facts")})
    with pytest.raises(BadInput, match="give full or quick"):
        collect(inputs, World([reading(FakeGpu())], [scan(process())]))


@pytest.mark.parametrize(("step", "run"), [(COLLECT, collect), (CAPTURE, capture)])
@pytest.mark.parametrize("gpus", [reading(FakeGpu()), NO_NVML])
def test_a_step_writes_facts_even_of_a_node_whose_nvml_does_not_answer(
    step: Step, run: Callable[[Inputs, Outside], Exit], gpus: GpuReading, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World([gpus], [scan(process())])
    target = tmp_path / "facts"
    inputs = Inputs(step, {"node": "node-a"}, {"facts": str(target)})
    assert run(inputs, world) is Exit.DONE
    facts = unpack(target.read_bytes(), NodeFacts, "facts")
    assert (facts.stamp.made_by, facts.node, facts.gpus.known() is None) == (step.name, "node-a", gpus is NO_NVML)
    (line,) = capsys.readouterr().err.splitlines()
    assert f'"event": "{step.name}.looked"' in line
