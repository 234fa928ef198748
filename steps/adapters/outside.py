"""The real outside, made piece by piece when first asked for: a step without API calls never loads the API client."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steps.contracts.document import Origin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steps.adapters.kubernetes.api import Api
    from steps.adapters.kubernetes.installation import KubernetesInstallation
    from steps.contracts import ports

NAMESPACE_VARIABLE: Final = "GPU_RECLAIM_NAMESPACE"
DEFAULT_NAMESPACE: Final = "gpu-reclaim"
KUBELET_ROOT_VARIABLE: Final = "GPU_RECLAIM_KUBELET_ROOT"
"""The kubelet's --root-dir where it is another one; the device plugins' folder is a fixed path all the same."""
CONTAINERD_STATE_VARIABLE: Final = "GPU_RECLAIM_CONTAINERD_STATE"
"""containerd's `state` folder where it is another one than /run/containerd or k3s's."""
DEFAULT_KUBELET_ROOT: Final = "/var/lib/kubelet"
PROC: Final = Path("/proc")
CHECKPOINT: Final = Path("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint")
# ruff: noqa: PLC0415 - importing late is what this module is for


class RealOutside:
    """Fits ports.Outside."""

    origin = Origin.REAL

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment: Mapping[str, str] = environment

    @cached_property
    def clock(self) -> ports.Clock:
        from steps.adapters.clock import SystemClock

        return SystemClock()

    def gpus(self) -> ports.GpuReader:
        return self._gpus

    @cached_property
    def _gpus(self) -> ports.GpuReader:
        """One for all looks: it remembers a child that hangs in the driver, and starts no second one beside it."""
        from steps.adapters.nvml import NvmlReader

        return NvmlReader()

    def processes(self) -> ports.ProcessReader:
        from steps.adapters.procfs import ProcfsReader

        return ProcfsReader(root=PROC)

    def allocations(self) -> ports.AllocationReader:
        from steps.adapters.kubelet import CheckpointReader

        return CheckpointReader(CHECKPOINT)

    def pods_on_disk(self) -> ports.PodFolderReader:
        from steps.adapters.bundles import Bundles
        from steps.adapters.pods_on_disk import PodFolders

        state = self.environment.get(CONTAINERD_STATE_VARIABLE)
        return PodFolders(
            pods=Path(self.environment.get(KUBELET_ROOT_VARIABLE) or DEFAULT_KUBELET_ROOT) / "pods",
            bundles=Bundles([Path(state)]) if state else Bundles(),
        )

    def process_tree(self) -> ports.ProcessTreeReader:
        from steps.adapters.procfs.tree import TreeReader

        return TreeReader(PROC)

    def cluster(self) -> ports.ClusterReader:
        from steps.adapters.kubernetes.cluster import KubernetesCluster

        return KubernetesCluster(self._api, self.clock)

    def owners(self) -> ports.OwnerSwitch:
        from steps.adapters.kubernetes.owners import KubernetesOwners

        return KubernetesOwners(self._api)

    def decisions(self) -> ports.DecisionStore:
        from steps.adapters.kubernetes.decisions import ConfigMapDecisions

        return ConfigMapDecisions(self._api, self._namespace)

    def memory(self) -> ports.MemoryStore:
        from steps.adapters.kubernetes.memory import ConfigMapMemory

        return ConfigMapMemory(self._api, self._namespace)

    def intents(self) -> ports.IntentStore:
        from steps.adapters.kubernetes.intents import ConfigMapIntents

        return ConfigMapIntents(self._api, self._namespace)

    def events(self) -> ports.EventSink:
        from steps.adapters.kubernetes.events import KubernetesEvents

        return KubernetesEvents(self._api, self._namespace, self.clock)

    def runs(self) -> ports.RunReader:
        from steps.adapters.kubernetes.runs import ArgoRuns

        return ArgoRuns(self._api, self._namespace)

    def installation(self) -> KubernetesInstallation:
        """For doctor; no step asks for it, so it is no part of ports.Outside."""
        from steps.adapters.kubernetes.installation import KubernetesInstallation

        return KubernetesInstallation(self._api, self._namespace, self.clock)

    @cached_property
    def _api(self) -> Api:
        from steps.adapters.kubernetes.client import RealApi

        return RealApi(self.environment)

    @property
    def _namespace(self) -> str:
        return self.environment.get(NAMESPACE_VARIABLE) or DEFAULT_NAMESPACE
