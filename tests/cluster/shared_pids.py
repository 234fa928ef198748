"""What becomes of an orphan in a pod whose containers share one PID namespace, as the node sees it."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steps.adapters.procfs.details import process_facts
from steps.node_view.reaping import reaping_of
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.lab import Lab

ORPHAN_S: Final = 1.5
SETTLED_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class UnderPid1:
    """The PID 1 of the namespace. adopted: an orphan was made its child; zombies: its children that nobody had reaped after the
    orphan's end. told, words: what observe says of reaping."""

    name: str
    adopted: bool
    zombies: list[int]
    told: bool | None
    words: str


def orphan_in(lab: Lab, namespace: str, pod: str, member: int) -> UnderPid1:
    """Leaves an orphan behind in the pod, as the end of an exec does; its streams are closed, because the exec waits for those.

    member: a PID of that pod on the node.
    """
    first = _first_of_namespace(member)
    leave = f"sleep {ORPHAN_S} > /dev/null 2>&1 < /dev/null & exit 0"
    lab.kubectl("exec", pod, f"--namespace={namespace}", "--", "sh", "-c", leave)
    adopted = "sleep S" in _children(first).values()
    lab.kubectl.wait("the orphan has ended", lambda: "sleep S" not in _children(first).values(), within_s=10)
    time.sleep(SETTLED_S)
    facts = process_facts("/proc", first, ())
    if facts is None:
        raise LabError(f"PID {first}, which is PID 1 of pod {pod}, is gone")
    told, words = reaping_of(facts, None)
    return UnderPid1(facts.name, adopted, [pid for pid, seen in _children(first).items() if seen.endswith(" Z")], told, words)


def _first_of_namespace(member: int) -> int:
    """PID 1 of the namespace that `member` is in, by its PID here."""
    namespace = Path(f"/proc/{member}/ns/pid").readlink()
    for process in [entry for entry in Path("/proc").iterdir() if entry.name.isdecimal()]:
        try:
            numbers = (process / "status").read_text(encoding="utf-8", errors="replace").partition("NSpid:")[2].partition("\n")[0]
            if numbers.split()[-1:] == ["1"] and (process / "ns" / "pid").readlink() == namespace:
                return int(process.name)
        except OSError:
            continue
    raise LabError(f"PID {member} is in {namespace}, which has no PID 1 here")


def _children(pid: int) -> dict[int, str]:
    """Name and state of each child; empty for one that is gone by now."""
    return {int(word): _stat(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()}


def _stat(pid: str) -> str:
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").partition("(")[2].rpartition(")")
    except OSError:
        return ""
    return f"{name} {rest.split()[0]}"
