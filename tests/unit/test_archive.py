"""The step archive: what a run left behind becomes one folder that explains it, whatever went wrong."""

import hashlib
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from steps.archive.evidence import load_evidence
from steps.archive.names import parent_of, safe, task_of
from steps.contracts.document import Sample, encode
from steps.contracts.errors import Exit
from steps.contracts.ports import Rejected, Rejection
from steps.contracts.release import ReleaseVerdict
from steps.contracts.run_record import RunRecord
from steps.contracts.traced import GpuClass, Traced, TracedGpu
from tests.unit.archiving import (
    RECLAIM,
    SHARD,
    STOPPED_AT,
    Archived,
    device,
    judged,
    newcomer,
    receipt,
    record_node,
    release,
    running,
)
from tests.unit.judging import given, gpu, node, owner, stamp, waiter
from tests.unit.outside_double import FakeOutside


@pytest.fixture
def archived(tmp_path: Path) -> Archived:
    judged(tmp_path)
    return Archived(tmp_path)


def with_record(archived: Archived, record: RunRecord | None) -> Archived:
    archived.outside.run_reader.record = record
    return archived


def test_the_folder_of_a_whole_run_holds_everything_and_misses_nothing(archived: Archived) -> None:
    assert archived.archive() is Exit.DONE
    found = {str(path.relative_to(archived.evidence)) for path in archived.evidence.rglob("*") if path.is_file()}
    steps = ("nodes", "collect", "judge", "capture", "stop", "verify")
    assert found == {
        "run.json",
        "since.json",
        "summary.json",
        "report.html",
        "SHA256SUMS",
        *(f"shard-0/{name}.json" for name in ("facts", "cluster", "traced", "decisions", "continuity", "orders")),
        *(f"sessions/uid-a/{name}.json" for name in ("capture-node-a", "receipt", "release-node-a")),
        *(f"logs/pod-of-{step}.main.log" for step in steps),
        "logs/pod-of-judge.decide.log",
    }
    assert archived.summary().missing == ()


def test_the_summary_counts_what_happened(archived: Archived) -> None:
    summary = archived.summary()
    assert (summary.sessions_judged, summary.verdicts, summary.stops_acted, summary.releases) == (
        1,
        {"reclaim": 1},
        1,
        {"returned": 1},
    )


def test_the_phase_is_the_root_nodes_while_the_engine_still_runs_on_exit(archived: Archived) -> None:
    assert archived.summary().phase == "Succeeded"


def test_the_checksums_cover_every_file_but_themselves_and_are_right(archived: Archived) -> None:
    archived.archive()
    lines = (archived.evidence / "SHA256SUMS").read_text().splitlines()
    told = {path: digest for digest, path in (line.split("  ") for line in lines)}
    files = {str(p.relative_to(archived.evidence)): p for p in archived.evidence.rglob("*") if p.is_file()}
    assert told.keys() == files.keys() - {"SHA256SUMS"}
    assert all(hashlib.sha256(path.read_bytes()).hexdigest() == told[name] for name, path in files.items() if name in told)


def test_archiving_again_gives_the_same_bytes_and_no_second_event(archived: Archived) -> None:
    archived.archive()
    first = {path: path.read_bytes() for path in archived.evidence.rglob("*") if path.is_file()}
    archived.archive()
    assert {path: path.read_bytes() for path in archived.evidence.rglob("*") if path.is_file()} == first
    assert len(archived.outside.event_sink.recorded) == 1


def test_the_owner_is_told_that_the_memory_came_back_and_who_has_it(archived: Archived) -> None:
    archived.archive()
    ((name, reason, note, warning),) = archived.outside.event_sink.recorded
    assert (name, reason, warning) == ("a", "GPUMemoryReturned", False)
    assert "2.0 GiB" in note
    assert "team/b-1" in note


