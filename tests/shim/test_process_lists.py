"""Process lists as the bindings get them: count probe, entry layouts, lists that grow, MIG (facts 3.2, 3.3, 3.7)."""

import ctypes
from typing import Any

import pytest

from sim.node.state import GIB, MIB, MigInstance, ScriptedProcess
from tests.shim.conftest import Node

FOUR = (1184, 16040, 19984, 20884)
"""The PIDs of the reproduced layout mismatch."""
EACH_BYTES = 524288000


def compute(*pids: int, used_bytes: int | None = EACH_BYTES) -> tuple[ScriptedProcess, ...]:
    return tuple(ScriptedProcess(kind="C", pid=pid, used_bytes=used_bytes) for pid in pids)


def probe(node: Node, room: int, entries: Any = None) -> tuple[int, int]:
    """The raw call: NVML's code, and the count it left."""
    count = ctypes.c_uint(room)
    ask = ctypes.CDLL("libnvidia-ml.so.1").nvmlDeviceGetComputeRunningProcesses_v3
    return int(ask(node.handle(), ctypes.byref(count), entries)), count.value


def test_the_count_probe_says_seven_and_how_many_and_zero_only_if_there_is_none(node: Node) -> None:
    assert probe(node, 0) == (0, 0)
    node.change(scripted=compute(*FOUR))
    assert probe(node, 0) == (7, 4)


def test_a_buffer_that_is_too_small_is_left_alone(node: Node) -> None:
    node.change(scripted=compute(*FOUR))
    entries = (node.nvml.c_nvmlProcessInfo_v3_t * 3)()
    assert probe(node, 3, entries) == (7, 4)
    assert [entry.pid for entry in entries] == [0, 0, 0]


def test_entries_outside_mig_carry_no_instance(node: Node) -> None:
    node.change(scripted=compute(1184))
    (entry,) = node.nvml.nvmlDeviceGetComputeRunningProcesses_v3(node.handle())
    assert (entry.pid, entry.usedGpuMemory, entry.gpuInstanceId, entry.computeInstanceId) == (
        1184,
        EACH_BYTES,
        0xFFFFFFFF,
        0xFFFFFFFF,
    )


def test_memory_that_is_not_available_arrives_as_none_and_not_as_zero(node: Node) -> None:
    node.change(scripted=(*compute(1184, used_bytes=None), *compute(16040, used_bytes=0)))
    assert node.listed() == {1184: None, 16040: 0}


def test_32_byte_entries_under_the_same_symbol_are_misread_exactly_as_reported(node: Node) -> None:
    node.change(scripted=compute(*FOUR), entry_bytes=32)
    wrong = [(one.pid, one.usedGpuMemory) for one in node.nvml.nvmlDeviceGetComputeRunningProcesses_v3(node.handle())]
    assert wrong == [(1184, 524288000), (0, 16040), (4294967295, 0), (524288000, None)]
    right = node.nvml.nvmlDeviceGetComputeRunningProcesses_v2(node.handle())
    assert [one.pid for one in right] == list(FOUR)


def test_16_byte_entries_are_misread_as_well(node: Node) -> None:
    node.change(scripted=compute(*FOUR), entry_bytes=16)
    wrong = [one.pid for one in node.nvml.nvmlDeviceGetComputeRunningProcesses_v3(node.handle())]
    assert wrong[0] == 1184
    assert wrong != list(FOUR)


def test_32_byte_entries_never_overrun_what_the_caller_allocated(node: Node) -> None:
    node.change(scripted=compute(*FOUR), entry_bytes=32)
    entries = (node.nvml.c_nvmlProcessInfo_v3_t * 4)()
    assert probe(node, 4, entries) == (7, 4)  # four times 32 bytes do not fit into four times 24


def test_a_list_that_outgrew_the_bindings_room_is_an_error_once_and_then_whole(node: Node) -> None:
    node.change(scripted=compute(*FOUR), grow_by=20, grow_times=1)
    with pytest.raises(node.nvml.NVMLError_InsufficientSize):
        node.listed()
    assert list(node.listed()) == list(FOUR)


