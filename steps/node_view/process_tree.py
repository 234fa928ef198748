"""A process tree as indented lines. Pure."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from steps.contracts.node_facts import ProcessFacts

MAX_COMMAND: Final = 100


def tree_lines(processes: Sequence[ProcessFacts], wanted: Collection[int] | None) -> list[str]:
    """`PID STATE name  command`, children below their parent. wanted: only branches that lead to these; None: all.

    A parent that is not visible (PPid 0: started from outside the namespace) makes its children roots.
    """
    by_pid = {one.pid: one for one in processes}
    kept = set(by_pid) if wanted is None else {pid for start in wanted for pid in _upwards(start, by_pid)}
    children: dict[int, list[int]] = {}
    roots = []
    for pid in sorted(kept):
        parent = by_pid[pid].parent_pid
        if parent in kept and parent != pid:
            children.setdefault(parent, []).append(pid)
        else:
            roots.append(pid)
    return [line for root in roots or sorted(kept)[:1] for line in _branch(root, by_pid, children)]


def _upwards(pid: int, by_pid: dict[int, ProcessFacts]) -> Iterator[int]:
    """It and its ancestors. Bounded: parents read at different moments could form a ring."""
    for _ in range(len(by_pid)):
        if pid not in by_pid:
            return
        yield pid
        pid = by_pid[pid].parent_pid


def _branch(root: int, by_pid: dict[int, ProcessFacts], children: dict[int, list[int]]) -> Iterator[str]:
    stack, drawn = [(root, 0)], set[int]()
    while stack:
        pid, depth = stack.pop()
        if pid in drawn:
            continue
        drawn.add(pid)
        process = by_pid[pid]
        command = process.command.known()
        words = "" if command is None else f"  {command[:MAX_COMMAND]}"
        yield f"{'  ' * depth}{pid} {process.state} {process.name}{words}"
        stack.extend((child, depth + 1) for child in reversed(children.get(pid, [])))
