"""Doubts about whose device, memory or work it is: each takes a claim back that the other readings would make."""

import msgspec
import pytest

from steps.contracts.document import Sample
from steps.contracts.node_facts import NodeFacts, ProcessFacts
from steps.contracts.traced import GpuClass, TracedGpu
from steps.trace.node import trace_node
from tests.unit.trace_world import NOON, facts, gpu, hold, listed, memory, moment, pod, process
from tests.unit.weaker_scenes import BUSY, DAEMON, worked

NO_TOTAL = memory(8100, total_mib=None)
HOST = ("0::/user.slice/user-1000.slice/session-1.scope",)


def first(node: NodeFacts) -> TracedGpu:
    return trace_node(node, (pod(),), now=NOON, lists=2).gpus[0]


# --- a list of NVML that cannot be tested


@pytest.mark.parametrize(
    ("entries", "accused"),
    [
        ((), True),  # nothing on it that could be wrong
        ((listed(9999),), False),
        ((listed(9999, mib=None),), True),  # by its number a PID, and the driver gives no figure to test
        ((listed(4002),), True),  # seen on the device, so the PID is one
    ],
    ids=["empty", "a PID nobody has", "a PID nobody has, without memory", "a PID that is seen on the device"],
)
def test_without_the_devices_total_only_a_list_that_proc_confirms_accuses_who_is_not_on_it(
    entries: tuple[object, ...], accused: bool
) -> None:
    both = (process(), process(4002))
    traced = first(facts((gpu(used_mib=8100, memory=NO_TOTAL, processes=entries),), both))  # type: ignore[arg-type]
    hidden = next(holder for holder in traced.holders if holder.pid == 4001)
    assert (hidden.gpu_class is GpuClass.HIDDEN_HOLDER, hidden.known_to_nvml) == (accused, False if accused else None)


def test_without_the_total_no_figure_of_a_process_explains_any_memory() -> None:
    """A daemon with an absurd figure would otherwise make a full device look free."""
    daemon = process(executable=Sample.measured("/usr/bin/nvidia-persistenced"), cgroup=DAEMON)
    traced = first(facts((gpu(used_mib=20000, memory=memory(20000, total_mib=None), processes=(listed(mib=90000),)),), (daemon,)))
    assert (traced.headline, traced.holders[0].gpu_memory_bytes.known()) == (GpuClass.UNKNOWN, None)


# --- threads in uninterruptible sleep


def in_d(samples: int) -> ProcessFacts:
    return process(threads=3, threads_in_d=(4002,), samples_in_d=samples)


@pytest.mark.parametrize(("samples", "stuck"), [(1, False), (2, False), (3, True), (4, True)])
def test_a_thread_in_d_sticks_its_live_leader_after_three_samples_over_a_minute(samples: int, stuck: bool) -> None:
    """Four looks over 90 s: three of them span the minute."""
    traced = first(facts((gpu(used_mib=8100, processes=(listed(),)),), (in_d(samples),)))
    assert (traced.headline is GpuClass.STUCK_D) == stuck
    assert stuck or any("pending: stuck needs" in finding.detail for finding in traced.findings)


# --- memory in v1


@pytest.mark.parametrize(("used_mib", "headline"), [(2112, GpuClass.BASELINE), (2113, GpuClass.GHOST_CONTEXT)])
def test_a_device_that_tells_no_reserve_worth_the_name_is_judged_like_one_that_tells_none(
    used_mib: int, headline: GpuClass
) -> None:
    """64 MiB and 2.5 % of 81920 MiB: what published idle devices show in v1."""
    node = facts((gpu(used_mib=used_mib, memory=memory(used_mib, reserved_mib=0, accounting="v1")),))
    assert first(node).headline is headline


# --- whose work it is


@pytest.mark.parametrize("mps", [True, None])
def test_under_mps_a_clients_zero_is_no_idleness(mps: bool | None) -> None:
    """The server's figure is its clients' work (facts 3.7). The second time nothing but the server's name tells of MPS."""
    server = process(50, name="nvidia-cuda-mps", cgroup=HOST)
    device = gpu(
        used_mib=8100,
        processes=(listed(), listed(50)),
        activity=BUSY,
        figures=(worked(4001, 0.0), worked(50, 0.9)),
        mps_active=Sample.measured(True) if mps else Sample.absent("this driver has no list of MPS clients"),
    )
    client = next(one for one in first(facts((device,), (process(), server))).holders if one.pid == 4001)
    assert client.gpu_class is GpuClass.ACTIVITY_UNKNOWN_SHARED


def test_a_kubelets_record_that_could_not_be_read_may_name_another_owner_of_the_work() -> None:
    seen = facts((gpu(used_mib=8100, processes=(listed(),), activity=BUSY),), (process(),))
    alone, lost = first(seen), first(msgspec.structs.replace(seen, allocations=Sample.error("no checkpoint of the device manager")))
    assert (alone.headline, lost.headline) == (GpuClass.ACTIVE, GpuClass.ACTIVITY_UNKNOWN_SHARED)
    assert "who else was given the device is not known" in lost.reason


def test_figures_of_processes_that_could_not_be_read_leave_a_zero_of_the_device_unsure() -> None:
    device = gpu(used_mib=8100, processes=(listed(),))
    refused = msgspec.structs.replace(device, process_activity=Sample.error("process utilisation: Unknown Error (NVML 999)"))
    classes = [first(facts((one,), (process(),))).headline for one in (device, refused)]
    assert classes == [GpuClass.IDLE_HOLDER, GpuClass.ACTIVITY_UNKNOWN]


@pytest.mark.parametrize("figure", ["sm_active_ratio", "graphics_active_ratio"])
def test_a_counter_that_this_device_has_and_that_failed_may_have_shown_work(figure: str) -> None:
    zero = msgspec.structs.replace(moment(8100, util=0.0), **{figure: Sample.error("GPM metrics: Unknown Error (NVML 999)")})
    traced = first(facts((gpu(used_mib=8100, processes=(listed(),), activity=(zero,) * 4),), (process(),)))
    assert traced.headline is GpuClass.ACTIVITY_UNKNOWN


# --- what may be one of the node's own services


@pytest.mark.parametrize("adopted", [True, None])
def test_what_may_be_a_daemon_is_nobodys_idle_session_and_no_orphan(adopted: bool | None) -> None:
    doubtful = process(
        executable=Sample.error("exe cannot be read"),
        cgroup=DAEMON,
        adopted=Sample.measured(True) if adopted else Sample.absent("nobody knows"),
        holds=(hold(),),
    )
    assert first(facts((gpu(used_mib=8100, processes=(listed(),)),), (doubtful,))).headline is GpuClass.UNKNOWN
