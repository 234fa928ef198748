"""`gpu-reclaim run --local`: what a person sees, and what is left after an interruption."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from steps.cli import main
from tests.conformance import compare
from tests.local.test_release_check import CLEAN, deleted
from workflows import MANIFESTS

SLOW = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "WorkflowTemplate",
    "metadata": {"name": "slow"},
    "spec": {
        "entrypoint": "wait",
        "arguments": {"parameters": [{"name": "seconds", "value": "60"}]},
        "templates": [
            {
                "name": "wait",
                "container": {
                    "command": ["python3", "-c", "import sys, time; print('here', flush=True); time.sleep(float(sys.argv[1]))"],
                    "args": ["{{workflow.parameters.seconds}}", "MARK"],
                },
            }
        ],
    },
}


def flags(folder: Path) -> list[str]:
    (folder / "policy.yaml").write_text("mode: observe\n", encoding="utf-8")
    return ["--local", f"--evidence={folder / 'evidence'}", f"--policy={folder / 'policy.yaml'}"]


def test_without_local_it_says_what_to_use_on_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "sweep.yaml"]) == 2
    assert "argo submit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--local"], "needs --evidence DIR and --policy FILE"),
        (["--local", "--evidence=e", "--policy=p", "-p", "dry-run"], "is no NAME=VALUE"),
    ],
)
def test_a_wrong_call_gets_one_sentence(given: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "sweep.yaml", *given]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"), [("kind: Pod", "no WorkflowTemplate"), ("a: [", "not YAML"), (None, "cannot be read")]
)
def test_a_file_that_is_no_manifest_gets_one_sentence(
    content: str | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = tmp_path / "m.yaml"
    if content is not None:
        manifest.write_text(content, encoding="utf-8")
    assert main(["run", str(manifest), *flags(tmp_path)]) == 2
    assert words in capsys.readouterr().err


def test_json_output_is_the_record_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(compare.template_path("skipped-fanout")), *flags(tmp_path), "-o", "json"]) == 0
    shown = capsys.readouterr()
    assert (json.loads(shown.out)["phase"], shown.err) == ("Succeeded", "")


def test_a_failed_run_ends_with_exit_code_one_and_says_where_its_logs_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(compare.template_path("on-exit")), *flags(tmp_path), "--name=r1"]) == 1
    shown = capsys.readouterr()
    assert shown.out == f"r1: Failed; record and logs in {tmp_path / 'evidence.runs'}\n"
    assert "Succeeded onExit" in shown.err


def test_a_run_that_archived_says_where_its_report_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A release check of a pod that never was on a node: no probe runs, and its evidence says so."""
    place, uid = deleted(tmp_path, CLEAN)
    command = ["run", str(MANIFESTS / "release-check.yaml"), *flags(tmp_path), f"--simulator={place.state}", f"-puid={uid}"]
    assert main([*command, "--name=r1"]) == 0
    report = tmp_path / "evidence" / "r1" / "report.html"
    assert capsys.readouterr().out.splitlines()[-1] == f"report: {report}"
    assert report.is_file()


def test_a_step_that_refuses_its_input_is_heard_without_looking_into_its_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = tmp_path / "refusing.yaml"
    say = "import sys; print('gpu-reclaim: line 3 is wrong; give a number', file=sys.stderr); sys.exit(2)"
    container = {"command": ["python3", "-c", say], "args": []}
    spec = {"entrypoint": "refuse", "templates": [{"name": "refuse", "container": container}]}
    manifest.write_text(yaml.safe_dump({**SLOW, "spec": spec}), encoding="utf-8")
    assert main(["run", str(manifest), *flags(tmp_path), "--name=r1"]) == 1
    shown = capsys.readouterr()
    assert shown.err.splitlines()[-1] == "gpu-reclaim: line 3 is wrong; give a number"
    assert shown.out.startswith("r1: Failed;")


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_process_and_can_be_started_again(sent: signal.Signals, tmp_path: Path) -> None:
    manifest = tmp_path / "slow.yaml"
    manifest.write_text(yaml.safe_dump(SLOW).replace("MARK", str(tmp_path)), encoding="utf-8")
    command = [sys.executable, "-m", "steps.cli", "run", str(manifest), *flags(tmp_path), "--name=r1"]
    process = started(command, tmp_path)
    process.send_signal(sent)
    _, shown = process.communicate(timeout=20)
    record = json.loads((tmp_path / "evidence.runs/r1.json").read_text(encoding="utf-8"))
    assert (process.returncode, record["phase"], record["nodes"][0]["phase"]) == (1, "Failed", "Failed")
    assert "Traceback" not in shown
    assert not _alive(str(tmp_path))
    again = [*command, "--replace", "-p", "seconds=0"]
    assert subprocess.run(again, check=False, stderr=subprocess.DEVNULL, timeout=30).returncode == 0


