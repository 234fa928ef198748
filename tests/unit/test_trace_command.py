"""`gpu-reclaim trace` as a command: its flags and forms, --watch, --api, what it ends with."""

import json
from typing import Any

import msgspec
import pytest
import yaml

from steps.contracts.cluster_facts import ContainerFacts
from steps.contracts.document import Sample, decode
from steps.contracts.errors import BadInput, Exit
from steps.contracts.node_facts import PodOnDisk, Visibility, VisibilityLevel
from steps.contracts.traced import GpuClass
from steps.node_view.picture import NodePicture
from steps.node_view.rows import COLUMNS
from tests.unit.fake_nvml import GIB, FakeGpu
from tests.unit.fake_nvml import listed as nvml_lists
from tests.unit.node_commands import Cluster, ImpatientClock, NodeWorld, run
from tests.unit.node_world import POD, reading, scan
from tests.unit.node_world import process as world_process
from tests.unit.trace_world import (
    pod,
)

# --- the command itself

MAIN = (ContainerFacts(name="main", container_ids=("ab" * 32,)),)


def busy_world(**other: Any) -> NodeWorld:
    """One GPU with a listed process of a pod that the kubelet's folders name."""
    on_disk = PodOnDisk(uid=POD, namespace="team", name="notebook-0", kept=True, containers=MAIN)
    gpus = FakeGpu(used=5 * GIB, compute=(nvml_lists(7),))
    return NodeWorld([reading(gpus)], [scan(world_process(7))], folders=Sample.measured((on_disk,), "logs"), **other)


def test_the_table_comes_on_stdout_and_a_clean_node_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(busy_world(), "trace") is Exit.DONE
    said = capsys.readouterr()
    assert said.out.splitlines()[0].split() == list(COLUMNS)
    assert said.out.splitlines()[1].split() == ["7", "S", "5120", "MiB", "yes", "burstable", "notebook-0", "team", "main"]
    assert said.out.splitlines()[-1] == "nothing wrong was found"
    assert said.err == ""


def test_what_could_not_be_judged_is_a_sentence_on_stderr_and_1(capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = Visibility(level=VisibilityLevel.BLIND, reasons=("run with hostPID",))
    world = NodeWorld([reading(FakeGpu())], [scan(visibility=elsewhere)])
    assert run(world, "trace") is Exit.COULD_NOT
    assert capsys.readouterr().err == "gpu-reclaim: could not: GPU 0 cannot be judged: BLIND\n"


def test_json_is_the_whole_picture_and_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    world = busy_world()
    world.scans = [scan(_renamed(world_process(7), "\x9b2J\u202e\U000e0001"))]
    assert run(world, "trace", "-o", "json") is Exit.DONE
    said = capsys.readouterr()
    assert not [letter for letter in said.out if not letter.isprintable() and letter != "\n"]
    told = decode(said.out, NodePicture, "stdout")
    assert told.traced.gpus[0].holders[0].name == "\x9b2J\u202e\U000e0001"
    assert said.err == "gpu-reclaim: nothing wrong was found\n"


def _renamed(one: Any, name: str) -> Any:
    return msgspec.structs.replace(one, name=name)


def test_yaml_says_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    run(busy_world(), "trace", "-o", "yaml")
    as_yaml = yaml.safe_load(capsys.readouterr().out)
    run(busy_world(), "trace", "-o", "json")
    as_json = json.loads(capsys.readouterr().out)
    assert as_yaml["traced"]["gpus"] == as_json["traced"]["gpus"]


def test_watch_ends_by_ctrl_c_with_the_last_pictures_code_and_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    clock = ImpatientClock(looks=2)
    assert run(busy_world(clock=clock), "trace", "--watch") is Exit.DONE
    assert clock.sleeps == [10.0, 10.0]
    assert capsys.readouterr().out.count("NAMESPACE") == 2


def test_watch_keeps_its_looks_together_until_a_ghost_is_certain(capsys: pytest.CaptureFixture[str]) -> None:
    haunted = NodeWorld([reading(FakeGpu(used=9 * GIB))], [scan()], clock=ImpatientClock(looks=7))
    assert run(haunted, "trace", "--watch", "-o", "json") is Exit.FOUND_PROBLEMS
    told = [json.loads(line)["traced"]["gpus"][0]["headline"] for line in capsys.readouterr().out.splitlines()]
    assert told == ["UNKNOWN"] * 6 + ["GHOST_CONTEXT"]


def test_watch_looks_no_more_often_than_the_drivers_lock_bears() -> None:
    clock = ImpatientClock(looks=1)
    run(busy_world(clock=clock), "trace", "--watch", "--interval-s=0.5")
    assert clock.sleeps == [2.0]


def test_ctrl_c_before_the_first_picture_is_could_not() -> None:
    class Interrupted(NodeWorld):
        def gpus(self) -> Any:
            raise KeyboardInterrupt

    assert run(Interrupted([], []), "trace", "--watch") is Exit.COULD_NOT


@pytest.mark.parametrize(
    "flag", ["--samples=0", "--samples=61", "--samples=x", "--interval-s=0", "--interval-s=nan", "--interval-s=1e9"]
)
def test_a_number_that_cannot_be_is_refused_with_a_sentence(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        run(busy_world(), "trace", flag)
    assert refused.value.code == Exit.BAD_INPUT
    assert "give " in capsys.readouterr().err


def test_with_the_api_a_pod_it_does_not_know_is_gone(capsys: pytest.CaptureFixture[str]) -> None:
    world = busy_world(api=Cluster(["node-a"], ()))
    assert run(world, "trace", "--api", "--node=node-a", "-o", "json") is Exit.FOUND_PROBLEMS
    (seen,) = json.loads(capsys.readouterr().out)["traced"]["gpus"]
    assert seen["headline"] == GpuClass.POD_GONE_LIVE.value


def test_a_pod_that_only_the_last_list_lacks_is_not_yet_gone_and_the_next_picture_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    deleted = pod(POD, ("ab" * 32,), node="node-a")
    world = busy_world(api=Cluster(["node-a"], (), first=(deleted,)), clock=ImpatientClock(looks=3))
    run(world, "trace", "--api", "--node=node-a", "--watch", "-o", "json")
    told = [json.loads(line)["traced"]["gpus"][0]["headline"] for line in capsys.readouterr().out.splitlines()]
    assert told == ["IDLE_HOLDER", "POD_GONE_LIVE", "POD_GONE_LIVE"]


def test_a_node_name_that_the_api_does_not_have_is_refused_because_every_pod_would_look_gone() -> None:
    with pytest.raises(BadInput, match=r"no GPU node 'laptop'.*node-a"):
        run(busy_world(api=Cluster(["node-a"], ())), "trace", "--api", "--node=laptop")
