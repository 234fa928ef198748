"""Two sweeps in a row with deletions in between that nobody told them of: what the second says of the time between."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from sim.clock import SimulatedClock
from sim.scenarios.builder import GIB, WorldBuilder
from sim.world.controllers import collect_garbage
from sim.world.objects import remove
from sim.world.paths import DEPLOYMENT
from sim.world.state import Behaviour
from sim.world.store import StateFile
from sim.world.timeline import advance
from steps.archive.evidence import RunEvidence, load_evidence
from steps.contracts.continuity import Accounted, Since
from steps.contracts.release import ReleaseVerdict
from steps.contracts.release_check import Answer
from steps.contracts.traced import GpuClass
from steps.decide.wording import say_span
from tests.local.test_release_check import check
from tests.local.test_sweep import A100, H100, Place

CLEAN = Behaviour(memory_bytes=10 * GIB, exits_after_s=1.0)
LEAVES_A_PROCESS = Behaviour(memory_bytes=10 * GIB, exits_after_s=1.0, outlives_pod=True)
GONE = ("clean", "survivor", "unseen")


def between(place: Place, *names: str, silent: str | None = None) -> dict[str, str]:
    """Delete these sessions behind gpu-reclaim's back; a node may fall silent. Pod uid by session name, as they were."""
    with StateFile(place.state).open() as world:
        uids = {
            item["metadata"]["labels"]["app"]: str(item["metadata"]["uid"])
            for item in world.objects.values()
            if item["kind"] == "Pod"
        }
        for name in names:
            gone = remove(world, DEPLOYMENT.path("vision", name))
            collect_garbage(world, gone["metadata"]["uid"])
        advance(world, 120)
        if silent is not None:
            world.nodes[silent].silent = True
    return uids


Story = tuple[dict[str, str], list[RunEvidence]]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """(pod uids, three sweeps): between the first two one pod ends cleanly under a release check, one leaves a process behind, one
    was on a node that is silent since."""
    built = WorldBuilder(datetime(2026, 11, 30, 9, 0, tzinfo=UTC))
    for name in ("gpu-reclaim", "vision"):
        built.namespace(name)
    built.node("node-1", A100, gpus=3, memory_gib=80)
    built.node("node-2", H100, gpus=1, memory_gib=80)
    built.session("vision", "clean", A100, CLEAN)
    built.session("vision", "survivor", A100, LEAVES_A_PROCESS)
    built.session("vision", "stays", A100, CLEAN)
    built.session("vision", "unseen", H100, CLEAN)
    built.wait(hours=2)
    place = Place.of(tmp_path_factory.mktemp("since"), built.world)
    place.sweep("first")
    uids = between(place, *GONE, silent="node-2")
    check(place, run=f"release-{uids['clean']}-4711", uid=uids["clean"], node="node-1", deleted_at="2026-11-30T11:00:30Z")
    place.sweep("second")
    SimulatedClock(place.state).sleep(600)
    place.sweep("third")
    return uids, [load_evidence(place.folder / "evidence" / run) for run in ("first", "second", "third")]


def unwatched_s(evidence: RunEvidence) -> float:
    """Of the node that answered, in seconds."""
    (node,) = [node for node in since(evidence).nodes if node.unwatched_until is not None]
    assert node.unwatched_from is not None
    assert node.unwatched_until is not None
    return (node.unwatched_until - node.unwatched_from).total_seconds()


def since(evidence: RunEvidence) -> Since:
    assert evidence.since is not None, evidence.unreadable
    return evidence.since


def of(story: Story, run: int, name: str) -> Accounted:
    uids, evidence = story
    (one,) = [one for one in since(evidence[run]).departed if one.pod.uid == uids[name]]
    return one


def test_a_first_sweep_says_that_it_knows_of_none_before_it(story: Story) -> None:
    first = since(story[1][0])
    assert first.sentence == "no earlier sweep is remembered: nothing is said of the time before this one"
    assert [(node.unwatched_from, node.unwatched_until is not None) for node in first.nodes] == [(None, True)] * 2
    assert (first.departed, first.still_there, first.gaps) == ((), 0, ())


