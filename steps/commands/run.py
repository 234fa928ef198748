"""`gpu-reclaim run`: run a rendered workflow on this machine, steps as subprocesses, against the simulator."""

import argparse
import json
import os
import secrets
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from steps.archive.names import REPORT
from steps.contracts.document import encode
from steps.contracts.errors import BadInput, Exit
from steps.contracts.files import is_there
from steps.contracts.ports import Outside
from steps.contracts.run_record import NodeRecord, RunRecord

EVIDENCE_CLAIM: Final = "gpu-reclaim-evidence"
POLICY_CONFIG_MAP: Final = "gpu-reclaim-policy"
RUNS_VARIABLE: Final = "GPU_RECLAIM_RUNS_DIR"
"""Where the simulated run reader finds `<run>.json` and `<run>/<pod>.<container>.log`."""
SIMULATOR_VARIABLE: Final = "GPU_RECLAIM_SIMULATOR"
NO_SIMULATOR: Final = ""
"""Makes a step refuse to look outside: a local run must not reach the cluster of the person's kubeconfig."""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", outside: Callable[[], Outside]) -> None:
    """Declare the command and its flags."""
    words = "run a rendered workflow on this machine, steps as subprocesses, against the simulator"
    parser = commands.add_parser("run", help=words, description=words, allow_abbrev=False)
    parser.add_argument("manifest", type=Path, metavar="MANIFEST", help="a WorkflowTemplate of workflows/manifests")
    parser.add_argument("--local", action="store_true", help="run here; without it nothing runs")
    parser.add_argument("-p", dest="parameters", action="append", default=[], metavar="NAME=VALUE", help="a workflow parameter")
    parser.add_argument("--evidence", type=Path, metavar="DIR", help="folder that stands for the evidence claim")
    parser.add_argument("--policy", type=Path, metavar="FILE", help="policy file that stands for the ConfigMap")
    parser.add_argument("--simulator", type=Path, metavar="STATE", help="state file of a simulated cluster")
    parser.add_argument("--runs", type=Path, metavar="DIR", help="folder for records and logs (default: DIR of --evidence + .runs)")
    parser.add_argument("--name", metavar="RUN", help="name of the run (default: made from the template's)")
    parser.add_argument("--replace", action="store_true", help="write over an earlier run of that name in the same folder")
    parser.add_argument("-o", dest="output", choices=["text", "json"], default="text", help="how to print the result")
    parser.set_defaults(handler=_run)


def _run(arguments: argparse.Namespace) -> Exit:
    if not arguments.local:
        raise BadInput(
            "run works with --local only; on a cluster use `argo submit --from workflowtemplate/sweep` or `kubectl create`"
        )
    if arguments.evidence is None or arguments.policy is None:
        raise BadInput("a local run needs --evidence DIR and --policy FILE, which stand for the volume claim and the ConfigMap")
    show = _show_nothing if arguments.output == "json" else _show
    runs = arguments.runs or arguments.evidence.with_name(arguments.evidence.name + ".runs")
    record = run_manifest(
        arguments.manifest,
        _pairs(arguments.parameters),
        evidence=arguments.evidence,
        policy=arguments.policy,
        runs=runs,
        simulator=arguments.simulator,
        name=arguments.name,
        on_node=show,
        replace=arguments.replace,
    )
    _print(record, runs, arguments.evidence / record.run / REPORT, arguments.output)
    return Exit.DONE if record.phase == "Succeeded" else Exit.COULD_NOT


def run_manifest(
    manifest: Path,
    parameters: Mapping[str, str],
    *,
    evidence: Path,
    policy: Path,
    runs: Path,
    simulator: Path | None = None,
    name: str | None = None,
    on_node: Callable[[NodeRecord], None] | None = None,
    replace: bool = False,
) -> RunRecord:
    """Run a rendered manifest here and return its record. evidence, policy, runs, replace: as the flags of `run --local` say.

    Raises BadInput for a manifest, parameter or name that the local runner refuses, before anything has started.
    """
    try:
        from workflows import local  # noqa: PLC0415 - the steps' image holds no workflows
    except ModuleNotFoundError as error:
        raise BadInput("this installation holds no workflows; run from a checkout of gpu-reclaim") from error
    loaded = local.load(manifest)
    environment = {SIMULATOR_VARIABLE: NO_SIMULATOR, **os.environ, RUNS_VARIABLE: str(runs.resolve())}
    if simulator is not None:
        environment[SIMULATOR_VARIABLE] = str(simulator.resolve())
    setting = local.Setting(
        runs_folder=runs.resolve(),
        claims={EVIDENCE_CLAIM: evidence.resolve()},
        config_maps={POLICY_CONFIG_MAP: {"policy.yaml": policy.resolve()}},
        environment=environment,
        now=lambda: datetime.now(UTC),
    )
    run = f"{loaded.name}-{secrets.token_hex(3)}" if name is None else name
    return local.run_locally(loaded, parameters, setting, run=run, uid=str(uuid.uuid4()), on_node=on_node, replace=replace)


def _pairs(given: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals:
            raise BadInput(f"-p {one!r} is no NAME=VALUE; give for example -p dry-run=false")
        pairs[name] = value
    return pairs


def _show(node: NodeRecord) -> None:
    message = f": {node.message}" if node.message else ""
    print(f"{node.phase:<9} {node.name.partition('.')[2] or node.name}{message}", file=sys.stderr)


def _show_nothing(_node: NodeRecord) -> None:
    """JSON output stands alone."""


def _print(record: RunRecord, runs: Path, report: Path, output: str) -> None:
    if output == "json":
        print(json.dumps(json.loads(encode(record)), indent=2))
        return
    for sentence in _sentences(record, runs):
        print(sentence, file=sys.stderr)
    print(f"{record.run}: {record.phase}; record and logs in {runs}")
    if is_there(report):
        print(f"report: {report}")


def _sentences(record: RunRecord, runs: Path) -> Iterator[str]:
    """What the steps that failed said to people, each once, out of their logs."""
    failed = dict.fromkeys(node.pod for node in record.nodes if node.pod and node.phase in ("Failed", "Error"))
    logs = (log for pod in failed for log in sorted((runs / record.run).glob(f"{pod}.*.log")))
    lines = (line for log in logs for line in log.read_text(encoding="utf-8", errors="replace").splitlines())
    yield from dict.fromkeys(line for line in lines if line.startswith("gpu-reclaim: "))
