"""The state of a new API server that has Argo's CRDs already, kept from run to run: creating them costs half a minute on two cores.

It is made by the very API server and etcd of the cluster, before any controller runs, so it holds no key, token or certificate of
a run. Another version of either, or another byte in a CRD, makes a new one.
"""

import hashlib
import shutil
from pathlib import Path

from tests.cluster.lab import argo, controlplane
from tests.cluster.lab.kubectl import Kubectl
from tests.cluster.lab.network import NetworkNamespace
from tests.cluster.lab.parts import ETCD, KUBERNETES
from tests.cluster.lab.places import Places
from tests.cluster.lab.processes import Ledger
from tests.cluster.lab.progress import timed


def plant(where: Places, network: NetworkNamespace, ledger: Ledger, kubectl: Kubectl) -> None:
    """Lay the state where etcd will start from; nothing of the control plane may run yet."""
    seed = where.seeds / _key(where)
    if not seed.is_dir():
        with timed("CRDs of Argo, once"):
            _grow(where, network, ledger, kubectl)
            _keep(controlplane.etcd_folder(where), seed)
    else:
        shutil.copytree(seed, controlplane.etcd_folder(where))


def _grow(where: Places, network: NetworkNamespace, ledger: Ledger, kubectl: Kubectl) -> None:
    controlplane.start_api(where, network, ledger)
    controlplane.wait_for_api(ledger, kubectl)
    argo.create_crds(where, kubectl)
    for name in ("apiserver", "etcd"):
        ledger.end(name, term_s=30.0)


def _keep(state: Path, seed: Path) -> None:
    """Copy the state of the ended etcd; older ones go."""
    shutil.rmtree(seed.parent, ignore_errors=True)
    unfinished = seed.with_name(f".{seed.name}.unfinished")
    shutil.copytree(state, unfinished)
    unfinished.rename(seed)


def _key(where: Places) -> str:
    digest = hashlib.sha256(f"{KUBERNETES.recipe()} {ETCD.recipe()}".encode())
    for path in argo.crds(where):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
