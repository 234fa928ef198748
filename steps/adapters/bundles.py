"""Containers as the runtime runs them now: each live one has a bundle, whose annotations name its pod (containerd's CRI).

The only source that tells a sandbox's id, as gVisor's and Kata's processes show it, from a path that somebody made up. Of a bundle
nothing but the annotations is taken: the rest holds environments.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

STATES: Final = (Path("/run/containerd"), Path("/run/k3s/containerd"))
_TASKS: Final = "io.containerd.runtime.v2.task/k8s.io"
_CRI: Final = "io.kubernetes.cri."
_MAX_BYTES: Final = 4 * 1024 * 1024


class _Bundle(msgspec.Struct):
    """The part of config.json that is decoded; everything else is skipped."""

    annotations: dict[str, str] = {}


class RunningContainer(NamedTuple):
    """container: None for a sandbox."""

    id: str
    pod_uid: str
    namespace: str | None
    pod: str | None
    container: str | None


class Bundles:
    """The bundles below the state folders of the machine's containerd, where there are any and they may be read."""

    def __init__(self, states: Sequence[Path] = STATES) -> None:
        self._tasks = tuple(state / _TASKS for state in states)

    @property
    def there(self) -> Path | None:
        """The first folder of bundles that can be looked into."""
        return next((tasks for tasks in self._tasks if _is_folder(tasks)), None)

    def running(self, ids: Collection[str]) -> tuple[RunningContainer, ...]:
        """Those of these ids that run, with the pod that the runtime runs them for. ids: 64 hexadecimal letters each."""
        tasks = self.there
        if tasks is None:
            return ()
        found = (container_of(tasks / one / "config.json", one) for one in sorted(set(ids)))
        return tuple(one for one in found if one is not None)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def container_of(path: Path, container_id: str) -> RunningContainer | None:
    """What the annotations of a bundle say of it. None: no such bundle, not readable, not a pod's."""
    try:
        with path.open("rb") as file:
            notes = msgspec.json.decode(file.read(_MAX_BYTES), type=_Bundle).annotations
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    uid = notes.get(f"{_CRI}sandbox-uid")
    if uid is None:
        return None
    sandbox = notes.get(f"{_CRI}container-type") == "sandbox"
    name = notes.get(f"{_CRI}container-name")
    if name is None and not sandbox:
        return None
    return RunningContainer(
        id=container_id,
        pod_uid=uid,
        namespace=notes.get(f"{_CRI}sandbox-namespace"),
        pod=notes.get(f"{_CRI}sandbox-name"),
        container=None if sandbox else name,
    )
