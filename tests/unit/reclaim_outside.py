"""An Outside for tests of whole steps: the real Kubernetes adapters over an ApiDouble, and a clock that costs nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from steps.adapters.kubernetes.cluster import KubernetesCluster
from steps.adapters.kubernetes.decisions import ConfigMapDecisions
from steps.adapters.kubernetes.events import KubernetesEvents
from steps.adapters.kubernetes.intents import ConfigMapIntents
from steps.adapters.kubernetes.owners import KubernetesOwners
from steps.contracts.declaration import Inputs, Step
from steps.contracts.document import Origin
from steps.contracts.ports import Outside
from tests.unit.api_double import ApiDouble, FakeClock

GPU_RECLAIM = "gpu-reclaim"


@dataclass
class ApiOutside:
    """The part of the outside that an account with API rights has."""

    api: ApiDouble
    clock: FakeClock = field(default_factory=FakeClock)
    origin: Origin = Origin.SIMULATED

    def cluster(self) -> KubernetesCluster:
        return KubernetesCluster(self.api, self.clock)

    def owners(self) -> KubernetesOwners:
        return KubernetesOwners(self.api)

    def decisions(self) -> ConfigMapDecisions:
        return ConfigMapDecisions(self.api, GPU_RECLAIM)

    def intents(self) -> ConfigMapIntents:
        return ConfigMapIntents(self.api, GPU_RECLAIM)

    def events(self) -> KubernetesEvents:
        return KubernetesEvents(self.api, GPU_RECLAIM, self.clock)


def outside(api: ApiDouble) -> Outside:
    return cast("Outside", ApiOutside(api))


def inputs(step: Step, folder: Path, **values: str) -> Inputs:
    """Inputs of a step by name (underscores for hyphens); each output goes to `<folder>/<name>`."""
    given: Mapping[str, str] = {name.replace("_", "-"): value for name, value in values.items()}
    return Inputs(step, given, {out.name: str(folder / out.name) for out in step.outputs})
