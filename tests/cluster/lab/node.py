"""containerd and kubelet: the one node of the cluster."""

import socket
from pathlib import Path
from typing import Final

from tests.cluster.lab import settings
from tests.cluster.lab.certificates import NODE
from tests.cluster.lab.controlplane import certificates, kubeconfig
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.imagestore import store_of, take_over
from tests.cluster.lab.kubectl import Kubectl
from tests.cluster.lab.network import NODE_ADDRESS, NetworkNamespace
from tests.cluster.lab.places import DEVICE_PLUGINS, Places
from tests.cluster.lab.processes import Ledger

CONTAINERD_S: Final = 20.0
READY_S: Final = 60.0


def home(where: Places) -> Path:
    """Of containerd: state, socket, configuration."""
    return where.run / "containerd"


def socket_of(where: Places) -> Path:
    return home(where) / "containerd.sock"


def refuse_foreign_kubelet() -> None:
    """Raises LabError where a kubelet that is not ours serves the device plugin folder, whose path nobody can change."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2.0)
        try:
            probe.connect(str(DEVICE_PLUGINS / "kubelet.sock"))
        except OSError:
            return
    raise LabError(f"another kubelet runs on this machine and owns {DEVICE_PLUGINS}; use a machine without Kubernetes")


def start_containerd(where: Places, network: NetworkNamespace, ledger: Ledger, nvidia_runtime: Path) -> None:
    """containerd in the cluster's namespace; returns when it answers."""
    place = home(where)
    (place / "cni").mkdir(parents=True, exist_ok=True)
    (place / "containerd.toml").write_text(settings.containerd(place, store_of(where), nvidia_runtime), encoding="utf-8")
    (place / "cni" / "10-bridge.conflist").write_text(settings.cni(place), encoding="utf-8")
    take_over(where)
    ledger.start("containerd", [*network.inside(), "containerd", "--config", place / "containerd.toml"])
    ledger.wait("containerd", "containerd answers", lambda: _answers(socket_of(where)), within_s=CONTAINERD_S)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def start_kubelet(where: Places, network: NetworkNamespace, ledger: Ledger) -> None:
    """kubelet with an empty device checkpoint: an old one would tell of a cluster that is gone."""
    DEVICE_PLUGINS.mkdir(parents=True, exist_ok=True)
    (DEVICE_PLUGINS / "kubelet_internal_checkpoint").unlink(missing_ok=True)
    root = where.run / "kubelet"
    root.mkdir(parents=True, exist_ok=True)
    configuration = root / "kubelet.json"
    configuration.write_text(settings.kubelet(home(where), certificates(where)), encoding="utf-8")
    ledger.start(
        "kubelet",
        [
            *network.inside(),
            where.bin / "kubelet",
            f"--config={configuration}",
            f"--kubeconfig={kubeconfig(where, 'kubelet')}",
            f"--root-dir={root}",
            f"--cert-dir={root / 'pki'}",
            f"--hostname-override={NODE}",
            f"--node-ip={NODE_ADDRESS}",
        ],
    )


def wait_until_ready(ledger: Ledger, kubectl: Kubectl) -> None:
    ledger.wait("kubelet", f"node {NODE} is Ready", lambda: is_ready(kubectl), within_s=READY_S)


def is_ready(kubectl: Kubectl) -> bool:
    told = kubectl.get("node", NODE)
    conditions = [] if told is None else told.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
