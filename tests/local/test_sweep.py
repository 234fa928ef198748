"""The rendered sweep, run whole on this machine against a simulated cluster: what stops, what stays, what a silent node does.

Subprocesses and minutes of simulated time: a story is run once and asked many times.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sim.clock import SimulatedClock
from sim.scenarios.builder import GIB, WorldBuilder
from sim.world.state import Behaviour, World
from sim.world.store import StateFile
from steps.contracts.decision import Decisions
from steps.contracts.document import decode
from steps.contracts.run_record import EvidenceSummary, RunRecord
from steps.contracts.traced import Traced
from workflows import MANIFESTS
from workflows.local import Setting, load, run_locally

A100 = "NVIDIA A100-SXM4-80GB"
H100 = "NVIDIA H100 80GB HBM3"
POLICY = "mode: act\nnamespaces: [misspelt, vision]\nidle_after_s: 900\nminimum_age_s: 600\nmax_stops_per_sweep: 3\n"
IDLE = Behaviour(command="python3 -m ipykernel_launcher", memory_bytes=39 * GIB, exits_after_s=None)
WORKING = Behaviour(command="python3 train.py", memory_bytes=61 * GIB, sm_ratio=0.93, busy_gpus=1)
QUICK = {"look-interval-s": "5", "capture-interval-s": "5"}


@dataclass(frozen=True)
class Place:
    """A simulated cluster on disk, with the folders of its runs."""

    folder: Path

    @classmethod
    def of(cls, folder: Path, world: World) -> "Place":
        place = cls(folder)
        StateFile(place.state).create(world)
        (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
        return place

    @property
    def state(self) -> Path:
        return self.folder / "cluster.json"

    def sweep(self, run: str, **parameters: str) -> RunRecord:
        runs = self.folder / "runs"
        environment = {**os.environ, "GPU_RECLAIM_SIMULATOR": str(self.state), "GPU_RECLAIM_RUNS_DIR": str(runs)}
        setting = Setting(
            runs_folder=runs,
            claims={"gpu-reclaim-evidence": self.folder / "evidence"},
            config_maps={"gpu-reclaim-policy": {"policy.yaml": self.folder / "policy.yaml"}},
            environment=environment,
            now=SimulatedClock(self.state).now,
            processes=2,
        )
        given = {**QUICK, **{name.replace("_", "-"): value for name, value in parameters.items()}}
        return run_locally(load(MANIFESTS / "sweep.yaml"), given, setting, run=run, uid=f"uid-{run}")

    def verdicts(self, run: str) -> dict[str, str]:
        data = (self.folder / "evidence" / run / "shard-0/decisions.json").read_bytes()
        return {one.owner.name: one.reason.value for one in decode(data, Decisions, run).decisions}

    def traced(self, run: str, shard: int = 0) -> Traced:
        return decode((self.folder / "evidence" / run / f"shard-{shard}/traced.json").read_bytes(), Traced, run)

    def replicas(self, name: str) -> int:
        with StateFile(self.state).open() as world:
            return next(
                int(item["spec"]["replicas"])
                for item in world.objects.values()
                if item["kind"] == "Deployment" and item["metadata"]["name"] == name
            )


def phases(record: RunRecord) -> Mapping[str, str]:
    """Last part of a node's name -> phase, retries and containers left out; fan-outs keep their items."""
    return {node.name.removeprefix(record.run).removeprefix("."): node.phase for node in record.nodes}


def ended(record: RunRecord, template: str, kind: str = "Pod") -> list[str]:
    """Phases of all nodes of one template and kind, in order."""
    return [node.phase for node in record.nodes if (node.template, node.kind) == (template, kind)]


def world(*, silent: tuple[str, ...]) -> World:
    """Two nodes with a working and an idle session a day old. silent: nodes that the API knows and that never answer."""
    built = WorldBuilder(datetime.now(UTC))
    for name in ("gpu-reclaim", "vision"):
        built.namespace(name)
    built.node("gpu-a", A100, gpus=2, memory_gib=80)
    built.node("gpu-b", H100, gpus=2, memory_gib=80)
    built.session("vision", "alice", A100, WORKING)
    built.session("vision", "bob", A100, IDLE)
    built.wait(hours=24)
    for name in silent:
        del built.world.nodes[name]
    return built.world


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, Place, RunRecord, RunRecord, RunRecord]:
    """A first sweep, a copy of the cluster eighteen minutes later for a dry run, and the sweep that acts. gpu-b never answers."""
    place = Place.of(tmp_path_factory.mktemp("acting"), world(silent=("gpu-b",)))
    first = place.sweep("first", dry_run="false")
    SimulatedClock(place.state).sleep(18 * 60)
    dry_place = Place(tmp_path_factory.mktemp("dry") / "copy")
    shutil.copytree(place.folder, dry_place.folder)
    return place, dry_place, first, dry_place.sweep("dry", dry_run="true"), place.sweep("second", dry_run="false")