def test_a_little_growth_between_probe_and_list_is_seen(node: Node) -> None:
    node.change(scripted=compute(*FOUR), grow_by=2, grow_times=1)
    assert node.listed() == {1: None} | dict.fromkeys(FOUR, EACH_BYTES)


def test_each_kind_has_its_list(node: Node) -> None:
    kinds = {"C": 11, "G": 12, "M": 13}
    node.change(scripted=tuple(ScriptedProcess(kind=kind, pid=pid, used_bytes=MIB) for kind, pid in kinds.items()))  # type: ignore[arg-type]
    asked = (
        node.nvml.nvmlDeviceGetComputeRunningProcesses_v3,
        node.nvml.nvmlDeviceGetGraphicsRunningProcesses_v3,
        node.nvml.nvmlDeviceGetMPSComputeRunningProcesses_v3,
    )
    assert [[one.pid for one in ask(node.handle())] for ask in asked] == [[11], [12], [13]]
    details = node.nvml.nvmlDeviceGetRunningProcessDetailList(node.handle(), node.nvml.nvmlProcessDetailList_v1, 3)
    assert [one.pid for one in details] == [11, 12, 13]


def with_mig(node: Node) -> None:
    """Two GPU instances, the second cut into two compute instances that share its memory."""
    node.change(
        mig=(
            MigInstance(uuid="MIG-a", gpu_instance=1, compute_instance=0, total_bytes=20 * GIB),
            MigInstance(uuid="MIG-b", gpu_instance=2, compute_instance=0, total_bytes=40 * GIB),
            MigInstance(uuid="MIG-c", gpu_instance=2, compute_instance=1, total_bytes=40 * GIB),
        ),
        scripted=(ScriptedProcess(kind="C", pid=77, used_bytes=GIB, gpu_instance=2, compute_instance=1),),
    )


def test_a_mig_instance_has_its_own_memory_and_processes(node: Node) -> None:
    with_mig(node)
    assert node.nvml.nvmlDeviceGetMigMode(node.handle()) == [1, 1]
    first, second, _ = (node.nvml.nvmlDeviceGetMigDeviceHandleByIndex(node.handle(), index) for index in range(3))
    assert node.nvml.nvmlDeviceGetUUID(second) == "MIG-b"
    assert node.nvml.nvmlDeviceGetMemoryInfo(first, node.nvml.nvmlMemory_v2).total == 20 * GIB
    assert node.nvml.nvmlDeviceGetComputeRunningProcesses_v3(first) == []
    assert [one.pid for one in node.nvml.nvmlDeviceGetComputeRunningProcesses_v3(second)] == [77]
    assert node.nvml.nvmlDeviceGetUUID(node.nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(second)) == node.uuid
    with pytest.raises(node.nvml.NVMLError_NotFound):
        node.nvml.nvmlDeviceGetMigDeviceHandleByIndex(node.handle(), 3)


def test_with_mig_utilisation_is_not_supported_on_parent_and_instance(node: Node) -> None:
    with_mig(node)
    instance = node.nvml.nvmlDeviceGetMigDeviceHandleByIndex(node.handle(), 0)
    for handle in (node.handle(), instance):
        with pytest.raises(node.nvml.NVMLError_NotSupported):
            node.nvml.nvmlDeviceGetUtilizationRates(handle)
        with pytest.raises(node.nvml.NVMLError_NotSupported):
            node.nvml.nvmlDeviceGetProcessUtilization(handle, 0)


def test_gpm_answers_for_a_mig_instance_through_its_parent(node: Node) -> None:
    with_mig(node)
    sample = node.nvml.nvmlGpmSampleAlloc()
    assert node.nvml.nvmlGpmMigSampleGet(node.handle(), 2, sample)
    with pytest.raises(node.nvml.NVMLError_InvalidArgument):
        node.nvml.nvmlGpmMigSampleGet(node.handle(), 9, sample)
    node.nvml.nvmlGpmSampleFree(sample)
