"""The step `trace`: nodes asked against facts delivered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steps.contracts.cluster_facts import ClusterFacts
from steps.contracts.declaration import Inputs
from steps.contracts.document import Origin, Stamp, decode, encode
from steps.contracts.errors import BadInput, Exit
from steps.contracts.node_facts import NodeFacts
from steps.contracts.parcel import pack
from steps.contracts.traced import GpuClass, Traced
from steps.trace.declaration import STEP
from steps.trace.step import run
from tests.unit.release_world import FakeClock
from tests.unit.trace_world import NOON, facts, gpu, listed, pod, process


@dataclass
class Outside:
    """Fits ports.Outside as far as trace asks."""

    clock: FakeClock = field(default_factory=FakeClock)
    origin: Origin = Origin.SIMULATED
    environment: Mapping[str, str] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"trace does not need {name}")


def on(node: str) -> NodeFacts:
    held = facts((gpu(used_mib=8100, processes=(listed(),)),), (process(),))
    return msgspec.structs.replace(held, node=node)


def traced(folder: Path, asked: str, *delivered: NodeFacts) -> tuple[Exit, Traced]:
    (folder / "facts.json").write_bytes(b"[" + b",".join(pack(one) for one in delivered) + b"]")
    stamp = Stamp(made_by="survey", made_at=NOON, origin=Origin.SIMULATED)
    cluster = ClusterFacts(stamp=stamp, nodes=("node-a",), pods=(pod(),), sessions=(), waiters=())
    (folder / "cluster.json").write_bytes(encode(cluster))
    given = {"nodes": asked, "facts": str(folder / "facts.json"), "cluster": str(folder / "cluster.json")}
    target = folder / "traced.json"
    done = run(Inputs(STEP, given, {"traced": str(target)}), Outside())
    return done, decode(target.read_bytes(), Traced, str(target))


def test_every_node_asked_is_there_in_that_order_and_silent_ones_are_named(tmp_path: Path) -> None:
    done, document = traced(tmp_path, '["node-b", "node-a"]', on("node-a"))
    assert (done, [node.node for node in document.nodes]) == (Exit.DONE, ["node-b", "node-a"])
    silent, heard = document.nodes
    assert silent.problem is not None
    assert (heard.problem, heard.gpus[0].headline) == (None, GpuClass.IDLE_HOLDER)
    assert (document.stamp.made_by, document.stamp.origin) == ("trace", Origin.SIMULATED)


def test_no_facts_at_all_leave_every_node_silent(tmp_path: Path) -> None:
    _, document = traced(tmp_path, '["node-a"]')
    assert [node.problem is not None for node in document.nodes] == [True]


def test_a_process_of_a_pod_that_runs_on_another_node_is_a_conflict(tmp_path: Path) -> None:
    _, document = traced(tmp_path, '["node-b"]', on("node-b"))
    assert document.nodes[0].gpus[0].headline is GpuClass.UNKNOWN
    assert "node-a" in document.nodes[0].gpus[0].reason


def test_facts_of_a_node_that_was_not_asked_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="node 'node-b', which --nodes does not name"):
        traced(tmp_path, '["node-a"]', on("node-a"), on("node-b"))


def test_facts_of_one_node_twice_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="'node-a' twice"):
        traced(tmp_path, '["node-a"]', on("node-a"), on("node-a"))
    assert not (tmp_path / "traced.json").exists()