Story = tuple[Place, Place, RunRecord, RunRecord, RunRecord]


def test_the_first_sweep_under_a_new_policy_stops_nothing(story: Story) -> None:
    place, _, first, _, _ = story
    assert (first.phase, ended(first, "stop"), place.verdicts("first")["alice"]) == ("Succeeded", [], "Working")


def test_a_dry_run_says_what_it_would_stop_and_stops_nothing(story: Story) -> None:
    _, dry_place, _, dry, _ = story
    assert (dry.phase, dry_place.verdicts("dry")["bob"], ended(dry, "stop")) == ("Succeeded", "DryRun", [])
    assert dry_place.replicas("bob") == 1


def test_the_idle_session_is_captured_stopped_and_verified_and_the_working_one_is_kept(story: Story) -> None:
    place, _, _, _, second = story
    chain = [ended(second, template) for template in ("capture", "stop", "verify")]
    assert (second.phase, chain) == ("Succeeded", [["Succeeded"], ["Succeeded"], ["Succeeded"]])
    assert (place.replicas("bob"), place.replicas("alice")) == (0, 1)
    assert place.verdicts("second") == {"alice": "Working", "bob": "IdleLongEnough"}


def test_a_silent_node_is_named_and_does_not_block_the_other(story: Story) -> None:
    place, _, _, _, second = story
    assert sorted(ended(second, "collect")) == ["Failed", "Succeeded"]
    assert ended(second, "judge") == ["Succeeded"]
    assert {node.node for node in place.traced("second").nodes} == {"gpu-a", "gpu-b"}


def test_the_archive_runs_at_the_end_and_leaves_a_report(story: Story) -> None:
    place, _, _, _, second = story
    assert phases(second)["onExit"] == "Succeeded"
    assert (place.folder / "evidence/second/report.html").exists()


def test_a_namespace_of_the_policy_that_does_not_exist_is_named_and_stops_no_judgement(story: Story) -> None:
    place, _, _, _, second = story
    assert (second.phase, ended(second, "judge")) == ("Succeeded", ["Succeeded"])
    summary = decode((place.folder / "evidence/second/summary.json").read_bytes(), EvidenceSummary, "summary")
    (named,) = (line for line in summary.missing if "misspelt" in line)
    assert named.startswith("namespace misspelt of the policy does not exist")
    assert named in (place.folder / "evidence/second/report.html").read_text(encoding="utf-8")


def test_shards_without_any_answer_are_judged_all_the_same_each_with_its_own_nodes(tmp_path: Path) -> None:
    place = Place.of(tmp_path, world(silent=("gpu-a", "gpu-b")))
    record = place.sweep("blind", dry_run="false", shard_size="1")
    shards = [node.name for node in record.nodes if (node.template, node.kind) == ("shard", "DAG")]
    assert shards == ['blind.shard(0:nodes:["gpu-a"],shard:0)', 'blind.shard(1:nodes:["gpu-b"],shard:1)']
    assert (record.phase, ended(record, "judge"), ended(record, "stop")) == ("Succeeded", ["Succeeded", "Succeeded"], [])
    assert [[node.node for node in place.traced("blind", shard).nodes] for shard in (0, 1)] == [["gpu-a"], ["gpu-b"]]
    assert phases(record)["onExit"] == "Succeeded"


def test_a_cluster_without_gpu_nodes_is_an_empty_sweep(tmp_path: Path) -> None:
    built = WorldBuilder(datetime.now(UTC))
    for name in ("gpu-reclaim", "vision"):
        built.namespace(name)
    record = Place.of(tmp_path, built.world).sweep("empty")
    assert (record.phase, phases(record)["shard"]) == ("Succeeded", "Skipped")
