"""The table of gpu-reclaim trace, its warnings and exit codes, and that nothing foreign reaches the terminal as it is."""

from typing import Any

import msgspec
import pytest

from steps.contracts.document import Sample
from steps.contracts.errors import Exit
from steps.contracts.node_facts import GpuFacts, Health, Layout, NodeFacts, ProcessFacts
from steps.node_view.picture import NodePicture, picture_of
from steps.node_view.rows import COLUMNS, narrow_rows, wide_rows
from steps.node_view.trace_text import trace_text
from tests.unit.trace_world import (
    GPU_A,
    GPU_B,
    NOON,
    POD_A,
    POD_B,
    allocation,
    blind,
    cgroup_of,
    facts,
    gpu,
    hold,
    listed,
    partial,
    pod,
    process,
)

HOST = ("0::/user.slice/user-1000.slice/session-1.scope",)


def picture(seen: NodeFacts, *pods: Any, asked: bool = True) -> NodePicture:
    return picture_of(seen, pods if asked else None, now=NOON, lists=2)


def rows(seen: NodeFacts, *pods: Any) -> list[dict[str, str]]:
    return [dict(zip(COLUMNS, row, strict=True)) for row in narrow_rows(picture(seen, *pods))]


def test_a_listed_process_of_a_pod_is_one_row_with_all_eight_columns() -> None:
    (row,) = rows(facts((gpu(used_mib=8100, processes=(listed(),)),), (process(),)), pod())
    assert tuple(row.values()) == ("4001", "S", "8000 MiB", "yes", "burstable", "pod-1111", "team", "main")


def test_a_holder_that_nvml_does_not_list_is_marked_and_its_memory_is_unknown_and_never_zero() -> None:
    (row,) = rows(facts((gpu(),), (process(),)), pod())
    assert (row["NSMI"], row["GPU_MEM"]) == ("no", "unknown")


def test_memory_that_nvml_does_not_tell_is_unknown() -> None:
    (row,) = rows(facts((gpu(used_mib=8100, processes=(listed(mib=None),)),), (process(),)), pod())
    assert (row["NSMI"], row["GPU_MEM"]) == ("yes", "unknown")


def test_a_process_on_two_gpus_is_one_row_with_the_sum() -> None:
    gpus = (gpu(used_mib=8000, processes=(listed(mib=8000),)), gpu(GPU_B, index=1, used_mib=100, processes=(listed(mib=100),)))
    both = process(holds=(hold(), hold("nvidia1", GPU_B)))
    (row,) = rows(facts(gpus, (both,)), pod())
    assert row["GPU_MEM"] == "8100 MiB"


def test_a_sum_with_a_part_missing_is_unknown_and_listed_on_one_gpu_only_is_not_listed() -> None:
    gpus = (gpu(used_mib=8000, processes=(listed(mib=8000),)), gpu(GPU_B, index=1))
    (row,) = rows(facts(gpus, (process(holds=(hold(), hold("nvidia1", GPU_B))),)), pod())
    assert (row["GPU_MEM"], row["NSMI"]) == ("unknown", "no")


def test_a_process_of_the_host_has_no_pod_a_conflict_names_nobody_and_a_nameless_pod_is_told_by_its_uid() -> None:
    holders = (process(1, HOST), process(2, cgroup_of(POD_A, "c" * 64)), process(3, cgroup_of(POD_B)))
    found = {row["PID"]: row for row in rows(facts((gpu(),), holders), pod())}
    assert (found["1"]["QOS"], found["1"]["POD"], found["1"]["NAMESPACE"], found["1"]["CONTAINER"]) == ("none", "-", "-", "-")
    assert (found["2"]["POD"], found["2"]["NAMESPACE"]) == ("CONFLICT", "unknown")
    assert (found["3"]["POD"], found["3"]["NAMESPACE"]) == (POD_B, "unknown")


def test_a_device_given_to_a_pod_without_a_process_has_a_row_of_its_own() -> None:
    (row,) = rows(facts((gpu(),), (), allocations=(allocation(),)), pod())
    assert (row["PID"], row["STATE"], row["GPU_MEM"], row["NSMI"], row["POD"], row["CONTAINER"]) == (
        "-",
        "empty",
        "-",
        "-",
        "pod-1111",
        "main",
    )


def test_a_record_whose_pod_is_gone_is_stale_and_holds_nothing() -> None:
    (row,) = rows(facts((gpu(),), (), allocations=(allocation(),)))
    assert (row["STATE"], row["POD"]) == ("stale", POD_A)


