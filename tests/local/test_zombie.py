"""The rendered experiment on the simulator: all scenarios, injected faults, a GPU in use, and a run that is stopped half-way."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from experiments.zombie.recording import DriveRecord, WatchRecording
from experiments.zombie.report.assemble import recorded, scenario_result
from experiments.zombie.results import Figure, ScenarioResult, Word
from experiments.zombie.scenarios import Row
from sim.api import StateFileApi
from sim.clock import SimulatedClock
from sim.world.state import SimProcess
from sim.world.store import StateFile
from sim.zombie.partner import ONLOOKER, SimulatedPartner
from steps.cli import main
from steps.commands.experiment_local import LocalRun, fresh_world, run_here
from steps.contracts.document import Origin, decode
from steps.contracts.errors import BadInput, Exit
from steps.contracts.parcel import pack, unpack
from steps.contracts.run_record import NodeRecord, RunRecord
from workflows import MANIFESTS
from workflows.local import load

QUICK = {"grace-s": "6", "prestop-wait-s": "3", "observe-s": "2"}
PODS = "/api/v1/namespaces/gpu-zombie-test/pods"


def run(folder: Path, injected: str = "", **parameters: str) -> LocalRun:
    given = {**QUICK, **{name.replace("_", "-"): value for name, value in parameters.items()}}
    return run_here(folder, "zombie", given, lambda _: None, injected=injected)


def words(one: ScenarioResult) -> Mapping[Row, Word]:
    return {verdict.row: verdict.measured for verdict in one.verdicts}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> LocalRun:
    """All scenarios, twice each."""
    return run(tmp_path_factory.mktemp("zombie"), repetitions="2")


TRUTH = {
    "s1-stays": (Word.YES, Word.AT_GRACE, Word.NO),
    "s1-execs": (Word.NO, Word.AT_GRACE, Word.NO),
    "s2": (Word.YES, Word.WITH_PID1, Word.NO),
    "s3": (Word.YES, Word.BY_HOOK, Word.NO),
    "s4": (Word.YES, Word.LEFT, Word.YES),
}
"""Reaped, the orphan's end, clean-up: as on a real kernel."""


def test_the_simulator_obeys_the_truth_table_of_a_real_kernel(whole: LocalRun) -> None:
    found = {
        one.scenario.value: tuple(words(one)[row] for row in (Row.REAPED, Row.ORPHAN, Row.CLEAN_UP))
        for one in whole.results.scenarios
    }
    assert found == TRUTH


def test_nothing_stays_and_two_repetitions_agree(whole: LocalRun) -> None:
    for one in whole.results.scenarios:
        assert (one.problem, words(one)[Row.AFTER_DELETION]) == (None, Word.FREE)
        assert {(v.n, v.of) for v in one.verdicts} == {(2, 2)}


def test_every_document_says_that_it_was_simulated(whole: LocalRun) -> None:
    assert whole.results.stamp.origin is Origin.SIMULATED
    assert "Simulated." in (whole.folder / "report.html").read_text(encoding="utf-8")


def test_moments_are_no_finer_than_the_looks(whole: LocalRun) -> None:
    for one in whole.results.scenarios:
        assert one.longest_gap_s is not None
        assert one.longest_gap_s < 0.5
        spans = [t.within for rep in one.repetitions for t in rep.timed if t.figure is Figure.FREE_AFTER_DELETE]
        assert [span for span in spans if span is None or span.by_s - span.after_s > 0.5] == []


def test_the_seeds_files_hold_both_shell_starts_and_all_repetitions(whole: LocalRun) -> None:
    for name in (
        "observe-after-spawn",
        "observe-after-kill",
        "gpu-pod-trace",
        "nvidia-smi-before-delete",
        "nvidia-smi-after-delete",
    ):
        text = (whole.folder / "results/scenario-1" / f"{name}.log").read_text(encoding="utf-8")
        assert len(re.findall(r"^== no fix, .*, repetition [12] ==$", text, re.MULTILINE)) == 4, name
        assert "no full look was made" not in text


def test_the_trace_has_the_seeds_columns_and_names_the_pod(whole: LocalRun) -> None:
    text = (whole.folder / "results/scenario-2/gpu-pod-trace.log").read_text(encoding="utf-8")
    assert re.search(r"^PID +STATE +GPU_MEM +NSMI +QOS +POD +NAMESPACE +CONTAINER$", text, re.MULTILINE)
    assert re.search(r"^\d+ +S +2048 MiB +yes +\w+ +gpu-zombie-tini +gpu-zombie-test +session$", text, re.MULTILINE)


def test_the_comparison_names_every_difference_with_its_reason(whole: LocalRun) -> None:
    text = (whole.folder / "results/comparison.md").read_text(encoding="utf-8")
    assert "| zombies reaped | *no* / **yes** (2 of 2) (differs) | *no* / **no** (2 of 2) |" in text
    assert "A shell that stays PID 1 waits for its foreground command" in text