def test_the_second_states_from_when_to_when_no_sweep_looked_and_leaves_it_open_for_a_silent_node(story: Story) -> None:
    first, second = since(story[1][0]), since(story[1][1])
    began = {node.node: node.unwatched_until for node in first.nodes}
    ended = {node.node: (node.unwatched_from, node.unwatched_until) for node in second.nodes}
    (since_1, until_1), (since_2, until_2) = ended["node-1"], ended["node-2"]
    assert since_1 is not None
    assert until_1 is not None
    assert began["node-1"] is not None
    assert began["node-1"] < since_1 < until_1
    assert until_2 is None
    assert since_2 is not None


def test_every_pod_of_the_first_is_still_there_or_has_an_answer(story: Story) -> None:
    uids, evidence = story
    second = since(evidence[1])
    assert (second.still_there, {one.pod.uid for one in second.departed}) == (1, {uids[name] for name in GONE})


@pytest.mark.parametrize(
    ("name", "second", "third"),
    [
        ("clean", ReleaseVerdict.RETURNED, None),
        ("survivor", ReleaseVerdict.PENDING, ReleaseVerdict.LEAKED),
        ("unseen", ReleaseVerdict.UNKNOWN, ReleaseVerdict.UNKNOWN),
    ],
)
def test_an_answer_is_final_or_asked_for_again(
    story: Story, name: str, second: ReleaseVerdict, third: ReleaseVerdict | None
) -> None:
    answer = of(story, 1, name).pod
    assert (answer.answer, answer.remembered) == (second, third is not None), answer.sentence
    later = [one.pod.answer for one in since(story[1][2]).departed if one.pod.uid == answer.uid]
    assert later == ([] if third is None else [third])


def test_what_leaked_is_named_by_process_class_and_bytes_and_is_the_last_word(story: Story) -> None:
    leaked = of(story, 2, "survivor").pod
    assert (leaked.gpu_class, leaked.held_bytes.known(), len(leaked.pids), leaked.remembered) == (
        GpuClass.POD_GONE_LIVE,
        10 * GIB,
        1,
        False,
    )


def test_report_summary_and_the_archives_line_say_it(story: Story) -> None:
    _, (_, second, _) = story
    assert second.summary is not None
    assert second.summary.since == (
        "since first: 1 pod still there, 3 departed (1 returned, 1 pending and 1 unknown); "
        f"no sweep looked for {say_span(unwatched_s(second))}; 1 node did not answer, unwatched still"
    )
    assert second.summary.departed == {"returned": 1, "pending": 1, "unknown": 1}


def test_a_pod_whose_node_moved_to_another_shard_is_answered_for_there(tmp_path: Path) -> None:
    """Two shards of one node each, then one shard of both: the second shard's memory is of a shard that is no more."""
    built = WorldBuilder(datetime(2026, 11, 30, 9, 0, tzinfo=UTC))
    for name in ("gpu-reclaim", "vision"):
        built.namespace(name)
    built.node("node-1", A100, gpus=1, memory_gib=80)
    built.node("node-2", H100, gpus=1, memory_gib=80)
    built.session("vision", "stays", A100, CLEAN)
    built.session("vision", "moves", H100, CLEAN)
    built.wait(hours=2)
    place = Place.of(tmp_path, built.world)
    place.sweep("apart", shard_size="1")
    uids = between(place, "moves")
    place.sweep("together", shard_size="8")
    account = since(load_evidence(place.folder / "evidence" / "together"))
    assert [(one.pod.uid, one.pod.node, one.pod.answer) for one in account.departed] == [
        (uids["moves"], "node-2", ReleaseVerdict.RETURNED)
    ]
    assert (account.still_there, [node.unwatched_from is not None for node in account.nodes]) == (1, [True, True])


def test_nobody_watched_is_said_only_of_what_no_evidence_shows(story: Story) -> None:
    assert "no evidence of a release check is there: nobody watched, or a check still runs" in of(story, 1, "survivor").sentence
    clean = of(story, 1, "clean")
    assert [(one.step, one.answer) for one in clean.watched] == [("release-check", Answer.RETURNED)]
    assert f"verified by release-check release-{clean.pod.uid}-4711: returned; this sweep: returned" in clean.sentence
