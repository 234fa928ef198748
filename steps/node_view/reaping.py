"""Will PID 1 take away its dead? Judged by what it really is, never by the configured command (facts/gpu-and-linux 4.7). Pure."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from steps.contracts.node_facts import ProcessFacts
from steps.contracts.ports import SignalHandling

INITS: Final = frozenset(
    {
        "tini",
        "tini-static",
        "docker-init",
        "dumb-init",
        "catatonit",
        "s6-svscan",
        "pause",
        "systemd",
        "init",
    }
)
SHELLS: Final = frozenset({"bash", "dash"})


def reaping_of(pid1: ProcessFacts, signals: SignalHandling | None) -> tuple[bool | None, str]:
    """Whether orphans that end below it are taken away, and the sentence; None: it cannot be told from here."""
    if signals is not None and signals.ignores_child:
        return True, "it ignores SIGCHLD, so the kernel takes away whatever ends below it"
    executable = pid1.executable.known()
    if executable is None:
        return None, f"what it runs cannot be read, so whether it reaps is unknown: {pid1.executable.reason}"
    name = PurePosixPath(executable.removesuffix(" (deleted)")).name
    if name in INITS:
        return True, f"{name} reaps orphans at once"
    if name in SHELLS:
        return True, f"{name} stayed PID 1 and reaps orphans while it waits; dash inside its builtin `read` does not"
    if name == "busybox":
        return _of_busybox(pid1)
    return (
        False,
        f"{name} is no init: orphans that end stay zombies until the container ends, unless the program waits for strangers",
    )


def _of_busybox(pid1: ProcessFacts) -> tuple[bool | None, str]:
    """One program with many names; the name it was called by stands in its command line."""
    command = pid1.command.known()
    words = () if command is None else tuple(PurePosixPath(word).name for word in command.split()[:2])
    if words[:1] in (("init",), ("linuxrc",)) or words == ("busybox", "init"):
        return True, "busybox init reaps orphans, about once a second"
    return None, "busybox as init reaps within a second, its shell does not while it runs a command: which it is cannot be told"


def on_term(signals: SignalHandling | None) -> str:
    """What a SIGTERM to PID 1 does (facts 4.8)."""
    if signals is None:
        return "whether it handles SIGTERM cannot be read"
    if signals.catches_term:
        return "it has a handler for SIGTERM"
    return "it has no handler for SIGTERM and ignores it: it will die by SIGKILL at the end of the grace period"


def who_reaps(zombie: ProcessFacts, everyone: Sequence[ProcessFacts]) -> str:
    """Who alone can take a zombie away, and when."""
    if zombie.threads > 1:
        return f"a dead leader: nobody can reap it before its {zombie.threads - 1} live threads end"
    parent = next((one for one in everyone if one.pid == zombie.parent_pid), None)
    named = f"PID {zombie.parent_pid}" + (f" ({parent.name})" if parent is not None else "")
    if zombie.parent_pid == 1:
        return f"waits for {named} to reap it"
    if zombie.parent_pid == 0:
        return "its parent is outside this PID namespace and has to reap it"
    return f"its parent {named} lives and does not wait: nobody else can reap it"
