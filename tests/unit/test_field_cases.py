"""Every case of the case folder and our own: headline class and all expectations in `extra`."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from steps.contracts.traced import GpuClass, TracedGpu
from steps.trace.node import trace_node
from tests.unit.field_case import MIB, NOON, UnknownKey, input_of

HERE = Path(__file__).parent
FOLDER = Path(os.environ.get("GPU_RECLAIM_CASES", str(HERE.parent / "cases")))


def cases_in(folder: Path, pattern: str) -> list[dict[str, Any]]:
    return [case for path in sorted(folder.glob(pattern)) for case in json.loads(path.read_text(encoding="utf-8"))]


GIVEN = cases_in(FOLDER, "field_cases*.json")
OWN = cases_in(HERE.parent / "cases" / "own", "field_cases*.json")


def traced(case: dict[str, Any]) -> TracedGpu:
    given = input_of(case)
    node = trace_node(given.facts, given.pods, now=NOON, lists=2)
    (gpu,) = node.gpus
    return gpu


def test_the_folder_holds_cases() -> None:
    assert GIVEN


@pytest.mark.parametrize("case", GIVEN + OWN, ids=lambda case: str(case["id"]))
def test_a_gpu_gets_the_class_that_the_case_expects(case: dict[str, Any]) -> None:
    gpu = traced(case)
    assert gpu.headline.value == case["expect"], gpu.reason


@pytest.mark.parametrize("case", GIVEN + OWN, ids=lambda case: str(case["id"]))
def test_everything_else_the_case_expects_holds_as_well(case: dict[str, Any]) -> None:
    gpu, extra = traced(case), case["extra"]
    secondary = {finding.gpu_class.value for finding in gpu.findings} | {holder.gpu_class.value for holder in gpu.holders}
    if "also" in extra:
        assert set(as_list(extra["also"])) <= secondary
    if "not" in extra:
        assert set(as_list(extra["not"])).isdisjoint(secondary | {gpu.headline.value})
    if "holder" in extra:
        named = {holder.pid for holder in gpu.holders} | thread_ids(case)
        assert set(as_list(extra["holder"])) <= named
        assert all(str(pid) in told(gpu) for pid in as_list(extra["holder"]))
    if "residual_mib" in extra:
        left = gpu.unexplained_bytes.known()
        assert (None if left is None else round(left / MIB, 3)) == extra["residual_mib"]
    if "attribution" in extra:
        assert says(told(gpu), extra["attribution"])


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def thread_ids(case: dict[str, Any]) -> set[int]:
    return {int(number) for process in case["procs"] for number in (process.get("threads") or {})}


def told(gpu: TracedGpu) -> str:
    """All that is said about a GPU, as one text."""
    findings = [f"{finding.gpu_class.value} {finding.detail}" for finding in gpu.findings]
    holders = [f"{h.pid} {h.attribution.value} {h.attribution_reason} {h.reason}" for h in gpu.holders]
    return "\n".join([gpu.headline.value, gpu.reason, *findings, *holders])


def says(text: str, words: str) -> bool:
    """The words stand there as they are, or one by one."""
    spoken = text.casefold().replace(",", " ").replace(":", " ").split()
    return words.casefold() in text.casefold() or all(word in spoken for word in words.casefold().split())


def test_a_figure_for_each_of_two_pods_means_that_both_were_given_the_gpu() -> None:
    shared = next(case for case in cases_in(HERE.parent / "cases", "field_cases.json") if case["id"] == "F24")
    assert traced({**shared, "procs": shared["procs"][:1]}).headline is GpuClass.ACTIVITY_UNKNOWN_SHARED


def test_a_key_the_adapter_does_not_know_is_refused() -> None:
    case = {**GIVEN[0], "extra": {"unheard_of": 1}}
    with pytest.raises(UnknownKey, match="unheard_of"):
        input_of(case)
