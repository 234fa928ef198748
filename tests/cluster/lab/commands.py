"""Running a program to its end: always with a deadline, its words kept, a failure told with the last lines it wrote."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster.lab.errors import LabError

SHOWN_LINES = 15


def ran(
    argv: Sequence[str | Path],
    *,
    timeout_s: float,
    cwd: Path | None = None,
    more_environ: Mapping[str, str] | None = None,
    stdin: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """The finished run, whatever its exit code. Raises LabError if the program is missing or the deadline passed."""
    words = [str(word) for word in argv]
    try:
        return subprocess.run(
            words,
            cwd=cwd,
            env={**os.environ, **(more_environ or {})},
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise LabError(f"{words[0]} is not installed; docs/cluster-tests.md says what the test cluster needs") from error
    except subprocess.TimeoutExpired as error:
        raise LabError(f"`{_shown(words)}` did not end within {timeout_s:g} s; run it by hand to see where it stands") from error


def output_of(
    argv: Sequence[str | Path],
    *,
    timeout_s: float,
    cwd: Path | None = None,
    more_environ: Mapping[str, str] | None = None,
    stdin: str | None = None,
) -> str:
    """What the program wrote to stdout. Raises LabError with its last lines if it failed."""
    done = ran(argv, timeout_s=timeout_s, cwd=cwd, more_environ=more_environ, stdin=stdin)
    if done.returncode != 0:
        told = "\n".join((done.stdout + done.stderr).strip().splitlines()[-SHOWN_LINES:])
        raise LabError(f"`{_shown([str(word) for word in argv])}` ended with exit code {done.returncode}:\n{told}")
    return done.stdout


def _shown(words: Sequence[str]) -> str:
    line = " ".join(words)
    return line if len(line) <= 200 else line[:197] + "..."
