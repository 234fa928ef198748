"""The demo, run as a person runs it: one command, no terminal, no colour, 80 columns."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from steps.archive.evidence import RunEvidence, load_evidence
from steps.cli import main
from steps.commands.demo_progress import Progress
from steps.contracts.document import Origin
from steps.contracts.release import ReleaseVerdict
from steps.contracts.run_record import NodeRecord

VERDICTS = {
    "speech/carol-lab": "reclaim",
    "speech/dave-vscode": "unknown",
    "vision/alice-train": "keep",
    "vision/bob-notebook": "reclaim",
    "vision/dora-finetune": "keep",
    "vision/erin-jupyter": "keep",
    "vision/frank-eval": "keep",
}


def command(folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GPU_RECLAIM_")}
    argv = [sys.executable, "-m", "steps.cli", "demo", f"--folder={folder}", "--no-color"]
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=110, check=False, env={**clean, "COLUMNS": "80", **environment}
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """(its folder, what it printed). One run serves all tests of this module."""
    folder = tmp_path_factory.mktemp("demo") / "here"
    result = command(folder)
    assert (result.returncode, result.stderr) == (0, "")
    return folder, result.stdout


def evidence_of(folder: Path, run: str = "sweep-2") -> RunEvidence:
    return load_evidence(folder / "evidence" / run)


def test_every_session_gets_its_verdict(demo: tuple[Path, str]) -> None:
    shown = dict(re.findall(r"^ (\S+/\S+) +\d+ +([a-z]+) ", demo[1], re.MULTILINE))
    assert shown == VERDICTS


def test_the_first_sweep_under_a_new_policy_stops_nothing(demo: tuple[Path, str]) -> None:
    first = evidence_of(demo[0], "sweep-1")
    assert (first.sessions, [d for d in first.decisions if d.acts]) == ((), [])
    assert "Nothing was stopped" in demo[1]


def test_the_idle_sessions_memory_is_proven_back_and_the_waiter_is_named(demo: tuple[Path, str]) -> None:
    evidence = evidence_of(demo[0])
    names = {decision.owner.uid: decision.owner.name for decision in evidence.decisions}
    (device,) = [
        device
        for session in evidence.sessions
        if names[session.session_uid] == "bob-notebook"
        for release in session.releases
        for device in release.devices
    ]
    before, after = device.used_before_bytes.known(), device.used_after_bytes.known()
    assert device.verdict in (ReleaseVerdict.RETURNED, ReleaseVerdict.TAKEN_OVER)
    assert before is not None
    assert after is not None
    assert (before > 39 * 1024**3, device.last_seen_held is not None, device.first_seen_free is not None) == (True, True, True)
    assert after < before
    assert evidence.summary is not None
    taken = [hand_over.pod for hand_over in evidence.summary.hand_overs if hand_over.device == device.device]
    assert ["dora-finetune" in (pod or "") for pod in taken] == [True]


def test_the_leaks_are_named_with_a_remedy(demo: tuple[Path, str]) -> None:
    leaks = demo[1].partition("Leaks")[2]
    assert re.findall(r"GPU (\d) of gpu-l40s-1: (\S+ GiB) held, (\S+)", leaks) == [
        ("2", "18.0 GiB", "POD_GONE_LIVE"),
        ("3", "11.0 GiB", "GHOST_CONTEXT"),
    ]
    assert leaks.count("remedy: ") == 2


def test_nothing_is_wider_than_the_terminal_but_the_lines_one_copies(demo: tuple[Path, str]) -> None:
    wide = [line.split()[0] for line in demo[1].splitlines() if len(line.rstrip()) > 80]
    assert set(wide) <= {"Report", "Undo"}


def test_the_report_is_there_and_every_document_says_simulated(demo: tuple[Path, str]) -> None:
    folder, text = demo
    report = re.search(r"^Report +(\S+)$", text, re.MULTILINE)
    assert report is not None
    assert (folder / report[1]).read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    evidence = evidence_of(folder)
    assert (evidence.unreadable, evidence.summary is not None and evidence.summary.missing) == ((), ())
    stamped = [json.loads(path.read_bytes()) for path in (folder / "evidence").rglob("*.json")]
    origins = {one["stamp"]["origin"] for one in stamped if isinstance(one, Mapping) and "stamp" in one}
    assert origins == {Origin.SIMULATED.value}


def test_a_folder_that_is_not_the_demos_own_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    assert main(["demo", f"--folder={tmp_path}"]) == 2
    assert str(tmp_path) in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def node(phase: str, template: str = "collect", kind: str = "Pod") -> NodeRecord:
    return NodeRecord(
        name="n", template=template, kind=kind, phase=phase, message=None, started_at=None, finished_at=None, inputs={}, outputs={}
    )


def test_the_progress_line_counts_pods_and_says_what_failed() -> None:
    progress = Progress()
    for one in (node("Running"), node("Running"), node("Succeeded"), node("Failed"), node("Running", "judge", "Container")):
        progress.tell(one)
    line = progress.line()
    assert line.plain == "  collect 2"
    assert [str(span.style) for span in line.spans if span.style] == ["red"]
