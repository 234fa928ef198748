"""Every error code of the bindings, on every call the reader makes: what it does to the reading, to health and to visibility.

Facts 3.8. A code, or a call, that is new to the bindings or to the reader fails here until somebody says what it means.
"""

from typing import Any, Final, NamedTuple

import pynvml
import pytest

from steps.collect.look import look
from steps.contracts.document import Sample, State
from steps.contracts.node_facts import GpuFacts, Health, NodeFacts, VisibilityLevel
from steps.contracts.traced import GpuClass
from steps.trace.node import trace_node
from tests.unit.fake_nvml import _ANSWERS as CALLS
from tests.unit.fake_nvml import NOON, FakeGpu, FakeNvml, listed, read, worked
from tests.unit.node_world import World, process, reading, scan

MIB: Final = 1 << 20
NO_PERMISSION: Final = pynvml.NVML_ERROR_NO_PERMISSION


class Effect(NamedTuple):
    """On a plain reading (power), on the list of compute processes, on utilisation, and on the device's health."""

    plain: State = State.ERROR
    processes: State = State.ERROR
    utilisation: State = State.ERROR
    health: Health = Health.OK


NOT_HERE: Final = Effect(State.ABSENT, State.ABSENT, State.NOT_APPLICABLE)
OTHER_THAN_ERROR: Final = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: NOT_HERE,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: NOT_HERE,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH: Effect(State.ABSENT, State.ABSENT, State.ABSENT),
    pynvml.NVML_ERROR_GPU_IS_LOST: Effect(health=Health.LOST),
    pynvml.NVML_ERROR_RESET_REQUIRED: Effect(health=Health.RESET_REQUIRED),
}
"""Whatever is not in here leaves an error, and says nothing of the device's health: a timeout, or Unknown, once is no lost GPU."""
CODES: Final = sorted(value for name, value in vars(pynvml).items() if name.startswith("NVML_ERROR_"))
COMPUTE: Final = ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")


def facts_with(call: str, code: int, **gpu: Any) -> NodeFacts:
    return look("node-a", World([reading(FakeGpu(errors={call: code}, **gpu))], [scan(process())]), 1, 0.0)


def only(facts: NodeFacts) -> GpuFacts:
    gpus = facts.gpus.known()
    assert gpus is not None
    (one,) = gpus
    return one


def with_compute_list(code: int) -> FakeGpu:
    return FakeGpu(compute=[listed(7)], errors=dict.fromkeys(COMPUTE, code))


@pytest.mark.parametrize("code", CODES)
def test_each_code_leaves_its_reading_unknown_in_its_own_way_and_the_others_stand(code: int) -> None:
    expected = OTHER_THAN_ERROR.get(code, Effect())
    power = only(facts_with("nvmlDeviceGetPowerUsage", code))
    busy = only(facts_with("nvmlDeviceGetUtilizationRates", code, utilisation=90))
    (lists,) = read(FakeNvml(with_compute_list(code))).gpus.known() or ()
    assert (power.power_w.state, power.power_w.value, power.health) == (expected.plain, None, expected.health)
    assert (busy.activity[-1].utilisation_ratio.state, busy.health) == (expected.utilisation, expected.health)
    assert (lists.processes.state, lists.processes.value, lists.health) == (expected.processes, None, expected.health)
    assert f"NVML {code}" in str(lists.processes.reason)
    assert all(one.temperature_c.known() == 33 for one in (power, busy, lists))


@pytest.mark.parametrize("code", CODES)
def test_only_a_refusal_makes_sight_partial_whatever_was_refused(code: int) -> None:
    for call in ("nvmlDeviceGetPowerUsage", "nvmlDeviceGetUtilizationRates", *COMPUTE[:1]):
        seen = facts_with(call, code).visibility
        assert seen.level is (VisibilityLevel.PARTIAL if code == NO_PERMISSION else VisibilityLevel.FULL), call


NEVER_READ: Final = {
    "nvmlShutdown": "what was read stands",
    "nvmlGpmSampleFree": "the process ends in a moment and takes it along",
    "nvmlDeviceGetComputeRunningProcesses_v2": "only where the newer call does not exist",
    "nvmlDeviceGetGraphicsRunningProcesses_v2": "likewise",
    "nvmlDeviceGetMPSComputeRunningProcesses_v2": "likewise",
}


