"""Where the test cluster keeps things: below one cache folder outside the checkout, but for three fixed paths."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[3]

DEVICE_PLUGINS: Final = Path("/var/lib/kubelet/device-plugins")
"""Where kubelet listens for device plugins and keeps its checkpoint, whatever its own root folder is."""
SIMULATED_GPU: Final = Path("/var/lib/gpu-sim")
"""State of the simulated GPUs of this node; pods see it under the same path."""
EVENTS_CONFIGURATION: Final = Path("/etc/argo-events/controller-config.yaml")
"""The only path from which the Argo Events controller reads its configuration."""


@dataclass(frozen=True, slots=True)
class Places:
    """Folders below the cache: sources, bin and images are kept from run to run, `run` holds one cluster's state."""

    cache: Path

    @property
    def sources(self) -> Path:
        return self.cache / "sources"

    @property
    def bin(self) -> Path:
        return self.cache / "bin"

    @property
    def images(self) -> Path:
        return self.cache / "images"

    @property
    def buildah(self) -> Path:
        return self.cache / "buildah"

    @property
    def wheels(self) -> Path:
        return self.cache / "wheels"

    @property
    def seeds(self) -> Path:
        return self.cache / "seeds"

    @property
    def run(self) -> Path:
        return self.cache / "run"

    @property
    def logs(self) -> Path:
        """Of the cluster that runs, or of the last one: kept when it ends, emptied when the next begins."""
        return self.cache / "logs"


def places(environ: Mapping[str, str] = os.environ) -> Places:
    """`$XDG_CACHE_HOME/gpu-reclaim`, or `~/.cache/gpu-reclaim`."""
    base = environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Places(Path(base) / "gpu-reclaim")
