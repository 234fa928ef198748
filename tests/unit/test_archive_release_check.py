"""The evidence of a release check: its answer as a file, its devices in the report, and no complaint that nothing was judged."""

from pathlib import Path

import msgspec
import pytest

from steps.contracts.document import decode
from steps.contracts.errors import SourceUnavailable
from steps.contracts.release import Release, ReleaseVerdict
from steps.contracts.release_check import Answer, CheckedPod, ReleaseCheck
from steps.contracts.run_record import NodeRecord, RunRecord
from tests.unit.archiving import Archived, as_parcel, device, record_node, release, running
from tests.unit.judging import stamp

POD = CheckedPod(uid="uid-of-the-pod", namespace="team", name="notebook-0", node="node-a")


def check(answer: Answer = Answer.RETURNED, *, watched: bool = True) -> ReleaseCheck:
    leaked = answer is Answer.LEAKED
    proof = release(device(ReleaseVerdict.LEAKED if leaked else ReleaseVerdict.RETURNED)) if watched else None
    return ReleaseCheck(stamp=stamp("release-check"), pod=POD, answer=answer, sentence="nobody holds it", release=proof)


def of(folder: Path, *nodes: NodeRecord) -> Archived:
    """A run of release-check with these nodes."""
    archived = Archived(folder)
    run: RunRecord = msgspec.structs.replace(running(*nodes, without=("nodes", "collect", "judge", "capture", "stop", "verify")))
    archived.outside.run_reader.record = msgspec.structs.replace(run, template="release-check")
    archived.outside.run_reader.logs = {("pod-of-release-check", "main"): "answered\n"}
    return archived


def answered(found: ReleaseCheck, phase: str = "Succeeded") -> NodeRecord:
    return record_node("sweep-2.release-check", "release-check", {"check": as_parcel(found)}, phase=phase)


def test_the_answer_and_what_was_watched_become_files_and_nothing_is_missing(tmp_path: Path) -> None:
    archived = of(tmp_path, answered(check()))
    summary = archived.summary()
    kept = decode((archived.evidence / "release-check.json").read_bytes(), ReleaseCheck, "check")
    proof = decode((archived.evidence / "sessions/uid-of-the-pod/release-node-a.json").read_bytes(), Release, "release")
    assert (kept, proof, summary.missing, summary.releases) == (check(), check().release, (), {"returned": 1})


def test_evidence_that_may_not_be_looked_at_gets_a_sentence(tmp_path: Path) -> None:
    archived = of(tmp_path, answered(check()))
    archived.evidence.parent.mkdir(parents=True, exist_ok=True)
    archived.evidence.symlink_to(archived.evidence)
    with pytest.raises(SourceUnavailable, match=r"cannot be looked at: .*; give a folder that is readable"):
        archived.summary()


@pytest.mark.parametrize("answer", [Answer.RETURNED, Answer.LEAKED])
def test_the_report_says_whose_deletion_it_was_and_how_it_ended(tmp_path: Path, answer: Answer) -> None:
    report = of(tmp_path, answered(check(answer), "Failed" if answer is Answer.LEAKED else "Succeeded")).report()
    assert f"Deleted pod team/notebook-0 on node-a: {answer.value}." in report
    assert "Nothing was judged" not in report


def test_a_pod_that_still_lives_leaves_an_answer_without_devices(tmp_path: Path) -> None:
    archived = of(tmp_path, answered(check(Answer.STILL_LIVES, watched=False)))
    assert (archived.summary().missing, (archived.evidence / "sessions").exists()) == ((), False)


def test_a_pod_that_never_was_on_a_node_has_nothing_to_answer(tmp_path: Path) -> None:
    skipped = record_node("sweep-2.release-check", "release-check", phase="Skipped")
    archived = of(tmp_path, msgspec.structs.replace(skipped, pod=None))
    assert archived.summary().missing == ()
    assert "the deleted pod was on no node" in archived.report()


def test_a_probe_that_gave_no_answer_is_missed_by_name(tmp_path: Path) -> None:
    silent = record_node("sweep-2.release-check", "release-check", phase="Failed", message="Pod was active on the node longer")
    (gap,) = of(tmp_path, silent).summary().missing
    assert "release-check gave no check" in gap
    assert "longer" in gap
