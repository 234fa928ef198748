"""The capture that may stop a session is full, taken after the decision, and fresh; any other says nothing."""

from datetime import timedelta

import msgspec
import pytest

from steps.contracts.document import Sample
from steps.contracts.node_facts import NodeFacts, Scan, SocketFacts
from steps.contracts.stop_receipt import Refusal
from steps.stop.life import captured, sign_of_life
from tests.unit import trace_world
from tests.unit.stopping import Scene, judged_pod
from tests.unit.trace_world import CONTAINER_A, GPU_A, NOON, POD_A

DECISION = msgspec.structs.replace(
    Scene().decision,
    decided_at=NOON - timedelta(minutes=1),
    pods=(msgspec.structs.replace(judged_pod(devices=(GPU_A,)), uid=POD_A),),
)


def connected(established: int) -> SocketFacts:
    return SocketFacts(
        network_namespace="net:[1]", cgroup=trace_world.cgroup_of(POD_A, CONTAINER_A), established=Sample.measured(established)
    )


def capture(utilisation: float = 0.0, established: int = 0, **other: object) -> NodeFacts:
    """The pod's process holds its GPU; two ratios measured, sockets read."""
    activity = [trace_world.moment(2000, utilisation, utilisation, utilisation)] * 2
    gpu = trace_world.gpu(used_mib=2000, processes=(trace_world.listed(mib=2000),), activity=activity)
    given = trace_world.facts(
        [gpu],
        [trace_world.process()],
        allocations=(trace_world.allocation(),),
        sockets=(connected(established),),
        at=NOON - timedelta(seconds=10),
    )
    return msgspec.structs.replace(given, **other)


def refusal(*captures: NodeFacts) -> Refusal | None:
    why = sign_of_life(DECISION, captured(DECISION, captures, NOON), NOON)
    return why.refusal if why else None


def test_an_idle_capture_with_nobody_connected_lets_the_stop_go_on() -> None:
    assert refusal(capture()) is None


def test_work_and_a_connection_are_signs_of_life() -> None:
    assert refusal(capture(utilisation=0.3)) is Refusal.SIGN_OF_LIFE
    assert refusal(capture(established=1)) is Refusal.SIGN_OF_LIFE


def test_no_capture_at_all_is_unknown() -> None:
    assert refusal() is Refusal.SIGNAL_UNKNOWN


def test_a_quick_scan_is_never_the_basis_of_a_stop() -> None:
    assert refusal(capture(scan=Scan.QUICK)) is Refusal.SIGNAL_UNKNOWN


@pytest.mark.parametrize(
    ("taken_s_ago", "expected"),
    [(59, None), (60, None), (61, Refusal.SIGNAL_UNKNOWN), (-60, None), (-61, Refusal.SIGNAL_UNKNOWN)],
)
def test_a_capture_from_before_the_decision_or_from_the_future_is_unknown(taken_s_ago: int, expected: Refusal | None) -> None:
    given = capture()
    stamp = msgspec.structs.replace(given.stamp, made_at=NOON - timedelta(seconds=taken_s_ago))
    assert refusal(msgspec.structs.replace(given, stamp=stamp)) is expected


@pytest.mark.parametrize(("taken_s_ago", "expected"), [(599, None), (600, Refusal.SIGNAL_UNKNOWN)])
def test_a_capture_that_lay_about_for_ten_minutes_is_unknown(taken_s_ago: int, expected: Refusal | None) -> None:
    decision = msgspec.structs.replace(DECISION, decided_at=NOON - timedelta(minutes=14))
    given = capture()
    stamp = msgspec.structs.replace(given.stamp, made_at=NOON - timedelta(seconds=taken_s_ago))
    nodes = captured(decision, [msgspec.structs.replace(given, stamp=stamp)], NOON)
    why = sign_of_life(decision, nodes, NOON)
    assert (why.refusal if why else None) is expected


def test_of_two_captures_of_one_node_the_later_one_counts() -> None:
    busy = capture(utilisation=0.9)
    later = msgspec.structs.replace(busy.stamp, made_at=NOON)
    assert refusal(msgspec.structs.replace(busy, stamp=later), capture()) is Refusal.SIGN_OF_LIFE


def test_nvml_that_could_not_be_asked_is_unknown() -> None:
    assert refusal(capture(gpus=Sample.error("driver not loaded"))) is Refusal.SIGNAL_UNKNOWN


def test_sockets_that_could_not_be_read_are_unknown() -> None:
    assert refusal(capture(sockets=Sample.error("EACCES"))) is Refusal.SIGNAL_UNKNOWN
