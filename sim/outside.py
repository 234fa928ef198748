"""Everything a step may touch, simulated: the real Kubernetes adapters over the simulated API, and a simulated node.

Only the lowest transport is not real, so the code that stops a session in the demo is the code that stops one in a cluster.
"""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

from sim.api import StateFileApi
from sim.clock import SimulatedClock
from sim.readers import SimulatedAllocations, SimulatedGpus, SimulatedPodFolders, SimulatedProcesses, SimulatedTree
from sim.runs import LocalRuns
from steps.adapters.kubernetes.cluster import KubernetesCluster
from steps.adapters.kubernetes.decisions import ConfigMapDecisions
from steps.adapters.kubernetes.events import KubernetesEvents
from steps.adapters.kubernetes.intents import ConfigMapIntents
from steps.adapters.kubernetes.memory import ConfigMapMemory
from steps.adapters.kubernetes.owners import KubernetesOwners
from steps.contracts.document import Origin
from steps.contracts.errors import BadInput
from steps.contracts.ports import (
    AllocationReader,
    Clock,
    ClusterReader,
    DecisionStore,
    EventSink,
    GpuReader,
    IntentStore,
    MemoryStore,
    OwnerSwitch,
    PodFolderReader,
    ProcessReader,
    ProcessTreeReader,
    RunReader,
)

NODE_VARIABLE: Final = "GPU_RECLAIM_NODE"
"""The node a container runs on; the local runner sets it where a template selects a node."""
RUNS_VARIABLE: Final = "GPU_RECLAIM_RUNS_DIR"
"""Where the local runner records its runs."""
NAMESPACE_VARIABLE: Final = "GPU_RECLAIM_NAMESPACE"


class SimulatedOutside:
    """Implements steps.contracts.ports.Outside over one state file."""

    origin = Origin.SIMULATED

    def __init__(self, state_path: str, environ: Mapping[str, str]) -> None:
        self.environment: Mapping[str, str] = environ
        self._path = Path(state_path)
        self._api = StateFileApi(self._path)
        self._namespace = environ.get(NAMESPACE_VARIABLE, "gpu-reclaim")

    @cached_property
    def clock(self) -> Clock:
        return SimulatedClock(self._path)

    def gpus(self) -> GpuReader:
        return SimulatedGpus(self._path, self._variable(NODE_VARIABLE))

    def processes(self) -> ProcessReader:
        return SimulatedProcesses(self._path, self._variable(NODE_VARIABLE))

    def allocations(self) -> AllocationReader:
        return SimulatedAllocations(self._path, self._variable(NODE_VARIABLE))

    def pods_on_disk(self) -> PodFolderReader:
        return SimulatedPodFolders(self._path, self._variable(NODE_VARIABLE))

    def process_tree(self) -> ProcessTreeReader:
        return SimulatedTree(self._path, self._variable(NODE_VARIABLE))

    def cluster(self) -> ClusterReader:
        return KubernetesCluster(self._api, self.clock)

    def owners(self) -> OwnerSwitch:
        return KubernetesOwners(self._api)

    def decisions(self) -> DecisionStore:
        return ConfigMapDecisions(self._api, self._namespace)

    def memory(self) -> MemoryStore:
        return ConfigMapMemory(self._api, self._namespace)

    def intents(self) -> IntentStore:
        return ConfigMapIntents(self._api, self._namespace)

    def events(self) -> EventSink:
        return KubernetesEvents(self._api, self._namespace, self.clock)

    def runs(self) -> RunReader:
        return LocalRuns(Path(self._variable(RUNS_VARIABLE)))

    def _variable(self, name: str) -> str:
        value = self.environment.get(name)
        if not value:
            raise BadInput(f"{name} is not set; the simulator needs it, `gpu-reclaim run` sets it")
        return value
