"""The process tree that observe reads, on trees that real processes cannot make on demand."""

from pathlib import Path

import pytest

from steps.adapters.procfs.tree import MAX_PROCESSES, TreeReader
from steps.contracts.errors import SourceUnavailable
from steps.contracts.node_facts import VisibilityLevel
from steps.contracts.ports import SignalHandling
from tests.unit.proc_tree import proc_tree, stat_line


def signals(caught: int, ignored: int) -> str:
    return f"Name:\tx\nSigIgn:\t{ignored:016x}\nSigCgt:\t{caught:016x}\n"


TERM, CHLD = 1 << 14, 1 << 16


def test_every_process_is_there_with_its_parent_whatever_it_holds(tmp_path: Path) -> None:
    tree = proc_tree(tmp_path)
    tree.process(1, stat_line(1, "tini", parent=0))
    tree.process(7, stat_line(7, "a) Z 1 (b", parent=1))
    read = TreeReader(tree.root).read()
    assert [(one.pid, one.parent_pid, one.name, one.state) for one in read.processes] == [
        (1, 0, "tini", "S"),
        (7, 1, "a) Z 1 (b", "S"),
    ]
    assert (read.total, read.visibility.level) == (2, VisibilityLevel.FULL)


@pytest.mark.parametrize(
    ("caught", "ignored", "handling"),
    [
        (0, 0, SignalHandling(catches_term=False, ignores_child=False)),
        (TERM, 0, SignalHandling(catches_term=True, ignores_child=False)),
        (0, CHLD, SignalHandling(catches_term=False, ignores_child=True)),
        (TERM - 1, CHLD - 1, SignalHandling(catches_term=False, ignores_child=False)),
    ],
)
def test_what_pid_1_does_with_signals_is_read_from_its_masks(
    tmp_path: Path, caught: int, ignored: int, handling: SignalHandling
) -> None:
    tree = proc_tree(tmp_path)
    tree.process(1, status=signals(caught, ignored))
    assert TreeReader(tree.root).read().pid1 == handling


@pytest.mark.parametrize("status", ["", "SigIgn:\t0\n", "SigIgn:\tx\nSigCgt:\t0\n"])
def test_masks_that_cannot_be_read_are_unknown(tmp_path: Path, status: str) -> None:
    tree = proc_tree(tmp_path)
    tree.process(1, status=status)
    assert TreeReader(tree.root).read().pid1 is None


def test_another_pid_namespace_is_blind_with_its_reason(tmp_path: Path) -> None:
    tree = proc_tree(tmp_path, "pid:[4026532249]")
    read = TreeReader(tree.root).read()
    assert read.visibility.level is VisibilityLevel.BLIND
    assert "hostPID" in read.visibility.reasons[0]


def test_of_more_processes_than_anyone_reads_the_rest_is_counted(tmp_path: Path) -> None:
    tree = proc_tree(tmp_path)
    tree.process(1)
    for pid in range(2, MAX_PROCESSES + 3):
        (tree.root / str(pid)).mkdir()
    read = TreeReader(tree.root).read()
    assert (read.total, [one.pid for one in read.processes]) == (MAX_PROCESSES + 2, [1])


def test_no_proc_at_all_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="run this where /proc is mounted"):
        TreeReader(tmp_path / "nothing").read()