def test_the_report_shows_the_numbers_of_the_results(whole: LocalRun) -> None:
    html = (whole.folder / "report.html").read_text(encoding="utf-8")
    for one in whole.results.scenarios:
        for timed in one.repetitions[0].timed:
            if timed.within is not None:
                assert f"{timed.within.after_s:.2f} to {timed.within.by_s:.2f} s" in html
    assert html.count("<svg") == 10
    assert not re.search(r"(src|href)=|<script|@import|url\(", html), "the report fetches nothing"


def test_injected_memory_without_a_process_is_a_ghost_with_a_remedy_that_nobody_carries_out(tmp_path: Path) -> None:
    (one,) = run(tmp_path, injected="ghost", scenarios="s2", observe_s="6").results.scenarios
    assert (words(one)[Row.KILLED_CONTEXT], words(one)[Row.AFTER_DELETION]) == (Word.YES, Word.STAYS)
    assert [("GHOST_CONTEXT" in remedy) for remedy in one.repetitions[0].remedies] == [True]


def test_a_worker_that_is_stuck_in_the_driver_is_named_and_the_failure_hides_no_other_scenario(tmp_path: Path) -> None:
    results = run(tmp_path, injected="stuck", scenarios="all", shell_start="stays").results
    first, *others = results.scenarios
    assert words(first)[Row.AFTER_DELETION] is Word.STAYS
    assert [("STUCK_D" in remedy) for remedy in first.repetitions[0].remedies] == [True]
    assert [one.scenario.value for one in others] == ["s2", "s3", "s4"]
    assert ["nothing was begun" in (one.problem or "") for one in others] == [True, True, True]


def test_memory_that_the_killed_workers_forked_children_keep_is_seen(tmp_path: Path) -> None:
    (one,) = run(tmp_path, scenarios="s2", worker="multiprocessing").results.scenarios
    assert (words(one)[Row.KILLED_CONTEXT], words(one)[Row.AFTER_DELETION]) == (Word.YES, Word.FREE)


def test_a_deployments_new_pod_is_recognised_and_cleaned_up_with_it(tmp_path: Path) -> None:
    (one,) = run(tmp_path, scenarios="s2", session="deployment").results.scenarios
    assert one.problem is None
    assert "ReplicaSet/" in one.repetitions[0].recreated[0]
    assert StateFileApi(tmp_path / "zombie.json").list(PODS).body["items"] == []


def test_a_run_that_is_stopped_half_way_cleans_up_and_leaves_its_record(tmp_path: Path) -> None:
    """drive alone, without watch: it acts as soon as watch's file says ready."""
    state = tmp_path / "zombie.json"
    fresh_world(state)
    state.with_name(".stopped.s2.watch").write_bytes(b"ready\n")
    argv = [
        sys.executable,
        "-m",
        "steps.cli",
        "step",
        "drive",
        "--run=stopped",
        "--scenario=s2",
        "--node=gpu-sim-1",
        "--observe-s=60",
    ]
    environment = {**os.environ, "GPU_RECLAIM_SIMULATOR": str(state), "GPU_RECLAIM_NODE": "gpu-sim-1"}
    drive = subprocess.Popen([*argv, "--backend=simulated", f"--record-to={tmp_path / 'record'}"], env=environment)
    deadline = time.monotonic() + 20
    while not StateFileApi(state).list(PODS).body["items"]:
        assert time.monotonic() < deadline, "drive made no session"
        time.sleep(0.01)
    drive.send_signal(signal.SIGTERM)
    assert drive.wait(timeout=30) == Exit.COULD_NOT
    assert StateFileApi(state).list(PODS).body["items"] == []
    assert (tmp_path / "record").exists()


def test_what_was_measured_before_a_stop_counts_and_the_half_repetition_says_so(tmp_path: Path) -> None:
    over = threading.Event()

    def stop() -> None:
        """Tell drive to end as soon as its second session is there. The world does not move while this looks."""
        state = tmp_path / "zombie.json"
        api, clock = StateFileApi(state), SimulatedClock(state)
        with closing(SimulatedPartner(state, "zombie.s2", ONLOOKER)) as here:
            while not over.is_set():
                labels = [one["metadata"]["labels"] for one in api.list(PODS).body["items"]]
                if any(one.get("gpu-reclaim.dev/session") == "s2-2" for one in labels):
                    os.kill(_drive_of(tmp_path), signal.SIGTERM)
                    return
                next_at = clock.now() + timedelta(seconds=0.5)
                here.wait_until(next_at)
                while clock.now() < next_at and not over.wait(0.002):
                    pass

    def tell(node: NodeRecord) -> None:
        if node.template == "drive" and not watching:
            watching.append(threading.Thread(target=stop))
            watching[0].start()

    watching: list[threading.Thread] = []
    done = run_here(tmp_path, "zombie", {**QUICK, "scenarios": "s2", "observe-s": "10", "repetitions": "3"}, tell)
    over.set()
    watching[0].join()
    (one,) = done.results.scenarios
    assert {(v.row, v.measured, v.n, v.of) for v in one.verdicts} >= {
        (Row.ORPHAN, Word.WITH_PID1, 1, 2),
        (Row.AFTER_DELETION, Word.FREE, 1, 2),
    }
    assert one.problem is not None
    assert "repetition 2: the run was stopped half-way" in one.problem
    assert "repetition 3 was not begun" in one.problem
    assert "0 of 1 scenarios were measured in every repetition" in (done.folder / "report.html").read_text(encoding="utf-8")
    assert StateFileApi(tmp_path / "zombie.json").list(PODS).body["items"] == []


