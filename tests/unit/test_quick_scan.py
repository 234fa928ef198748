"""A quick picture answers every case as a full one does, or leaves it undecided; and nobody acts on it."""

from typing import Any

import msgspec
import pytest

from steps.contracts.decision import Verdict
from steps.contracts.document import Sample
from steps.contracts.errors import BadInput
from steps.contracts.node_facts import NodeFacts, Scan, Visibility, VisibilityLevel
from steps.contracts.traced import GpuClass, TracedGpu, TracedNode
from steps.decide.memory import FULL_EVERY
from steps.trace.node import trace_node
from tests.unit.field_case import NOON, input_of
from tests.unit.judging import Sweep, ago, gpu, node
from tests.unit.test_field_cases import GIVEN, OWN

UNDECIDED = (GpuClass.UNKNOWN,)


def quick(facts: NodeFacts) -> NodeFacts:
    """What the quick scan of the same moment says: of /proc only the PIDs that NVML lists, without what they hold."""
    lists = [known for gpu in facts.gpus.known() or () if (known := gpu.processes.known()) is not None]
    listed = {process.pid for known in lists for process in known}
    blind = facts.visibility.level is VisibilityLevel.BLIND
    level = VisibilityLevel.BLIND if blind else VisibilityLevel.PARTIAL
    return msgspec.structs.replace(
        facts,
        scan=Scan.QUICK,
        visibility=Visibility(level=level, reasons=(*facts.visibility.reasons, "quick scan")),
        processes=tuple(msgspec.structs.replace(one, holds=()) for one in facts.processes if one.pid in listed),
        sockets=Sample.absent("a quick scan reads no connections"),
    )


def both(case: dict[str, Any]) -> tuple[TracedGpu, TracedGpu]:
    given = input_of(case)
    (full,) = trace_node(given.facts, given.pods, now=NOON, lists=2).gpus
    (fast,) = trace_node(quick(given.facts), given.pods, now=NOON, lists=2).gpus
    return full, fast


@pytest.mark.parametrize("case", GIVEN + OWN, ids=lambda case: str(case["id"]))
def test_a_quick_picture_gives_the_same_class_or_none(case: dict[str, Any]) -> None:
    full, fast = both(case)
    assert fast.headline in (full.headline, *UNDECIDED)


@pytest.mark.parametrize("case", GIVEN + OWN, ids=lambda case: str(case["id"]))
def test_so_it_does_for_every_process_that_it_names(case: dict[str, Any]) -> None:
    full, fast = both(case)
    named = {holder.pid: holder.gpu_class for holder in full.holders}
    wrong = [h for h in fast.holders if h.gpu_class not in (named.get(h.pid), *UNDECIDED)]
    assert wrong == []


def test_what_needs_no_holders_is_decided_by_a_quick_picture_as_well() -> None:
    decided = {both(case)[1].headline for case in GIVEN + OWN} - set(UNDECIDED)
    assert {GpuClass.ABI_MISMATCH, GpuClass.GPU_LOST, GpuClass.BLIND} <= decided


# --- what a sweep makes of it


def quick_node(utilisation: float = 0.0) -> TracedNode:
    headline = GpuClass.UNKNOWN if utilisation == 0 else GpuClass.ACTIVE
    return msgspec.structs.replace(node(gpu(utilisation=utilisation, headline=headline)), scan=Scan.QUICK)


def test_the_label_stays_on_the_picture() -> None:
    given = input_of(GIVEN[0])
    assert trace_node(given.facts, given.pods, now=NOON, lists=2).scan is Scan.FULL
    assert trace_node(quick(given.facts), given.pods, now=NOON, lists=2).scan is Scan.QUICK


def test_nobody_is_reclaimed_on_a_quick_picture_even_if_it_claims_to_know_everything() -> None:
    claims = msgspec.structs.replace(node(gpu()), scan=Scan.QUICK)
    assert Sweep().decision().verdict is Verdict.RECLAIM
    assert Sweep(nodes=[claims]).decision().verdict is Verdict.UNKNOWN


def test_a_quick_picture_without_a_sign_of_life_leaves_the_idle_clock_as_it_was() -> None:
    after = Sweep(nodes=[quick_node()]).judge().memory
    assert after.sessions == Sweep().remembered().sessions


def test_work_on_a_quick_picture_restarts_the_idle_clock() -> None:
    judged = Sweep(nodes=[quick_node(utilisation=0.4)]).judge()
    assert (judged.decisions[0].verdict, judged.memory.sessions) == (Verdict.KEEP, ())


def test_a_clock_that_does_not_hold_is_not_kept_by_a_quick_picture() -> None:
    assert Sweep(nodes=[quick_node()], idle_since=ago(days=1)).judge().memory.sessions == ()


@pytest.mark.parametrize(("before", "refused"), [(0, False), (FULL_EVERY - 2, False), (FULL_EVERY - 1, True)])
def test_at_least_every_so_many_sweeps_is_a_full_one(before: int, refused: bool) -> None:
    memory = msgspec.structs.replace(Sweep().remembered(), quick_sweeps=before)
    sweep = Sweep(nodes=[quick_node()], memory=memory)
    if refused:
        with pytest.raises(BadInput, match="scan=full"):
            sweep.judge()
    else:
        assert sweep.judge().memory.quick_sweeps == before + 1
    assert Sweep(memory=memory).judge().memory.quick_sweeps == 0
