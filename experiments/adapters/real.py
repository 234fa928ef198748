"""The experiment's outside on a real cluster, made piece by piece when first asked for."""
# ruff: noqa: PLC0415 - importing late is what this module is for

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from steps.adapters.outside import CHECKPOINT, DEFAULT_NAMESPACE, NAMESPACE_VARIABLE, RealOutside
from steps.contracts.document import Sample
from steps.contracts.ports import DeviceNode, Outside

if TYPE_CHECKING:
    from experiments.zombie.ports import Glances, Partner, Sessions
    from steps.adapters.kubernetes.api import Api

KERNEL = Path("/proc/sys/kernel/osrelease")
NODE_ROLE = "GPU_RECLAIM_NODE_POD"
"""Set in node pods: they have no token, so their partner is found on the node and not in the API."""


class RealZombieOutside:
    """Fits ports.ZombieOutside."""

    def __init__(self, base: RealOutside) -> None:
        self._base = base

    @property
    def base(self) -> Outside:
        return self._base

    def sessions(self, namespace: str) -> "Sessions":
        from experiments.adapters.execute import WebsocketExec
        from experiments.adapters.sessions import KubernetesSessions
        from experiments.zombie.manifest import LONGEST_LIFE_S
        from steps.adapters.kubernetes.client import RealApi

        patient = RealApi(self._base.environment, timeout_s=(5.0, float(LONGEST_LIFE_S)))
        return KubernetesSessions(self._api, WebsocketExec(self._base.environment), namespace, patient=patient)

    def partner(self, run: str, scenario: str) -> "Partner":
        from experiments.adapters.partner import DrivesPartner, WatchsPartner

        if self._base.environment.get(NODE_ROLE):
            return WatchsPartner(self._base.environment, run, scenario)
        return DrivesPartner(self._api, self._namespace, run, scenario)

    def under_way(self, run: str) -> bool:
        from experiments.adapters.partner import under_way

        return under_way(self._api, self._namespace, run)

    def glances(self, devices: Sequence[DeviceNode]) -> "Glances":
        from experiments.adapters.glances import NodeGlances, opened_nvml

        return NodeGlances(opened_nvml(), CHECKPOINT, devices)

    def kernel(self) -> Sample[str]:
        try:
            return Sample.measured(KERNEL.read_text(encoding="ascii").strip(), str(KERNEL))
        except OSError as error:
            return Sample.error(f"{KERNEL} cannot be read: {error.strerror}")

    def beside(self, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread

    def pace(self, seconds: float) -> None:
        self._base.clock.sleep(seconds)

    @property
    def _namespace(self) -> str:
        return self._base.environment.get(NAMESPACE_VARIABLE) or DEFAULT_NAMESPACE

    @cached_property
    def _api(self) -> "Api":
        from steps.adapters.kubernetes.client import RealApi

        return RealApi(self._base.environment)