def _drive_of(folder: Path) -> int:
    """The drive that works on this folder's world."""
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0") if process.name.isdecimal() else []
            if b"drive" in words and os.fsencode(folder) in (process / "environ").read_bytes():
                return int(process.name)
        except OSError:
            continue
    raise AssertionError("no drive runs here")


def test_a_gpu_in_use_is_not_touched(tmp_path: Path) -> None:
    manifest = load(MANIFESTS / "zombie.yaml")
    assert manifest.name == "zombie-experiment"
    (one,) = _with_a_tenant(tmp_path).results.scenarios
    assert one.problem is not None
    assert "nothing was begun" in one.problem
    with StateFile(tmp_path / "zombie.json").open() as world:
        assert [process.name for process in world.nodes["gpu-sim-1"].processes] == ["tenant"]


def _with_a_tenant(folder: Path) -> LocalRun:
    """A process of the host is on the GPU before anything begins: put in at the first change of a node."""
    put_in: list[bool] = []

    def tell(_: object) -> None:
        if not put_in:
            put_in.append(True)
            with StateFile(folder / "zombie.json").open() as world:
                node = world.nodes["gpu-sim-1"]
                node.processes.append(
                    SimProcess(
                        pid=777,
                        start_time_ticks=1,
                        pod_uid=None,
                        container_id=None,
                        name="tenant",
                        executable="/usr/bin/tenant",
                        command="tenant",
                        gpu_uuid=node.gpus[0].uuid,
                        memory_bytes=1 << 30,
                    )
                )

    return run_here(folder, "zombie", {**QUICK, "scenarios": "s2"}, tell)


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["experiment", "zombie"], "runs here with --local only"),
        (["experiment", "zombie", "--local", "-p", "repetitions"], "is no NAME=VALUE"),
    ],
)
def test_a_wrong_call_is_one_sentence(argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == Exit.BAD_INPUT
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(("name", "value"), [("repetitions", "99"), ("grace_s", "-5"), ("memory_mib", "999999999999")])
def test_a_value_that_a_step_would_refuse_is_refused_before_anything_runs(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(BadInput, match=name.replace("_", "-")):
        run(tmp_path, **{name: value})
    assert not (tmp_path / "evidence").exists()


@pytest.mark.parametrize("damaged", ["drive", "watch"])
@pytest.mark.parametrize("kind", ["cut short", "of another scenario", "of another node"])
def test_a_recording_that_is_damaged_or_foreign_is_said_and_hides_no_other_scenario(
    whole: LocalRun, damaged: str, kind: str
) -> None:
    record = decode((whole.folder / "run.json").read_bytes(), RunRecord, "run.json")
    at = {(one.template, one.inputs.get("scenario")): place for place, one in enumerate(record.nodes)}
    nodes = list(record.nodes)
    mine = nodes[at[damaged, "s2"]]
    (name, text), *_ = mine.outputs.items()
    texts = {
        "cut short": lambda: text[: len(text) // 2],
        "of another scenario": lambda: nodes[at[damaged, "s4"]].outputs[name],
        "of another node": lambda: _of_another_node(text, damaged),
    }
    nodes[at[damaged, "s2"]] = replace(mine, outputs={**mine.outputs, name: texts[kind]()})
    found = {one.scenario.id.value: scenario_result(one) for one in recorded(replace(record, nodes=tuple(nodes)))}
    assert "left no record" in (found["s2"].problem or "")
    assert set(words(found["s2"]).values()) == {Word.UNKNOWN}
    assert {name: one.problem for name, one in found.items() if name != "s2"} == dict.fromkeys(TRUTH.keys() - {"s2"})


def _of_another_node(text: str, damaged: str) -> str:
    if damaged == "watch":
        return pack(replace(unpack(text, WatchRecording, "watch"), node="another")).decode()
    drive = unpack(text, DriveRecord, "drive")
    return pack(replace(drive, settings=replace(drive.settings, node="another"))).decode()
