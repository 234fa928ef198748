"""NVML's process lists: merged, retried, and believed only if they can be right."""

import pytest

from steps.contracts.document import State
from steps.contracts.node_facts import Layout, ProcessKind
from tests.unit.fake_nvml import GIB, PID_MAX, FakeGpu, listed, only

COMPUTE = "nvmlDeviceGetComputeRunningProcesses_v3"
GRAPHICS = "nvmlDeviceGetGraphicsRunningProcesses_v3"
MPS = "nvmlDeviceGetMPSComputeRunningProcesses_v3"


def test_a_process_in_several_lists_is_one_process_with_its_largest_memory() -> None:
    facts = only(FakeGpu(compute=[listed(7, 5 * GIB), listed(9, GIB)], graphics=[listed(7, 6 * GIB)], mps=[listed(9, GIB)]))
    processes = facts.processes.known()
    assert processes is not None
    assert [(p.pid, p.used_memory_bytes.known(), p.kinds) for p in processes] == [
        (7, 6 * GIB, (ProcessKind.COMPUTE, ProcessKind.GRAPHICS)),
        (9, GIB, (ProcessKind.COMPUTE, ProcessKind.MPS)),
    ]
    assert facts.mps_active.known() is True


def test_memory_that_is_not_available_is_absent_and_never_zero() -> None:
    processes = only(FakeGpu(compute=[listed(7, None)])).processes.known()
    assert processes is not None
    assert (processes[0].used_memory_bytes.value, processes[0].used_memory_bytes.state) == (None, State.ABSENT)


def test_memory_known_in_one_list_and_not_in_another_is_not_known() -> None:
    processes = only(FakeGpu(compute=[listed(7, None)], graphics=[listed(7, GIB)])).processes.known()
    assert processes is not None
    assert processes[0].used_memory_bytes.known() is None


@pytest.mark.parametrize(("failures", "state"), [(1, State.MEASURED), (2, State.MEASURED), (3, State.ERROR)])
def test_a_list_that_outgrew_its_buffer_is_asked_three_times(failures: int, state: State) -> None:
    gpu = FakeGpu(compute=[listed(7)], errors={COMPUTE: 7}, fail_times={COMPUTE: failures})
    assert only(gpu).processes.state is state


def test_an_older_driver_is_asked_by_its_older_call() -> None:
    processes = only(FakeGpu(compute=[listed(7)], errors={COMPUTE: 13, GRAPHICS: 13, MPS: 13})).processes.known()
    assert processes is not None
    assert [p.pid for p in processes] == [7]


@pytest.mark.parametrize("kind", ["Graphics", "MPSCompute"])
def test_a_list_that_the_model_does_not_have_is_no_gap(kind: str) -> None:
    errors = {f"nvmlDeviceGet{kind}RunningProcesses_v{n}": 3 for n in (2, 3)}
    facts = only(FakeGpu(compute=[listed(7)], errors=errors))
    assert facts.processes.state is State.MEASURED
    assert facts.mps_active.state is (State.ABSENT if kind == "MPSCompute" else State.MEASURED)


@pytest.mark.parametrize(("function", "code"), [(COMPUTE, 999), (GRAPHICS, 999), (MPS, 4), (COMPUTE, 3), (COMPUTE, 15)])
def test_one_list_that_fails_makes_the_whole_list_unknown(function: str, code: int) -> None:
    processes = only(FakeGpu(compute=[listed(7)], errors={function: code})).processes
    assert processes.value is None
    assert processes.state in (State.ERROR, State.ABSENT)


@pytest.mark.parametrize(
    ("entries", "plausible"),
    [
        ([(1184, 524288000), (0, 16040), (4294967295, 0), (524288000, None)], False),
        ([(PID_MAX, GIB)], True),
        ([(PID_MAX + 1, GIB)], False),
        ([(1, 80 * GIB)], True),
        ([(1, 80 * GIB + 1)], False),
        ([(0, GIB)], False),
    ],
)
def test_a_list_with_an_entry_that_cannot_be_is_no_list(entries: list[tuple[int, int | None]], plausible: bool) -> None:
    facts = only(FakeGpu(compute=[listed(pid, used) for pid, used in entries], compute_v2=[]))
    assert facts.process_layout is (Layout.PLAUSIBLE if plausible else Layout.MISMATCH)
    assert facts.processes.state is (State.MEASURED if plausible else State.ERROR)


def test_a_mismatch_says_what_the_older_call_reads_and_rests_nothing_on_it() -> None:
    facts = only(FakeGpu(compute=[listed(0)], compute_v2=[listed(1184), listed(16040)]))
    assert (facts.process_layout, facts.processes.value) == (Layout.MISMATCH, None)
    assert "[1184, 16040]" in (facts.processes.reason or "")


def test_with_the_total_unknown_only_pids_are_checked() -> None:
    facts = only(FakeGpu(compute=[listed(7, 999 * GIB)], errors={"nvmlDeviceGetMemoryInfo": 999}))
    assert facts.process_layout is Layout.PLAUSIBLE