def test_a_name_that_was_used_is_refused_and_nothing_of_the_earlier_run_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", str(compare.template_path("on-exit")), *flags(tmp_path), "--name=r1"]
    assert main(command) == 1
    before = contents(tmp_path / "evidence.runs")
    capsys.readouterr()
    assert main(command) == 2
    shown = capsys.readouterr().err
    words = "holds a run called r1 already; give another --name, or --replace to write over it"
    assert shown == f"gpu-reclaim: {tmp_path}/evidence.runs {words}\n"
    assert contents(tmp_path / "evidence.runs") == before
    assert main([*command, "--replace"]) == 1
    assert contents(tmp_path / "evidence.runs") != before


@pytest.mark.parametrize("more", [[], ["--replace"]])
def test_a_name_is_refused_while_its_run_is_under_way_whatever_is_asked(
    more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = tmp_path / "slow.yaml"
    manifest.write_text(yaml.safe_dump(SLOW).replace("MARK", str(tmp_path)), encoding="utf-8")
    command = ["run", str(manifest), *flags(tmp_path), "--name=r1"]
    process = started([sys.executable, "-m", "steps.cli", *command], tmp_path)
    try:
        assert main([*command, *more]) == 2
        assert "r1 is under way" in capsys.readouterr().err
        assert process.poll() is None
        assert any(path.read_text() for path in (tmp_path / "evidence.runs").glob("r1/*.log"))
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


def test_runs_that_cannot_be_written_get_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs").write_text("no folder", encoding="utf-8")
    command = ["run", str(compare.template_path("on-exit")), *flags(tmp_path), "--name=r1", f"--runs={tmp_path / 'runs'}"]
    assert main(command) == 2
    assert "cannot be made" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["../kept", "..", ".", "{absolute}", "a/b", "--x", "Sweep", ""])
def test_a_run_whose_name_is_no_name_is_refused_and_nothing_outside_is_emptied(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder of a run is emptied before it starts, so its name must not lead anywhere else."""
    kept = tmp_path / "kept" / "thesis"
    kept.parent.mkdir()
    kept.write_text("four years", encoding="utf-8")
    manifest = tmp_path / "slow.yaml"
    manifest.write_text(yaml.safe_dump(SLOW), encoding="utf-8")
    given = name.replace("{absolute}", str(kept.parent))
    assert main(["run", str(manifest), *flags(tmp_path), f"--runs={tmp_path / 'runs'}", f"--name={given}"]) == 2
    assert "cannot be called" in capsys.readouterr().err
    assert kept.read_text(encoding="utf-8") == "four years"


def test_a_local_run_without_a_simulator_never_reaches_the_cluster_of_the_kubeconfig(tmp_path: Path) -> None:
    """Its facts are this machine's: judged and acted on with a person's rights they would be about another world."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        kubeconfig = tmp_path / "kubeconfig"
        cluster = {"name": "real", "cluster": {"server": f"http://127.0.0.1:{server.getsockname()[1]}"}}
        context = {"name": "real", "context": {"cluster": "real", "user": "me"}}
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "real", "clusters": [cluster], "contexts": [context]}
        kubeconfig.write_text(yaml.safe_dump({**config, "users": [{"name": "me", "user": {}}]}), encoding="utf-8")
        command = [sys.executable, "-m", "steps.cli", "run", str(MANIFESTS / "sweep.yaml"), *flags(tmp_path), "--name=r1"]
        environment = {name: value for name, value in os.environ.items() if name != "GPU_RECLAIM_SIMULATOR"}
        ran = subprocess.run(
            command, env={**environment, "KUBECONFIG": str(kubeconfig)}, check=False, capture_output=True, timeout=60
        )
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert ran.returncode == 1
    (log,) = (tmp_path / "evidence.runs/r1").glob("r1-nodes-*.log")
    assert "never touches a real cluster" in log.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["\x1b[2J", "a\nb", "\u202e"])
def test_foreign_text_in_a_refusal_is_shown_as_its_code(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "parcels").write_text(json.dumps([{"parcel": "xz+base64", "holds": text, "data": ""}]), encoding="utf-8")
    argv = ['--nodes=["a"]', f"--facts={tmp_path / 'parcels'}", f"--cluster={tmp_path / 'c'}", f"--traced-to={tmp_path / 't'}"]
    assert main(["step", "trace", *argv]) == 2
    shown = capsys.readouterr().err
    assert shown.rstrip("\n").isprintable()
    assert "holds a" in shown


def started(command: list[str], folder: Path) -> "subprocess.Popen[str]":
    """The run r1 on its way, its container has said something; interrupted by SIGINT as from a person's terminal."""
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts its background jobs with SIGINT ignored, and a test run may be one; a person's terminal does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # this process has no other thread
    )
    _wait_for(lambda: any(path.read_text() for path in (folder / "evidence.runs").glob("r1/*.log")))
    return process


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _wait_for(condition: Callable[[], bool], limit_s: float = 20) -> None:
    ends_at = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < ends_at, "it did not happen in time"
        time.sleep(0.05)


def _alive(word: str) -> bool:
    """Whether a process of this user has the word in its command line."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                return True
        except OSError:
            continue
    return False