def test_memory_that_only_needs_a_longer_look_says_how_long() -> None:
    (sentence,) = picture(facts((gpu(used_mib=9000, samples=1),), samples=1, span_s=0.0)).answer.sentences
    assert sentence.endswith("look longer: --samples 4 --interval-s 21")
    (other,) = picture(facts((gpu(used_mib=None),))).answer.sentences
    assert "look longer" not in other


def test_where_the_kubelets_record_is_unknown_that_is_said_and_no_device_passes_for_free() -> None:
    text = trace_text(picture(facts((gpu(),), (), allocations=None)), wide=False, width=None)
    assert "warning: who was given a device is unknown: not available" in text


def test_ghost_memory_is_a_warning_below_the_table() -> None:
    text = trace_text(picture(facts((gpu(used_mib=9000),))), wide=False, width=None)
    assert "warning: GPU 0: 9000 MiB are held although no process explains them\n" in text


def test_ghost_memory_seen_too_briefly_is_warned_of_as_not_certain() -> None:
    text = trace_text(picture(facts((gpu(used_mib=9000, samples=1),), samples=1, span_s=0.0)), wide=False, width=None)
    assert "warning: GPU 0: 9000 MiB are held although no process explains them, which is not certain" in text


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        ({}, "empty"),
        ({"visibility": blind()}, "given"),
        ({"gpus": (gpu(health=Health.LOST),)}, "given"),
        ({"gpus": (gpu(process_layout=Layout.MISMATCH),)}, "given"),
    ],
    ids=["seen", "blind", "lost", "layout"],
)
def test_a_given_device_is_called_empty_only_where_holders_can_be_told(seen: dict[str, Any], state: str) -> None:
    there = picture(facts(**{"gpus": (gpu(),), "allocations": (allocation(),), **seen}), pod())
    assert [rows(there)[0][1] for rows in (narrow_rows, wide_rows)] == [state, state]


def test_memory_beside_a_listed_holder_that_it_does_not_explain_is_warned_of() -> None:
    text = trace_text(picture(facts((gpu(used_mib=9000, processes=(listed(mib=2000),)),), (process(),))), wide=False, width=None)
    assert "warning: GPU 0: 7000 MiB are held although no process explains them, which is not certain: a process of this" in text


@pytest.mark.parametrize(
    "there",
    [
        (gpu(used_mib=9000, processes=(listed(mib=8900),)), [process()]),
        (gpu(used_mib=9000, processes=(listed(mib=None),)), [process()]),
        (gpu(used_mib=9000, processes=(listed(mib=2000),)), [process(), process(4002)]),
    ],
    ids=["explained", "figure not known", "a hidden holder may have it"],
)
def test_memory_that_a_live_holder_may_have_is_nobodys_ghost(there: tuple[GpuFacts, list[ProcessFacts]]) -> None:
    the_gpu, processes = there
    assert "are held although" not in trace_text(picture(facts((the_gpu,), processes)), wide=False, width=None)


@pytest.mark.parametrize("used", [0, 64, 200, None])
def test_memory_at_baseline_below_the_threshold_or_unknown_warns_of_no_ghost(used: int | None) -> None:
    assert "are held although" not in trace_text(picture(facts((gpu(used_mib=used),))), wide=False, width=None)


HOSTILE = "evil\x1b[2J\n\u202eGPU 0"


@pytest.mark.parametrize("wide", [False, True])
def test_foreign_text_reaches_the_terminal_as_codes(wide: bool) -> None:
    seen = facts((gpu(),), (process(name=HOSTILE, state="\x9b"),))
    text = trace_text(picture(seen, pod(name=HOSTILE, namespace=HOSTILE)), wide=wide, width=None)
    assert not [letter for letter in text if not letter.isprintable() and letter != "\n"]
    assert "evil\\u001b[2J\\u000a\\u202eGPU 0" in text


def crowd() -> tuple[NodeFacts, Any]:
    name = "team-vision-notebook-with-a-rather-long-name-7d4b9c8f6d-x2x9k"
    seen = facts(
        (gpu(used_mib=9000, processes=(listed(),)),), (process(), process(4002, HOST)), allocations=(allocation(pod=POD_B),)
    )
    return seen, pod(name=name, namespace="a-namespace-with-a-long-name-too")


def test_eighty_columns_are_enough_for_everything() -> None:
    seen, long = crowd()
    text = trace_text(picture(seen, long, pod(POD_B, ())), wide=False, width=80)
    assert [line for line in text.splitlines() if len(line) > 80] == []
    (line,) = [line for line in text.splitlines() if line.startswith("4001")]
    assert "…" in line