@pytest.mark.parametrize("call", sorted(CALLS.keys() - NEVER_READ.keys()))
def test_a_refusal_of_any_call_at_all_is_told_with_what_was_refused(call: str) -> None:
    instance = FakeGpu(uuid="MIG-a", gpu_instance=1)
    gpu = FakeGpu(mig=[instance], process_samples=(worked(7, 10),))
    world = World([read(FakeNvml(gpu, errors={call: NO_PERMISSION}))], [scan(process())])
    seen = look("node-a", world, 1, 0.0).visibility
    assert seen.level is VisibilityLevel.PARTIAL
    (reason,) = seen.reasons
    assert reason.startswith("NVML refused, for lack of permission (error 4): ")


def test_a_refusal_while_accounting_is_read_is_told_although_it_only_leaves_a_dead_process_out() -> None:
    class Accounting(FakeNvml):
        def nvmlDeviceGetAccountingMode(self, gpu: FakeGpu) -> int:  # noqa: N802
            return 1

        def nvmlDeviceGetAccountingPids(self, gpu: FakeGpu) -> list[int]:  # noqa: N802
            return [11]

        def nvmlDeviceGetAccountingStats(self, gpu: FakeGpu, pid: int) -> Any:  # noqa: N802
            raise self.NVMLError(NO_PERMISSION)

    assert read(Accounting(FakeGpu())).refused == ("accounting of a process",)


def test_a_refusal_is_told_once_for_all_gpus_and_looks() -> None:
    refusing = [FakeGpu(uuid=uuid, errors={COMPUTE[0]: NO_PERMISSION}) for uuid in ("GPU-a", "GPU-b")]
    seen = look("node-a", World([reading(*refusing)], [scan()]), 3, 1.0).visibility
    assert seen.reasons == ("NVML refused, for lack of permission (error 4): list of compute processes",)


def test_what_nvml_refused_when_it_was_opened_is_partial_too() -> None:
    refused = read(FakeNvml(errors={"nvmlInit": NO_PERMISSION}))
    facts = look("node-a", World([refused], [scan()]), 1, 0.0)
    assert (facts.gpus.state, facts.visibility.level) == (State.ERROR, VisibilityLevel.PARTIAL)


def test_memory_beside_a_list_that_nvml_refuses_to_show_belongs_to_nobody_known_and_is_no_ghost() -> None:
    """Never "no processes": not in the class, not in the words, not for a process that holds the device either."""
    refusing = FakeGpu(used=9000 * MIB, errors={COMPUTE[0]: NO_PERMISSION})
    facts = look("node-a", World([reading(refusing)], [scan()]), 4, 30.0)
    (nobody,) = trace_node(facts, (), now=NOON).gpus
    assert (nobody.headline, "list of compute processes" in nobody.reason) == (GpuClass.UNKNOWN, True)
    held = look("node-a", World([reading(refusing)], [scan(process())]), 4, 30.0)
    (somebody,) = trace_node(held, None, now=NOON).gpus
    (holder,) = somebody.holders
    assert (holder.known_to_nvml, holder.gpu_memory_bytes.known()) == (None, None)
    assert holder.gpu_class is not GpuClass.HIDDEN_HOLDER


def test_no_reading_of_a_refused_gpu_is_a_zero() -> None:
    """All calls on the device refused but the one that names it."""
    errors = dict.fromkeys((name for name in CALLS if name.startswith("nvmlDevice") and name != "nvmlDeviceGetUUID"), NO_PERMISSION)
    del errors["nvmlDeviceGetHandleByIndex"], errors["nvmlDeviceGetCount"]
    gpu = only(look("node-a", World([reading(FakeGpu(errors=errors, gpm=False))], [scan()]), 1, 0.0))
    samples: list[Sample[Any]] = [value for name in gpu.__struct_fields__ if isinstance(value := getattr(gpu, name), Sample)]
    assert {sample.value for sample in samples} == {None}


def test_where_it_cannot_be_read_whether_there_are_instances_no_process_counts_as_unlisted() -> None:
    """The parent's own list has gaps: a process of an instance would look like a hidden holder."""
    gpu = FakeGpu(errors={"nvmlDeviceGetMigMode": pynvml.NVML_ERROR_UNKNOWN})
    facts = look("node-a", World([reading(gpu)], [scan(process())]), 1, 0.0)
    (holder,) = trace_node(facts, None, now=NOON).gpus[0].holders
    assert (holder.known_to_nvml, holder.gpu_class is GpuClass.HIDDEN_HOLDER) == (None, False)
