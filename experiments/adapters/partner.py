"""How drive and watch know of each other on a real node.

watch touches a file when it is ready, its pod's readiness probe sees that, and drive reads the pod's condition. watch sees drive as
a process of its node. So the probe's account needs no right in the API, and drive none on the node.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from experiments.zombie.ports import Watching
from steps.adapters.kubernetes.answers import body_of
from steps.adapters.kubernetes.api import Api
from steps.adapters.kubernetes.fields import list_at, path_of, text_at, texts_at
from steps.contracts.files import write_atomically

READY_FILE: Final = Path("/tmp/watching")
WORKFLOW_LABEL: Final = "workflows.argoproj.io/workflow"
STEP_LABEL: Final = "gpu-reclaim.dev/step"
SCENARIO_LABEL: Final = "gpu-reclaim.dev/scenario"
ENDED: Final = ("Succeeded", "Failed")
_CORE: Final = "/api/v1"


def under_way(api: Api, namespace: str, run: str) -> bool:
    """Whether a pod of drive or watch of this run has not ended. Raises SourceUnavailable."""
    path = path_of(_CORE, namespace, "pods")
    pods = list_at(body_of(api.list(path, label_selector=f"{WORKFLOW_LABEL}={run}"), "list", path), "items")
    mine = (pod for pod in pods if texts_at(pod, "metadata", "labels").get(STEP_LABEL) in ("drive", "watch"))
    return any(text_at(pod, "status", "phase") not in ENDED for pod in mine)


class DrivesPartner:
    """Fits ports.Partner for drive. namespace: the Workflow's."""

    def __init__(self, api: Api, namespace: str, run: str, scenario: str) -> None:
        self._api, self._namespace = api, namespace
        self._selector = f"{WORKFLOW_LABEL}={run},{STEP_LABEL}=watch,{SCENARIO_LABEL}={scenario}"

    def watching(self) -> Watching:
        """Raises SourceUnavailable if the pods of the run may not be listed."""
        path = path_of(_CORE, self._namespace, "pods")
        pods = list_at(body_of(self._api.list(path, label_selector=self._selector), "list", path), "items")
        for pod in pods:
            if any(one.get("type") == "Ready" and one.get("status") == "True" for one in list_at(pod, "status", "conditions")):
                return Watching.READY
        ended = [pod for pod in pods if text_at(pod, "status", "phase") in ENDED or _main_ended(pod)]
        return Watching.ENDED if pods and len(ended) == len(pods) else Watching.NOT_YET

    def driving(self) -> bool:
        return True

    def say_ready(self) -> None:
        """Nobody asks drive."""


class WatchsPartner:
    """Fits ports.Partner for watch."""

    def __init__(self, environment: Mapping[str, str], run: str, scenario: str, proc: Path = Path("/proc")) -> None:
        self._proc, self._ready = proc, Path(environment.get("GPU_RECLAIM_READY_FILE") or READY_FILE)
        self._words = {f"--run={run}", f"--scenario={scenario}", "drive"}
        self._known: Path | None = None

    def watching(self) -> Watching:
        return Watching.READY if self._ready.exists() else Watching.NOT_YET

    def driving(self) -> bool:
        """By its command line. The last process found is asked first: a walk through /proc only when it is gone."""
        if self._known is not None and self._drives(self._known):
            return True
        self._known = next((one for one in self._proc.iterdir() if one.name.isdecimal() and self._drives(one)), None)
        return self._known is not None

    def say_ready(self) -> None:
        write_atomically(self._ready, b"ready\n")

    def _drives(self, process: Path) -> bool:
        """The emissary around it carries the same words, and lives until it has saved the outputs: it is not meant."""
        try:
            words = (process / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            return False
        return self._words <= set(words) and "emissary" not in words


def _main_ended(pod: Mapping[str, object]) -> bool:
    statuses = list_at(pod, "status", "containerStatuses")
    return any(one.get("name") == "main" and "terminated" in (one.get("state") or {}) for one in statuses)