def test_the_owner_of_a_leak_is_warned_with_the_remedy(archived: Archived) -> None:
    leaked = running(released=release(device(ReleaseVerdict.LEAKED)))
    with_record(archived, leaked).archive()
    ((_, reason, note, warning),) = archived.outside.event_sink.recorded
    assert (reason, warning) == ("GPUMemoryLeaked", True)
    assert "SIGTERM, then SIGKILL" in note


@pytest.mark.parametrize("verdict", [ReleaseVerdict.PENDING, ReleaseVerdict.UNKNOWN])
def test_what_is_pending_or_unknown_is_claimed_to_nobody(archived: Archived, verdict: ReleaseVerdict) -> None:
    with_record(archived, running(released=release(device(verdict)))).archive()
    assert archived.outside.event_sink.recorded == []


def test_a_refused_event_fails_nothing_and_is_listed(archived: Archived) -> None:
    archived.outside.event_sink.refuses = Rejected(rejection=Rejection.FORBIDDEN, detail="no events for you")
    assert archived.summary().missing == ("Event GPUMemoryReturned on team/a: forbidden, no events for you",)


def test_a_refused_stop_is_counted_as_one_and_needs_no_release(archived: Archived) -> None:
    refused = running(without=("verify",), stopped=receipt(acted=False))
    summary = with_record(archived, refused).summary()
    assert (summary.stops_acted, summary.stops_refused, summary.missing) == (0, 1, ())


def test_a_stop_whose_proof_is_missing_is_said_so(archived: Archived) -> None:
    late = record_node(f"{RECLAIM}.verify(0:node-a)", "verify", phase="Failed", message="Pod was active beyond its deadline")
    summary = with_record(archived, running(late, without=("verify",))).summary()
    assert "verify(0:node-a) gave no release (Failed: Pod was active beyond its deadline)" in summary.missing
    assert "session uid-a: it was stopped, and nothing says whether the memory on node-a came back" in summary.missing


def test_an_ordered_stop_without_a_receipt_is_said_so(archived: Archived) -> None:
    summary = with_record(archived, running(without=("capture", "stop", "verify"))).summary()
    (line,) = [line for line in summary.missing if "left no receipt" in line]
    assert line.startswith("session uid-a: a stop was ordered (d-")


def test_a_run_whose_judge_never_ran_keeps_the_nodes_facts_and_names_the_shard(tmp_path: Path) -> None:
    gone = record_node(f"{SHARD}.judge", "judge", phase="Error", message="node lost")
    failed = running(gone, without=("judge", "capture", "stop", "verify"))
    archived = with_record(Archived(tmp_path), failed)
    summary = archived.summary()
    assert (archived.evidence / "collected" / "node-a.json").exists()
    assert "judge gave no stops (Error: node lost)" in summary.missing
    assert "shard 0: its judge published nothing" in summary.missing
    assert "Nothing was judged" in archived.report()


def test_a_silent_node_is_named_with_the_engines_words(archived: Archived) -> None:
    silent = record_node(f"{SHARD}.collect(1:node-b)", "collect", phase="Failed", message="Pod was active beyond its deadline")
    summary = with_record(archived, running(silent)).summary()
    assert "collect(1:node-b) gave no facts (Failed: Pod was active beyond its deadline)" in summary.missing


def test_without_the_engines_record_the_rest_is_written_and_the_step_says_could_not(archived: Archived) -> None:
    with_record(archived, None)
    assert archived.archive() is Exit.COULD_NOT
    summary = archived.summary()
    assert any(line.startswith("the engine's record of the run: the API server did not answer") for line in summary.missing)
    assert summary.sessions_judged == 1


def test_a_log_that_is_gone_is_missing_with_its_reason_unless_it_was_kept_before(archived: Archived) -> None:
    archived.archive()
    archived.outside.run_reader.logs = {}
    assert archived.summary().missing == ()
    (archived.evidence / "logs" / "pod-of-stop.main.log").unlink()
    assert archived.summary().missing == ("the log of pod-of-stop/main: pod pod-of-stop is gone",)


