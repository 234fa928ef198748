"""Whether the holders of a GPU work: figures over the window, sharers told apart, the gravest holder first."""

from typing import Any

import pytest

from steps.contracts.document import Sample
from steps.contracts.node_facts import (
    NodeFacts,
    ProcessActivity,
)
from steps.contracts.traced import GpuClass
from tests.unit.trace_classing import A_POD, BOTH, first, found, headline, held
from tests.unit.trace_world import (
    CONTAINER_B,
    GPU_A,
    POD_B,
    allocation,
    cgroup_of,
    facts,
    gpu,
    hold,
    listed,
    moment,
    partial,
    process,
)

# activity


@pytest.mark.parametrize(
    ("moments", "expected"),
    [
        ([moment(8100, 0.0)] * 2, "IDLE_HOLDER"),
        ([moment(8100, None, 0.0)] * 2, "IDLE_HOLDER"),
        ([moment(8100, 0.0), moment(8100, None)], "ACTIVITY_UNKNOWN"),
        ([moment(8100, None)] * 2, "ACTIVITY_UNKNOWN"),
        ([moment(8100, None), moment(8100, 0.3)], "ACTIVE"),
        ([moment(8100, 0.0, graphics=0.2)] * 2, "ACTIVE"),
        ([moment(8100, 1.0, 0.012)] * 2, "LOW_EFFICIENCY"),
        ([moment(8100, 1.0, 0.10)] * 2, "LOW_EFFICIENCY"),
        ([moment(8100, 1.0, 0.101)] * 2, "ACTIVE"),
        ([moment(8100, 1.0, None), moment(8100, 1.0, 0.012)], "ACTIVE"),
        ([moment(8100, 0.49, 0.012)] * 2, "ACTIVE"),
    ],
)
def test_activity_over_the_window(moments: list[Any], expected: str) -> None:
    assert headline(held(activity=moments)).value == expected


def shared(util: float | None, figures: Any = None) -> NodeFacts:
    device = gpu(used_mib=16200, processes=(listed(4001), listed(5001)), activity=(moment(16200, util),) * 4, figures=figures)
    return facts((device,), (process(4001), process(5001, cgroup_of(POD_B, CONTAINER_B))))


def test_a_shared_devices_figure_says_nothing_about_one_pod_but_its_zero_is_true_for_all() -> None:
    assert headline(shared(0.7), BOTH) is GpuClass.ACTIVITY_UNKNOWN_SHARED
    assert headline(shared(0.0), BOTH) is GpuClass.IDLE_HOLDER
    assert headline(shared(None), BOTH) is GpuClass.ACTIVITY_UNKNOWN


def test_figures_per_process_tell_the_sharers_apart() -> None:
    figures = (ProcessActivity(pid=4001, sm_ratio=0.6), ProcessActivity(pid=5001, sm_ratio=0.0))
    traced = first(shared(0.7, figures), BOTH)
    assert [holder.gpu_class for holder in traced.holders] == [GpuClass.ACTIVE, GpuClass.IDLE_HOLDER]
    assert traced.headline is GpuClass.ACTIVE


def test_a_process_without_a_figure_of_its_own_stays_unknown_beside_one_that_has() -> None:
    traced = first(shared(0.7, (ProcessActivity(pid=4001, sm_ratio=0.6),)), BOTH)
    assert [holder.gpu_class for holder in traced.holders] == [GpuClass.ACTIVE, GpuClass.ACTIVITY_UNKNOWN_SHARED]


def test_work_of_a_process_outweighs_a_device_that_shows_none() -> None:
    assert headline(held(figures=(ProcessActivity(pid=4001, sm_ratio=0.1),))) is GpuClass.ACTIVE


def test_a_time_sliced_neighbour_without_a_process_shares_the_device_if_its_pod_lives() -> None:
    both = (allocation(f"{GPU_A}::0"), allocation(f"{GPU_A}::1", POD_B))
    device = gpu(used_mib=8100, processes=(listed(),), activity=(moment(8100, 0.7),) * 4)
    node = facts((device,), (process(),), allocations=both)
    assert headline(node, BOTH) is GpuClass.ACTIVITY_UNKNOWN_SHARED
    assert headline(node, A_POD) is GpuClass.ACTIVE


@pytest.mark.parametrize("util", [0.0, 0.9])
@pytest.mark.parametrize("lines", [("0::/../..",), cgroup_of(container=CONTAINER_B)], ids=["relative", "spoofed"])
def test_what_cannot_be_attributed_is_neither_idle_nor_active(util: float, lines: tuple[str, ...]) -> None:
    assert headline(held(cgroup=lines, activity=(moment(8100, util),) * 4)) is GpuClass.UNKNOWN


def test_the_gravest_holder_gives_the_headline_and_the_others_are_attached() -> None:
    hidden = process(5001, holds=(hold(),))
    orphan = process(6001, adopted=Sample.measured(True))
    device = gpu(used_mib=16200, processes=(listed(4001), listed(6001)))
    traced = first(facts((device,), (process(4001), hidden, orphan)))
    assert traced.headline is GpuClass.HIDDEN_HOLDER
    assert found(traced) == {GpuClass.ORPHAN_LIVE, GpuClass.IDLE_HOLDER}


def test_partial_visibility_stays_partial_and_still_allows_a_holders_class() -> None:
    assert headline(held(look={"visibility": partial()})) is GpuClass.IDLE_HOLDER