def test_nothing_is_shortened_where_nobody_looks_at_a_screen() -> None:
    seen, long = crowd()
    text = trace_text(picture(seen, long), wide=False, width=None)
    assert long.name in text
    assert "…" not in text


def test_wide_has_a_row_for_each_gpu_of_a_process_with_class_and_evidence() -> None:
    gpus = (gpu(used_mib=8000, processes=(listed(mib=8000),)), gpu(GPU_B, index=1))
    found = wide_rows(picture(facts(gpus, (process(holds=(hold(), hold("nvidia1", GPU_B))),)), pod()))
    assert [row[8:10] for row in found] == [("0", "IDLE_HOLDER"), ("1", "HIDDEN_HOLDER")]
    assert all("container of its cgroup" in row[11] for row in found)


def test_without_nvml_holders_are_told_by_their_devices_and_owners_by_the_kubelets_record() -> None:
    seen = facts((), (process(), process(5, HOST, holds=(hold("nvidiactl", None),))))
    given = Sample.measured((allocation(pod=POD_B),))
    dead: NodeFacts = _with(seen, gpus=Sample.error("NVML did not answer within 20 s"), allocations=given)
    holder, owner = rows(dead, pod())
    assert (holder["PID"], holder["GPU_MEM"], holder["NSMI"]) == ("4001", "unknown", "unknown")
    assert (owner["PID"], owner["STATE"], owner["POD"]) == ("-", "given", POD_B)
    assert wide_rows(picture(dead, pod()))[1][8] == GPU_A
    answer = picture(dead, pod()).answer
    assert answer.exit == Exit.COULD_NOT
    assert "did not answer within 20 s" in answer.sentences[0]


def _with(seen: NodeFacts, **changes: Any) -> NodeFacts:
    return msgspec.structs.replace(seen, **changes)


@pytest.mark.parametrize(
    ("seen", "pods", "code"),
    [
        (facts((gpu(),)), (), Exit.DONE),
        (facts((gpu(used_mib=8100, processes=(listed(),)),), (process(),)), (pod(),), Exit.DONE),
        (facts((gpu(),), (process(),)), (pod(),), Exit.FOUND_PROBLEMS),
        (facts((gpu(used_mib=8100, processes=(listed(),)),), (process(),)), (), Exit.FOUND_PROBLEMS),
        (facts((gpu(used_mib=9000),)), (), Exit.FOUND_PROBLEMS),
        (facts((gpu(used_mib=9000, samples=1),), samples=1, span_s=0.0), (), Exit.COULD_NOT),
        (facts((gpu(used_mib=None),)), (), Exit.COULD_NOT),
        (facts((gpu(),), visibility=blind()), (), Exit.COULD_NOT),
        (facts((gpu(used_mib=9000, index=1), gpu(GPU_B, used_mib=None))), (), Exit.FOUND_PROBLEMS),
    ],
    ids=["free", "in use", "hidden", "pod gone", "ghost", "pending", "unknown", "blind", "a problem beside a gap"],
)
def test_the_exit_code_says_clean_problem_or_could_not(seen: NodeFacts, pods: Any, code: Exit) -> None:
    answer = picture(seen, *pods).answer
    assert (answer.exit, bool(answer.sentences)) == (code, True), answer.sentences


def test_a_clean_answer_under_partial_sight_says_how_far_it_goes() -> None:
    (sentence,) = picture(facts((gpu(),), visibility=partial())).answer.sentences
    assert "as far as could be seen: EACCES on fd" in sentence


@pytest.mark.parametrize(
    ("asked", "folders", "words"),
    [
        (True, False, "the API server"),
        (False, False, "cgroups alone"),
        (False, True, "the kubelet's folders (logs); the API server was not asked"),
        (True, True, "for pods it forgot the kubelet's folders"),
    ],
)
def test_the_source_of_names_is_named(asked: bool, folders: bool, words: str) -> None:
    seen = _with(facts((gpu(),)), pods_on_disk=Sample.measured((), "logs")) if folders else facts((gpu(),))
    shown = picture_of(seen, () if asked else None, now=NOON)
    assert words in shown.names_from
    assert f"pod names: {shown.names_from}" in trace_text(shown, wide=False, width=None)


def test_a_gpu_of_which_nothing_is_allocated_or_held_has_no_row() -> None:
    assert rows(facts((gpu(GPU_A), gpu(GPU_B, index=1)))) == []