def test_a_damaged_output_is_a_gap_with_its_reason_and_not_the_end(archived: Archived) -> None:
    torn = record_node(f"{RECLAIM}.verify(0:node-a)", "verify", {"release": '{"parcel":"xz+base64"'})
    summary = with_record(archived, running(torn, without=("verify",))).summary()
    assert any(line.startswith("verify(0:node-a) is not a valid Parcel") for line in summary.missing)


def test_a_document_somebody_broke_is_named_and_the_rest_is_read(archived: Archived) -> None:
    (archived.evidence / "shard-0" / "traced.json").write_text("{")
    summary = archived.summary()
    assert "shard 0: traced.json is missing or broken" in summary.missing
    assert any(line.startswith("shard-0/traced.json is not a valid Traced") for line in summary.missing)
    assert summary.sessions_judged == 1


def test_a_retried_step_speaks_once_through_the_node_that_retries(archived: Archived) -> None:
    first = record_node(f"{SHARD}.collect(1:node-b)(0)", "collect", phase="Error", message="pod deleted")
    second = record_node(f"{SHARD}.collect(1:node-b)(1)", "collect", {"facts": "{}"})
    outer = msgspec.structs.replace(record_node(f"{SHARD}.collect(1:node-b)", "collect", {"facts": "{}"}), kind="Retry", pod=None)
    summary = with_record(archived, running(first, second, outer)).summary()
    assert not any("gave no facts" in line for line in summary.missing)


def test_a_foreign_name_cannot_leave_the_evidence_folder(archived: Archived) -> None:
    evil = msgspec.structs.replace(receipt(), owner=msgspec.structs.replace(owner(), uid="../../../../etc/x"))
    with_record(archived, running(stopped=evil)).archive()
    inside = [path for path in archived.folder.rglob("*") if "etc" in path.name]
    assert [path.parent for path in inside] == [archived.evidence / "sessions"]


def test_what_was_written_reads_back_as_documents(archived: Archived) -> None:
    archived.archive()
    evidence = load_evidence(archived.evidence)
    (session,) = evidence.sessions
    assert (session.receipt, session.releases) == (receipt(), (release(),))
    assert evidence.unreadable == ()


def test_a_pod_that_came_after_the_stop_is_named_as_the_taker_with_its_delay(archived: Archived) -> None:
    (hand_over,) = archived.summary().hand_overs
    assert (hand_over.pod, hand_over.namespace, hand_over.after_stop_s) == ("b-1", "team", 5.0)
    assert hand_over.sentence == "pod team/b-1 has it, running 5 s after the stop: no other GPU of node-a was free"


@pytest.mark.parametrize(
    "other",
    [
        gpu(1, to=()),
        gpu(1, allocated=Sample.measured((msgspec.structs.replace(given("GPU-node-a-1", "gone"), pod=None),))),
        gpu(1, allocated=Sample.absent("the kubelet's checkpoint is missing")),
    ],
    ids=["free", "booked for a pod that is gone", "not known"],
)
def test_with_another_gpu_that_may_be_free_the_takers_device_is_open(archived: Archived, other: TracedGpu) -> None:
    traced = Traced(stamp=stamp(), nodes=(node(gpu(), other),))
    (archived.evidence / "shard-0" / "traced.json").write_bytes(encode(traced))
    (hand_over,) = archived.summary().hand_overs
    assert hand_over.sentence == (
        "pod team/b-1 came to node-a and asked for 1 GPU, running 5 s after the stop; "
        "which device it was given, the API does not say"
    )


def test_a_taker_that_verify_saw_on_the_device_is_proven(archived: Archived) -> None:
    taken = device(ReleaseVerdict.TAKEN_OVER, taken_over_by="pod-b-1", gpu_class=GpuClass.ACTIVE)
    (hand_over,) = with_record(archived, running(released=release(taken))).summary().hand_overs
    assert hand_over.sentence == "pod team/b-1 has it, running 5 s after the stop, seen on the node"


