"""The scenarios as data: what each is made of, and what was expected before anything was measured. In order."""

import enum
from dataclasses import dataclass
from typing import Final

STAYS: Final = ("/bin/bash", "-c", "while true; do sleep 1; done")
"""bash remains PID 1 and waits for a foreground child: it reaps what it adopts (facts/gpu-and-linux 4.7)."""
EXECS: Final = ("/bin/bash", "-c", "sleep infinity")
"""bash execs its last simple command, so PID 1 is sleep, which never waits."""


class ScenarioId(enum.Enum):
    S1_STAYS = "s1-stays"
    S1_EXECS = "s1-execs"
    S2 = "s2"
    S3 = "s3"
    S4 = "s4"


class Row(enum.Enum):
    """What is asked of every scenario; the rows of the seed's table, in its order and words."""

    REAPED = "zombies reaped"
    ORPHAN = "orphan holding the GPU"
    CLEAN_UP = "SIGTERM leads to CUDA clean-up"
    KILLED_CONTEXT = "orphaned context after kill -9"
    AFTER_DELETION = "memory after pod deletion"
    REBOOT = "node reboot"


@dataclass(frozen=True, slots=True)
class Scenario:
    """number: 1 to 4, as in `results/scenario-<number>`. command: of the container; empty means the image's own.

    image: the tag's first part. expected: the seed's words, never changed by what is measured.
    """

    id: ScenarioId
    number: int
    title: str
    pod: str
    image: str
    worker: str
    command: tuple[str, ...]
    prestop: bool
    pid1: str
    expected: dict[Row, str]


def _expected(*words: str) -> dict[Row, str]:
    return dict(zip(Row, words, strict=True))


_S1 = _expected("no", "stays", "no", "yes", "may stay", "possible")

SCENARIOS: Final[dict[ScenarioId, Scenario]] = {
    one.id: one
    for one in (
        Scenario(
            id=ScenarioId.S1_STAYS,
            number=1,
            title="no fix, the shell stays PID 1",
            pod="gpu-zombie-nofix",
            image="nofix",
            worker="gpu_worker.py",
            command=STAYS,
            prestop=False,
            pid1="bash",
            expected=_S1,
        ),
        Scenario(
            id=ScenarioId.S1_EXECS,
            number=1,
            title="no fix, the shell execs its last command",
            pod="gpu-zombie-nofix",
            image="nofix",
            worker="gpu_worker.py",
            command=EXECS,
            prestop=False,
            pid1="sleep",
            expected=_S1,
        ),
        Scenario(
            id=ScenarioId.S2,
            number=2,
            title="tini only",
            pod="gpu-zombie-tini",
            image="tini",
            worker="gpu_worker.py",
            command=(),
            prestop=False,
            pid1="tini",
            expected=_expected("yes", "stays", "no", "yes", "uncertain", "possible"),
        ),
        Scenario(
            id=ScenarioId.S3,
            number=3,
            title="tini and preStop",
            pod="gpu-zombie-tini-prestop",
            image="tini",
            worker="gpu_worker.py",
            command=(),
            prestop=True,
            pid1="tini",
            expected=_expected("yes", "until the SIGKILL fallback", "no", "possible", "uncertain", "possible"),
        ),
        Scenario(
            id=ScenarioId.S4,
            number=4,
            title="full fix: tini, preStop, handler",
            pod="gpu-zombie-fullfix",
            image="fullfix",
            worker="gpu_worker_fixed.py",
            command=(),
            prestop=True,
            pid1="tini",
            expected=_expected("yes", "leaves by itself", "yes", "n/a", "free", "not needed"),
        ),
    )
}
