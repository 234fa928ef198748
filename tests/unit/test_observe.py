"""The eight checks of `gpu-reclaim observe`: what they find, and what they say when a place cannot see it."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from steps.contracts.document import Sample, decode
from steps.contracts.errors import Exit
from steps.contracts.node_facts import HoldVia, NodeFacts, ProcessFacts, Visibility
from steps.contracts.ports import ProcessTree, SignalHandling
from steps.node_view.eight_checks import observe
from steps.node_view.observation import Check, Observation, Outcome
from steps.node_view.observe_text import observe_text
from steps.node_view.process_tree import tree_lines
from steps.node_view.reaping import reaping_of
from steps.trace.node import trace_node
from tests.unit.fake_nvml import FakeGpu
from tests.unit.node_commands import NodeWorld, run
from tests.unit.node_world import FULL, reading, scan
from tests.unit.trace_world import NOON, blind, facts, gpu, hold, listed, partial, process

TERM = SignalHandling(catches_term=True, ignores_child=False)
DEAF = SignalHandling(catches_term=False, ignores_child=False)


def being(pid: int, parent: int = 1, **other: Any) -> ProcessFacts:
    """A live process that holds nothing."""
    return process(pid, **{"parent_pid": parent, "holds": (), "adopted": Sample.measured(False), **other})


def init(name: str = "python3.11", **other: Any) -> ProcessFacts:
    return being(1, 0, name=name, executable=Sample.measured(f"/usr/bin/{name}"), command=Sample.measured(name), **other)


def zombie(pid: int, parent: int = 1, **other: Any) -> ProcessFacts:
    gone = {"state": "Z", "executable": Sample.absent("a zombie"), "command": Sample.absent("a zombie")}
    return being(pid, parent, **{**gone, **other})


def observed(
    everyone: Sequence[ProcessFacts], seen: NodeFacts | None = None, *, inside: bool = True, signals: SignalHandling | None = TERM
) -> Observation:
    """Of these processes. inside: in a container, where the reader is blind for the rest of the node."""
    sight = blind() if inside else FULL
    seen = facts((gpu(),), visibility=sight) if seen is None else seen
    tree = ProcessTree(visibility=sight, processes=tuple(everyone), total=len(everyone), pid1=signals)
    return observe(seen, tree, trace_node(seen, None, now=NOON))


def check(observation: Observation, number: int) -> Check:
    found = observation.checks[number - 1]
    assert found.number == number
    return found


def said(observation: Observation, number: int) -> str:
    return "\n".join(check(observation, number).lines)


def test_there_are_eight_checks_in_their_order() -> None:
    titles = [one.title for one in observed([init()]).checks]
    assert titles == [
        "PID 1 command line",
        "process tree",
        "zombies",
        "orphans",
        "GPU memory",
        "compute processes",
        "device holders",
        "combined verdict",
    ]


def test_busybox_is_told_apart_by_the_name_it_was_called_by() -> None:
    """One program with many names: its init reaps, its shell does not while it runs a command (facts 4.7)."""
    called = {
        words: reaping_of(being(1, 0, executable=Sample.measured("/bin/busybox"), command=Sample.measured(words)), None)[0]
        for words in ("init", "/sbin/init", "busybox init", "/bin/busybox init", "busybox sh -c init", "sh", "busybox", "initd")
    }
    assert [words for words, reaps in called.items() if reaps] == ["init", "/sbin/init", "busybox init", "/bin/busybox init"]
    assert {called[words] for words in ("busybox sh -c init", "sh", "busybox", "initd")} == {None}


@pytest.mark.parametrize(
    ("executable", "signals", "reaps"),
    [
        ("/usr/bin/tini", None, True),
        ("/usr/bin/dumb-init", None, True),
        ("/pause", None, True),
        ("/usr/lib/systemd/systemd", None, True),
        ("/usr/bin/bash", None, True),
        ("/usr/bin/dash", None, True),
        ("/usr/bin/sleep", None, False),
        ("/usr/bin/python3.11", DEAF, False),
        ("/usr/local/bin/node", None, False),
        ("/usr/bin/python3.11", SignalHandling(catches_term=False, ignores_child=True), True),
        ("/usr/bin/busybox", None, None),
    ],
)
def test_whether_pid_1_reaps_is_judged_by_what_it_really_is(
    executable: str, signals: SignalHandling | None, reaps: bool | None
) -> None:
    """The command line is what somebody configured; bash -c "sleep infinity" is sleep (facts 4.7)."""
    told = being(1, 0, executable=Sample.measured(executable), command=Sample.measured("bash -c anything"))
    assert reaping_of(told, signals)[0] is reaps


def test_a_pid_1_whose_program_cannot_be_read_is_unknown_and_not_fine() -> None:
    secret = observed([being(1, 0, executable=Sample.error("exe cannot be read"))], signals=None)
    assert check(secret, 1).outcome is Outcome.NOT_SEEN
    assert "unknown" in said(secret, 1)
    assert "whether it handles SIGTERM cannot be read" in said(secret, 1)


def test_a_pid_1_without_a_handler_is_said_to_ignore_sigterm() -> None:
    assert "ignores it" in said(observed([init()], signals=DEAF), 1)


def test_the_tree_shows_children_below_their_parents_and_starts_from_outside_as_roots() -> None:
    everyone = [init("tini"), being(9, 7, name="b"), being(7, 1, name="a"), being(30, 0, name="sh")]
    lines = [line.rstrip() for line in tree_lines([_mute(one) for one in everyone], None)]
    assert lines == ["1 S tini", "  7 S a", "    9 S b", "30 S sh"]


def _mute(one: ProcessFacts) -> ProcessFacts:
    return msgspec.structs.replace(one, command=Sample.absent("none"))


def test_on_a_node_the_tree_shows_only_the_branches_that_lead_to_a_suspect() -> None:
    everyone = [init("systemd"), being(5), being(7), being(9, 7)]
    holder = msgspec.structs.replace(everyone[3], holds=(hold(),))
    lines = said(observed(everyone, facts((gpu(),), (holder,)), inside=False), 2)
    assert ("9 S" in lines, "5 S" in lines) == (True, False)
    assert lines.startswith("4 processes")


def test_a_tree_read_while_it_changed_ends_all_the_same() -> None:
    assert len(tree_lines([being(5, 6), being(6, 5)], {5})) == 2


def test_a_zombie_is_told_with_the_one_who_must_reap_it() -> None:
    found = observed([init(), being(7, name="trainer"), zombie(8, 7), zombie(9, 1), zombie(10, 0)])
    assert check(found, 3).outcome is Outcome.PROBLEM
    assert "PID 8 (python3): its parent PID 7 (trainer) lives and does not wait" in said(found, 3)
    assert "PID 9 (python3): waits for PID 1 (python3.11) to reap it" in said(found, 3)
    assert "PID 10 (python3): its parent is outside" in said(found, 3)


def test_a_dead_leader_with_live_threads_is_not_for_anybody_to_reap() -> None:
    assert "nobody can reap it before its 2 live threads end" in said(observed([init(), zombie(8, threads=3)]), 3)


def test_zombies_of_a_node_that_have_to_do_with_no_gpu_are_counted_and_no_problem() -> None:
    found = observed([init(), zombie(8)], inside=False)
    assert check(found, 3).outcome is Outcome.FINE
    assert "1 more on this node" in said(found, 3)


def test_a_sure_orphan_is_a_problem_and_a_child_of_pid_1_that_may_be_one_is_said_apart() -> None:
    sure = being(7, adopted=Sample(value=True, state=Sample.measured(1).state, reason="its session leader is dead"))
    unsure = being(8, adopted=Sample.absent("looks the same"))
    both = observed([init(), sure, unsure])
    assert check(both, 4).outcome is Outcome.PROBLEM
    assert "PID 7 (python3), now below PID 1: its session leader is dead" in said(both, 4)
    assert "may be orphans or original" in said(both, 4)
    assert check(observed([init(), unsure]), 4).outcome is Outcome.NOT_SEEN
    assert check(observed([init(), being(9)]), 4).outcome is Outcome.FINE


def test_unknown_memory_is_not_seen_and_never_zero() -> None:
    found = observed([init()], facts((gpu(used_mib=None),)), inside=False)
    assert (check(found, 5).outcome, found.answer.exit) == (Outcome.NOT_SEEN, Exit.COULD_NOT)
    assert "unknown of 81920 MiB used" in said(found, 5)


def test_an_empty_list_in_a_container_proves_nothing() -> None:
    found = observed([init()])
    assert check(found, 6).outcome is Outcome.NOT_SEEN
    assert "BLIND: an empty list proves nothing" in said(found, 6)
    assert "BLIND: holders outside this container are not seen" in said(found, 7)
    assert (check(observed([init()], inside=False), 6).outcome, check(observed([init()], inside=False), 7).outcome) == (
        Outcome.FINE,
        Outcome.FINE,
    )


def test_partial_sight_is_said_at_the_holders() -> None:
    found = observed([init()], facts((gpu(),), visibility=partial()), inside=False)
    assert check(found, 7).outcome is Outcome.NOT_SEEN
    assert "EACCES on fd" in said(found, 7)


def test_a_node_that_is_not_wholly_seen_has_no_fine_verdict_on_its_holders() -> None:
    """Nobody was found; one whose descriptors could not be read may be one, and NVML may not have been asked."""
    some = observed([init()], facts((gpu(),), visibility=partial()), inside=False)
    none = observed([init()], msgspec.structs.replace(facts(()), gpus=Sample.error("no library")), inside=False)
    assert [check(some, number).outcome for number in (4, 8)] == [Outcome.NOT_SEEN, Outcome.NOT_SEEN]
    assert check(none, 8).outcome is Outcome.NOT_SEEN
    assert said(some, 8) == said(none, 8) == "nobody here holds a GPU, as far as could be seen: checks 6 and 7 say what was not"


def test_a_node_that_is_wholly_seen_has_a_fine_verdict() -> None:
    found = observed([init()], inside=False)
    assert [check(found, number).outcome for number in (4, 8)] == [Outcome.FINE, Outcome.FINE]
    assert said(found, 8) == "nobody here holds a GPU"


@pytest.mark.parametrize("sight", [FULL, partial()], ids=["too briefly", "not wholly"])
def test_memory_of_nobody_that_is_not_certain_is_told_with_its_reason_and_is_no_problem_yet(sight: Visibility) -> None:
    found = observed([init()], facts((gpu(used_mib=9000, samples=1),), visibility=sight, samples=1, span_s=0.0), inside=False)
    assert (check(found, 5).outcome, found.answer.exit) == (Outcome.NOT_SEEN, Exit.COULD_NOT)
    assert ("pending: a ghost needs" in said(found, 5), "a holder may be hidden" in said(found, 5)) == (
        sight is FULL,
        sight is not FULL,
    )
    assert found.answer.sentences[0].startswith("could not: GPU 0: 9000 MiB are held although no process explains them")


def test_a_certain_ghost_is_a_problem() -> None:
    found = observed([init()], facts((gpu(used_mib=9000),)), inside=False)
    assert (check(found, 5).outcome, found.answer.exit) == (Outcome.PROBLEM, Exit.FOUND_PROBLEMS)


def suspect(observation: Observation, pid: int) -> tuple[bool | None, bool | None, bool, bool]:
    (one,) = [one for one in observation.suspects if one.pid == pid]
    return one.in_nvml.known(), one.holds_device.known(), one.alive, one.problem


def of(processes: Sequence[ProcessFacts], *pids: int, inside: bool = False, sight: Visibility = FULL) -> Observation:
    seen = facts(
        (gpu(used_mib=8100, processes=tuple(listed(pid) for pid in pids)),), processes, visibility=blind() if inside else sight
    )
    return observed([init(), *processes], seen, inside=inside)


def test_on_a_node_the_combined_verdict_knows_all_three_answers() -> None:
    assert suspect(of([process(7)], 7), 7) == (True, True, True, False)
    assert suspect(of([process(7)]), 7) == (False, True, True, True)
    assert suspect(of([process(7, holds=())], 7), 7) == (True, False, True, False)
    assert suspect(of([], 7), 7) == (True, False, False, False)


def test_in_a_container_nvmls_answer_is_unknown_and_hides_nobody() -> None:
    found = of([process(7)], inside=True)
    assert suspect(found, 7) == (None, True, True, False)
    assert "cannot be told from here" in said(found, 8)


def test_where_descriptors_could_not_be_read_whether_it_holds_is_unknown() -> None:
    assert suspect(of([process(7, holds=())], 7, sight=partial()), 7) == (True, None, True, False)


def test_a_live_thread_of_a_dead_leader_is_named_and_a_plain_zombie_holds_nothing() -> None:
    threaded = process(7, state="Z", threads=2, holds=(hold(via=HoldVia.THREAD, thread_id=8),))
    assert suspect(of([threaded]), 7) == (False, True, True, True)
    assert "live thread 8 holds the device" in said(of([threaded]), 8)
    assert suspect(of([process(7, state="Z", holds=())], 7), 7) == (True, False, False, True)


def test_nvidiactl_alone_makes_no_holder() -> None:
    assert said(of([process(7, holds=(hold("nvidiactl", None),))]), 7) == "none"


HOSTILE = "x\x1b[2J\ny"


def test_foreign_text_is_shown_as_codes() -> None:
    text = observe_text(
        observed([init(), being(7, name=HOSTILE, command=Sample.measured(HOSTILE)), zombie(8, name=HOSTILE)]), width=80
    )
    assert not [letter for letter in text if not letter.isprintable() and letter != "\n"]


def test_eighty_columns_are_enough() -> None:
    crowd = [init(), *(being(pid, command=Sample.measured("python " * 30), adopted=Sample.measured(True)) for pid in range(5, 60))]
    assert [line for line in observe_text(observed(crowd), width=80).splitlines() if len(line) > 80] == []


@pytest.mark.parametrize(
    ("everyone", "seen", "code"),
    [
        ([init()], None, Exit.DONE),
        ([init(), zombie(8)], None, Exit.FOUND_PROBLEMS),
        ([init()], msgspec.structs.replace(facts(()), gpus=Sample.error("no library")), Exit.COULD_NOT),
    ],
    ids=["nothing", "zombie", "no NVML"],
)
def test_the_exit_code_follows_from_the_checks(everyone: Sequence[ProcessFacts], seen: NodeFacts | None, code: Exit) -> None:
    answer = observed(everyone, seen).answer
    assert (answer.exit, len(answer.sentences)) == (code, 1)


def test_the_command_prints_text_or_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    def world() -> NodeWorld:
        return NodeWorld([reading(FakeGpu())], [scan()], tree=[init(), zombie(8)], seen=blind(), pid1=TERM)

    assert run(world(), "observe") is Exit.FOUND_PROBLEMS
    text = capsys.readouterr().out
    assert text.startswith("Seen from a container")
    assert text.splitlines()[-1] == "problems found: check 3, zombies; check 8, combined verdict"
    assert run(world(), "observe", "-o", "json") is Exit.FOUND_PROBLEMS
    told = capsys.readouterr()
    assert decode(told.out, Observation, "stdout").answer.exit == 3
    assert json.loads(told.out)["checks"][2]["outcome"] == "problem"
    assert told.err.startswith("gpu-reclaim: problems found")