def test_archive_waits_a_little_for_a_waiting_pod_to_start(archived: Archived) -> None:
    cluster = archived.outside.cluster_reader
    cluster.pods, cluster.waiting, cluster.later = [], [waiter("b-1")], {2: [newcomer()]}
    (hand_over,) = archived.summary().hand_overs
    assert hand_over.pod == "b-1"
    assert cluster.asked == 3


def test_a_free_gpu_that_nobody_takes_comes_with_the_schedulers_words_after_a_bounded_wait(archived: Archived) -> None:
    cluster, before = archived.outside.cluster_reader, archived.outside.clock.now()
    cluster.pods, cluster.waiting = [], [waiter("b-1")]
    (hand_over,) = archived.summary().hand_overs
    assert hand_over.pod_uid is None
    assert hand_over.sentence == (
        "free, not taken; 1 pod still waiting, first team/b-1: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    )
    assert archived.outside.clock.now() - before == timedelta(seconds=10)


def test_a_free_gpu_without_a_queue_says_that_nobody_waits_and_does_not_wait_either(archived: Archived) -> None:
    archived.outside.cluster_reader.pods = []
    (hand_over,) = archived.summary().hand_overs
    assert hand_over.sentence == "free; no pod waits for a GPU"
    assert archived.outside.cluster_reader.asked == 1


@pytest.mark.parametrize(
    "bystander",
    [
        newcomer("old", started=STOPPED_AT - timedelta(seconds=2)),
        newcomer("cpu-only", gpus=0),
        msgspec.structs.replace(newcomer("elsewhere"), node="node-b"),
        msgspec.structs.replace(newcomer("a-1"), uid="pod-a-1"),
    ],
    ids=["was there before", "asked for no GPU", "on another node", "the stopped session's own"],
)
def test_a_pod_that_cannot_have_taken_the_gpu_is_not_named(archived: Archived, bystander: object) -> None:
    archived.outside.cluster_reader.pods = [bystander]  # type: ignore[list-item]
    (hand_over,) = archived.summary().hand_overs
    assert hand_over.pod_uid is None


def test_two_devices_and_one_newcomer_with_one_gpu_leave_one_device_free(archived: Archived) -> None:
    two = release(device(), device(device="GPU-node-a-1"))
    hand_overs = with_record(archived, running(released=two)).summary().hand_overs
    assert [one.pod for one in hand_overs] == ["b-1", None]


def test_a_leaked_device_is_handed_over_to_nobody(archived: Archived) -> None:
    assert with_record(archived, running(released=release(device(ReleaseVerdict.LEAKED)))).summary().hand_overs == ()


def test_an_api_that_does_not_answer_leaves_the_taker_unknown_and_says_so(archived: Archived) -> None:
    archived.outside.cluster_reader.down = True
    summary = archived.summary()
    assert summary.missing == ("who got the GPUs that came back: the API server did not answer within 10 s",)
    assert "unknown: it was not asked who has it now" in archived.report()


@pytest.mark.parametrize(
    ("name", "parent", "task"),
    [
        ("run", "", "run"),
        ("run.nodes", "run", "nodes"),
        ("run.shard(0:a.example).collect(0:b.example)", "run.shard(0:a.example)", "collect(0:b.example)"),
        ("run.shard(0:(a.b)).judge(0)", "run.shard(0:(a.b))", "judge(0)"),
    ],
)
def test_a_node_name_is_cut_at_the_last_dot_outside_parentheses(name: str, parent: str, task: str) -> None:
    assert (parent_of(name), task_of(name)) == (parent, task)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..", ".", "", "a\x00b", "x" * 500, "a/b"])
def test_a_foreign_name_becomes_one_harmless_file_name(name: str) -> None:
    made = safe(name)
    assert made
    assert len(made) <= 200
    assert not set(made) & {"/", "\x00"}
    assert not made.startswith(".")


def test_a_run_without_stops_asks_nobody_who_took_what(tmp_path: Path) -> None:
    judged(tmp_path, decisions=())
    outside = FakeOutside()
    outside.run_reader.record = running(without=("capture", "stop", "verify"))
    Archived(tmp_path, outside).archive()
    assert outside.cluster_reader.asked == 0
