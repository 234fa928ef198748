"""Why it came out as measured: what is known of kernel, shell, kubelet and driver, said for this scenario. Pure.

Each sentence rests on facts/gpu-and-linux 4 (measured on Linux) or on public sources about the driver: docs/experiments.md.
"""

from typing import Final

from experiments.zombie.results import Word
from experiments.zombie.scenarios import Row, Scenario

_NAMESPACE: Final = "The kernel kills every process of a PID namespace when its PID 1 ends, so no orphan outlives its container"
_FILES: Final = (
    "SIGKILL closes all files of a process, and the driver frees a client's memory with the last reference to its open file"
)

_BY_WORD: Final[dict[tuple[Row, Word], str]] = {
    (Row.ORPHAN, Word.AT_GRACE): (
        f"{_NAMESPACE}; here PID 1 has no SIGTERM handler, so it ignores it and lives until the kubelet's SIGKILL."
    ),
    (Row.ORPHAN, Word.BY_HOOK): (
        "The hook's SIGTERM is ignored, so it waits its full time and then kills. tini alone would have ended the orphan at once, "
        "with PID 1's namespace: the hook makes this end later, not cleaner."
    ),
    (
        Row.ORPHAN,
        Word.LEFT,
    ): "The hook finds the worker by the device it has open and sends SIGTERM; the handler frees the memory and exits.",
    (
        Row.ORPHAN,
        Word.WITH_PID1,
    ): f"{_NAMESPACE}; tini hands SIGTERM to its child, ends with it, and takes the orphan along at once.",
    (Row.ORPHAN, Word.STAYS): (
        "Something outside the container's PID namespace, or in uninterruptible sleep, kept it: nothing else survives PID 1's end."
    ),
    (Row.CLEAN_UP, Word.YES): (
        "It was the preStop hook that delivered SIGTERM: the kubelet signals PID 1 alone, and tini only its own child, which an "
        "orphaned worker is not."
    ),
    (Row.KILLED_CONTEXT, Word.NO): f"{_FILES}. A zombie holds no files, so it holds no memory either.",
    (Row.KILLED_CONTEXT, Word.YES): (
        "The memory stays as long as anybody has the same open file (a forked child, a thread, a mapping), or a context beside it."
    ),
    (Row.AFTER_DELETION, Word.FREE): f"Every process of the container is dead once PID 1 is. {_FILES}.",
    (
        Row.AFTER_DELETION,
        Word.STAYS,
    ): "Somebody still holds the device, or the driver could not let go: see what the recording names.",
    (
        Row.REBOOT,
        Word.NOT_NEEDED,
    ): "Only what the driver cannot release (D state, a lost GPU) needs a reset or a reboot; a signal is enough for the rest.",
    (Row.REBOOT, Word.PROPOSED): "The cheapest remedy that can work; a person decides and carries it out.",
}


def why(scenario: Scenario, row: Row, word: Word, sentence: str) -> str:
    """The reason behind a measurement, empty where none is known."""
    if row is Row.REAPED:
        return _reaping(scenario, word)
    if row is Row.CLEAN_UP and word is Word.NO:
        return _no_clean_up(scenario, sentence)
    return _BY_WORD.get((row, word), "")


def _reaping(scenario: Scenario, word: Word) -> str:
    if word is Word.YES and scenario.pid1 == "bash":
        return "A shell that stays PID 1 waits for its foreground command, and with it reaps every orphan it was given."
    if word is Word.NO and scenario.pid1 == "sleep":
        return (
            "bash execs the last simple command of -c, so PID 1 is sleep, which never waits for a child: the zombie stays until "
            "the container ends. It holds no GPU memory, only a PID."
        )
    if word is Word.YES and scenario.pid1 == "tini":
        return "tini is an init: it waits for every child it adopts."
    return f"PID 1 is {scenario.pid1}."


def _no_clean_up(scenario: Scenario, sentence: str) -> str:
    if "ignored" in sentence:
        return "The worker's handler does nothing; no signal but SIGKILL ends it."
    if "began" in sentence:
        return "The handler needs more time than the hook gave it before its SIGKILL: raise prestop-wait-s."
    if "did not run" in sentence:
        return "A hook that fails delays nothing: the kubelet ends the container all the same, and says why in an Event of the pod."
    if scenario.pid1 == "tini":
        return "tini hands SIGTERM to its own child only; the worker was adopted, so it is not that child."
    return "The kubelet sends SIGTERM to PID 1 alone, and a shell or sleep does not hand it on."
