"""The simulated GPU of the node: its folder and library, its device plugin, and the OCI runtime that lays it into containers."""

import sys
from typing import Final

from tests.cluster.lab.certificates import NODE
from tests.cluster.lab.commands import output_of
from tests.cluster.lab.kubectl import Json, Kubectl
from tests.cluster.lab.places import CHECKOUT, SIMULATED_GPU, Places
from tests.cluster.lab.processes import Ledger

COUNT: Final = 1
RESOURCE: Final = "nvidia.com/gpu"
ADVERTISED_S: Final = 20.0
RUNTIME: Final = SIMULATED_GPU / "bin" / "nvidia-container-runtime"
"""The launcher that `gpusim install` writes; containerd starts it instead of runc for RuntimeClass `nvidia`."""

_FROM_CHECKOUT: Final = {"PYTHONPATH": str(CHECKOUT)}


def prepare(where: Places) -> None:
    """Build the simulated NVML library and install the folder with COUNT free GPUs; a state left by another run goes."""
    library = where.run / "libnvidia-ml.so.1"
    output_of(["sh", CHECKOUT / "sim" / "nvml" / "build.sh", library], timeout_s=120)
    order = [f"--folder={SIMULATED_GPU}", "install", f"--gpus={COUNT}", f"--library={library}"]
    output_of([sys.executable, "-m", "sim.node.gpusim", *order], timeout_s=30, more_environ=_FROM_CHECKOUT)


def start_device_plugin(ledger: Ledger) -> None:
    """It registers by itself as soon as the kubelet listens, and again when a new kubelet does."""
    argv = [sys.executable, "-m", "sim.node.device_plugin", f"--folder={SIMULATED_GPU}"]
    ledger.start("device-plugin", argv, _FROM_CHECKOUT)


def runtime_class() -> Json:
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "nvidia"}


def gpus_advertised(kubectl: Kubectl) -> int | None:
    """How many GPUs the node says it can give; None while it says nothing."""
    node = kubectl.get("node", NODE)
    told = None if node is None else node.get("status", {}).get("allocatable", {}).get(RESOURCE)
    return None if told is None else int(told)
