"""A quick picture answers every case as a full one does, or leaves it undecided; and nobody acts on it."""

from typing import Any

import msgspec
import pytest

from steps.contracts.document import Sample
from steps.contracts.node_facts import NodeFacts, Scan, Visibility, VisibilityLevel
from steps.contracts.traced import GpuClass, TracedGpu
from steps.trace.node import trace_node
from tests.unit.field_case import NOON, input_of
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
    (full,) = trace_node(given.facts, given.pods, now=NOON).gpus
    (fast,) = trace_node(quick(given.facts), given.pods, now=NOON).gpus
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
