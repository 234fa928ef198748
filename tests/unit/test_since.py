"""What archive makes of the shards' accounts: each pod once, who watched by the evidence of other runs, and what is not there."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steps.archive.since import accounted, departed_of, since_of
from steps.archive.watches import watches_of
from steps.contracts.continuity import Continuity, DepartedPod, Departure, Since, Watch
from steps.contracts.document import Document, Sample, decode, encode
from steps.contracts.release import ReleaseVerdict
from steps.contracts.release_check import Answer, CheckedPod, ReleaseCheck
from tests.unit.archiving import Archived, judged, release
from tests.unit.continuing import continuity, departed_pod
from tests.unit.judging import NOON, ago, stamp
from tests.unit.test_report import Page

RUN = "release-pod-a-1-4711"
NOT_THERE = "no evidence of a release check is there: nobody watched, or a check still runs"


def put(path: Path, document: Document) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(document))


def check(answer: Answer = Answer.RETURNED, uid: str = "pod-a-1", **of_pod: Any) -> ReleaseCheck:
    pod = msgspec.structs.replace(CheckedPod(uid=uid, namespace="team", name="a-1", node="node-a", deletion_told=True), **of_pod)
    return ReleaseCheck(stamp=stamp("release-check"), pod=pod, answer=answer, sentence="its words", release=release())


def watched(root: Path, *pods: DepartedPod, runs: tuple[str, ...] = ()) -> tuple[Watch, ...]:
    found, gaps = watches_of(root, pods or (departed_pod(),), runs)
    assert gaps == []
    return found["pod-a-1"]


def test_a_release_check_in_the_evidence_is_who_watched(tmp_path: Path) -> None:
    put(tmp_path / RUN / "release-check.json", check())
    (one,) = watched(tmp_path)
    assert (one.run, one.step, one.answer, one.watched_from) == (RUN, "release-check", Answer.RETURNED, release().watched_from)
    assert (
        "; verified by release-check release-pod-a-1-4711: returned; this sweep: returned"
        in accounted(departed_pod(), (one,)).sentence
    )


def test_no_evidence_of_a_check_is_no_claim_that_there_was_none(tmp_path: Path) -> None:
    assert watched(tmp_path) == ()
    assert NOT_THERE in accounted(departed_pod(), ()).sentence


def test_a_check_of_another_pod_whose_uid_begins_alike_proves_nothing(tmp_path: Path) -> None:
    put(tmp_path / "release-pod-a-11-4711" / "release-check.json", check(uid="pod-a-11"))
    put(tmp_path / "release-pod-a-1-1-4711" / "release-check.json", check(uid="pod-a-1-1"))
    put(tmp_path / "release-pod-a-1-4711" / "release-check.json", check(uid="pod-of-a-forged-name"))
    assert watched(tmp_path) == ()


@pytest.mark.parametrize("content", [None, b'{"half":'], ids=["none yet", "broken"])
def test_a_check_that_left_no_answer_verifies_nothing_and_is_named(tmp_path: Path, content: bytes | None) -> None:
    (tmp_path / RUN).mkdir()
    if content is not None:
        (tmp_path / RUN / "release-check.json").write_bytes(content)
    found, gaps = watches_of(tmp_path, [departed_pod()], ())
    (one,) = found["pod-a-1"]
    assert (one.answer, len(gaps)) == (None, 0 if content is None else 1)
    assert (
        f"; not verified: release-check {RUN} is there, and says: its evidence holds no answer"
        in accounted(departed_pod(), (one,)).sentence
    )


def test_a_check_that_found_the_pod_alive_watched_no_departure(tmp_path: Path) -> None:
    put(tmp_path / RUN / "release-check.json", check(Answer.STILL_LIVES))
    sentence = accounted(departed_pod(), watched(tmp_path)).sentence
    assert f"not verified: release-check {RUN} is there, and says: still lives, its words" in sentence


def test_of_two_checks_the_one_of_the_departure_speaks(tmp_path: Path) -> None:
    put(tmp_path / "release-pod-a-1-5000" / "release-check.json", check(Answer.LEAKED))
    put(tmp_path / RUN / "release-check.json", msgspec.structs.replace(check(Answer.STILL_LIVES), release=None))
    sentence = accounted(departed_pod(), watched(tmp_path)).sentence
    assert "verified by release-check release-pod-a-1-5000: leaked" in sentence


@pytest.mark.parametrize("answer", [Answer.UNKNOWN, Answer.PENDING])
def test_a_check_that_could_not_tell_verifies_nothing(tmp_path: Path, answer: Answer) -> None:
    put(tmp_path / RUN / "release-check.json", check(answer))
    sentence = accounted(departed_pod(), watched(tmp_path)).sentence
    assert f"; not verified: release-check {RUN} is there, and says: {answer.value}, its words" in sentence


@pytest.mark.parametrize(
    ("found", "seen_after_s", "words"),
    [
        (check(node="node-b"), 0, "it looked at node-b, and the pod was on node-a"),
        (check(deletion_told=False), 0, "what started it did not say that the pod was being deleted"),
        (check(), 61, "UTC, and the pod was seen after that"),
    ],
    ids=["elsewhere", "no deletion", "too early"],
)
def test_a_check_that_cannot_have_seen_the_departure_verifies_nothing(
    tmp_path: Path, found: ReleaseCheck, seen_after_s: float, words: str
) -> None:
    """Whoever may submit can name a run after any pod; and an event of a living pod says nothing of its end."""
    put(tmp_path / RUN / "release-check.json", found)
    pod = departed_pod(last_seen_at=release().watched_until + timedelta(seconds=seen_after_s))
    (one,) = watched(tmp_path, pod)
    assert one.answer is None
    assert f"{words}; it found: returned, its words" in one.sentence
    assert "; not verified: release-check" in accounted(pod, (one,)).sentence


def test_a_stop_that_was_verified_before_the_pod_was_last_seen_verifies_nothing(tmp_path: Path) -> None:
    put(tmp_path / "sweep-1" / "sessions" / "uid-a" / "release-node-a.json", release())
    pod = departed_pod(last_seen_at=release().watched_until + timedelta(seconds=61))
    (one,) = watched(tmp_path, pod, runs=("sweep-1",))
    assert one.answer is None


def test_a_minute_between_the_clocks_takes_no_proof_away(tmp_path: Path) -> None:
    put(tmp_path / RUN / "release-check.json", check())
    (one,) = watched(tmp_path, departed_pod(last_seen_at=release().watched_until + timedelta(seconds=60)))
    assert one.answer is Answer.RETURNED


def pipe(path: Path) -> None:
    path.parent.mkdir()
    os.mkfifo(path)


def loop(path: Path) -> None:
    path.parent.mkdir()
    path.symlink_to(path)


def device(path: Path) -> None:
    path.parent.mkdir()
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("make", "words"),
    [(pipe, "no ordinary file"), (device, "no ordinary file"), (loop, "cannot be read")],
    ids=["pipe", "device", "loop"],
)
def test_what_is_no_file_is_named_and_never_waited_for(tmp_path: Path, make: Callable[[Path], None], words: str) -> None:
    make(tmp_path / RUN / "release-check.json")
    found, (gap,) = watches_of(tmp_path, [departed_pod()], ())
    assert ([one.answer for one in found["pod-a-1"]], words in gap) == ([None], True)


def test_a_run_whose_folder_cannot_be_listed_is_named(tmp_path: Path) -> None:
    (tmp_path / "sweep-1").mkdir()
    (tmp_path / "sweep-1" / "sessions").symlink_to(tmp_path / "sweep-1" / "sessions")
    found, (gap,) = watches_of(tmp_path, [departed_pod()], ("sweep-1",))
    assert (found["pod-a-1"], gap.startswith("sweep-1/sessions cannot be listed: ")) == ((), True)


def test_a_folder_that_no_run_can_be_called_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"release-pod-a-1-\xff")).mkdir()
    (tmp_path / "release-pod-a-1-").mkdir()
    (tmp_path / "release-").mkdir()
    assert watched(tmp_path) == ()


def test_what_an_earlier_sweep_stopped_was_watched_by_its_verify(tmp_path: Path) -> None:
    put(tmp_path / "sweep-1" / "sessions" / "uid-a" / "release-node-a.json", release())
    (one,) = watched(tmp_path, runs=("sweep-1",))
    assert (one.run, one.step, one.answer) == ("sweep-1", "verify", Answer.RETURNED)
    assert watched(tmp_path, runs=("sweep-0",)) == ()
    elsewhere = departed_pod(node="node-b")
    assert watched(tmp_path, elsewhere, runs=("sweep-1",)) == ()


def test_a_run_or_a_uid_that_is_no_file_name_leads_nowhere(tmp_path: Path) -> None:
    put(tmp_path / "outside" / "sessions" / "uid-a" / "release-node-a.json", release())
    (tmp_path / "evidence").mkdir()
    found, gaps = watches_of(tmp_path / "evidence", [departed_pod(), departed_pod(uid="../../etc/[*]")], ("../outside",))
    assert (dict(found), gaps) == ({"pod-a-1": (), "../../etc/[*]": ()}, [])


def test_evidence_that_cannot_be_listed_is_said(tmp_path: Path) -> None:
    found, gaps = watches_of(tmp_path / "nowhere", [departed_pod()], ())
    assert (found, gaps) == ({}, ["the evidence of other runs cannot be listed: No such file or directory"])


# --- the shards put together


def out_of_sight(node: str = "node-a") -> DepartedPod:
    return departed_pod(departure=Departure.OUT_OF_SIGHT, answer=ReleaseVerdict.UNKNOWN, remembered=True, node=node)


def joined(*shards: Continuity) -> Since:
    return since_of("sweep-2", shards, {}, (), stamp("archive"))


def test_a_pod_that_one_shard_lost_sight_of_and_another_answers_for_is_told_once_with_the_answer() -> None:
    seen, unseen = continuity(departed_pod(node="node-b")), continuity(out_of_sight(node="node-b"), shard=1)
    for shards in ((seen, unseen), (unseen, seen)):
        assert [one.answer for one in departed_of(shards)] == [ReleaseVerdict.RETURNED]


def test_a_pod_that_one_shard_lost_sight_of_and_another_sees_alive_has_not_departed() -> None:
    found = joined(continuity(out_of_sight()), continuity(shard=1, still_there=("pod-a-1",), earlier_run="sweep-1"))
    assert (found.departed, found.still_there) == ((), 1)


def test_a_pod_that_no_shard_sees_is_told_once_and_unknown() -> None:
    (one,) = departed_of([continuity(out_of_sight()), continuity(out_of_sight(), shard=1)])
    assert one.answer is ReleaseVerdict.UNKNOWN
    assert accounted(one, ()).sentence.startswith("not looked for, since its node was not among those asked, between")


def test_the_run_says_which_sweeps_it_follows_and_how_many_of_its_shards_know_of_none() -> None:
    found = joined(continuity(departed_pod(), earlier_run="sweep-1"), continuity(shard=1))
    assert found.sentence == (
        "since sweep-1: 0 pods still there, 1 departed (1 returned); no earlier look is known of 2 nodes; "
        "1 of 2 shards remember no earlier sweep"
    )
    assert joined(continuity()).sentence == "no earlier sweep is remembered: nothing is said of the time before this one"
    assert joined().sentence == "no shard gave an account of the time before this run"


def test_the_run_says_the_longest_time_without_a_look_and_which_nodes_it_is_open_for() -> None:
    window = continuity().nodes[0]
    short, long, silent = (
        msgspec.structs.replace(window, node=name, unwatched_from=since, unwatched_until=until)
        for name, since, until in (("a", ago(minutes=5), NOON), ("b", ago(minutes=40), NOON), ("c", ago(minutes=50), None))
    )
    found = joined(
        continuity(earlier_run="sweep-1", nodes=(short, long)), continuity(shard=1, earlier_run="sweep-1", nodes=(silent,))
    )
    assert found.sentence == (
        "since sweep-1: 0 pods still there, 0 departed; no sweep looked for 40 min at the most; "
        "1 node did not answer, unwatched still"
    )
    assert [node.node for node in found.nodes] == ["a", "b", "c"]


def test_pods_without_room_are_a_gap_of_the_run() -> None:
    assert joined(continuity(not_remembered=3)).gaps == (
        "shard 0 has no room to remember 3 pods: the next sweep does not miss them",
    )


# --- in the evidence


@pytest.fixture
def archived(tmp_path: Path) -> Archived:
    judged(tmp_path)
    return Archived(tmp_path)


def since(archived: Archived) -> Since:
    archived.archive()
    return decode((archived.evidence / "since.json").read_bytes(), Since, "since")


def follows(archived: Archived, *departed: DepartedPod) -> None:
    window = msgspec.structs.replace(continuity().nodes[0], unwatched_from=ago(minutes=10))
    put(archived.evidence / "shard-0" / "continuity.json", continuity(*departed, earlier_run="sweep-1", nodes=(window,)))
    put(archived.evidence.parent / "sweep-1" / "shard-0" / "continuity.json", continuity())


def test_summary_and_report_say_what_became_of_departed_pods(archived: Archived) -> None:
    follows(archived, departed_pod(), departed_pod("b-1", answer=ReleaseVerdict.LEAKED, sentence="PID 4001 still holds GPU 0"))
    put(archived.evidence.parent / RUN / "release-check.json", check())
    summary = archived.summary()
    assert summary.since == "since sweep-1: 0 pods still there, 2 departed (1 returned and 1 leaked); no sweep looked for 10 min"
    assert summary.departed == {"returned": 1, "leaked": 1}
    text = Page(archived.report()).text
    assert "Since the earlier sweep Since sweep-1: 0 pods still there, 2 departed" in text
    assert f"verified by release-check {RUN}: returned" in text
    assert text.index("leaked, PID 4001 still holds GPU 0") < text.index("returned, nothing of it is left on GPU 0"), (
        "gravest first"
    )


def test_a_check_that_ends_late_is_found_when_archive_runs_again(archived: Archived) -> None:
    follows(archived, departed_pod())
    assert since(archived).departed[0].watched == ()
    put(archived.evidence.parent / RUN / "release-check.json", check())
    assert [one.run for one in since(archived).departed[0].watched] == [RUN]


def test_names_of_the_cluster_are_text_in_the_report(archived: Archived) -> None:
    follows(archived, departed_pod("<script>alert(1)</script>"))
    assert "<script>" not in archived.report()


def test_an_earlier_run_without_an_account_in_the_evidence_is_a_gap(archived: Archived) -> None:
    put(archived.evidence / "shard-0" / "continuity.json", continuity(earlier_run="sweep-1"))
    (gap,) = since(archived).gaps
    assert gap.startswith("shard 0 remembers run sweep-1, whose account of shard 0 is not in the evidence: it was deleted")


def test_a_shard_that_published_nothing_is_a_gap_and_missing(archived: Archived) -> None:
    (archived.evidence / "shard-0" / "continuity.json").unlink()
    assert since(archived).gaps == (
        "shard 0 gave no account: what became of the pods that earlier sweeps saw there is not known by this one",
    )
    assert "shard 0: continuity.json is missing or broken" in archived.summary().missing


def test_a_window_says_unknown_as_unknown(archived: Archived) -> None:
    window = msgspec.structs.replace(
        continuity().nodes[0], unwatched_from=ago(hours=1), unwatched_until=None, unexplained_bytes=Sample.absent("silent")
    )
    put(archived.evidence / "shard-0" / "continuity.json", continuity(nodes=(window,)))
    assert "unknown: absent: silent" in Page(archived.report()).text
    assert since(archived).stamp.made_at == NOON
