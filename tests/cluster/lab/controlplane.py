"""etcd, API server, controller manager and scheduler, as processes in the cluster's network namespace."""

from pathlib import Path
from typing import Final

from tests.cluster.lab.certificates import KUBECONFIGS, make_certificates, write_kubeconfig
from tests.cluster.lab.kubectl import Kubectl
from tests.cluster.lab.network import NODE_ADDRESS, SERVICE_RANGE, NetworkNamespace
from tests.cluster.lab.places import Places
from tests.cluster.lab.processes import Ledger

API_S: Final = 45.0
ETCD_CLIENTS: Final = "http://127.0.0.1:22379"
ETCD_PEERS: Final = "http://127.0.0.1:22380"


def write_identities(where: Places) -> None:
    """Certificates and kubeconfigs of this run."""
    make_certificates(certificates(where))
    for user in KUBECONFIGS:
        write_kubeconfig(kubeconfig(where, user), certificates(where), user)


def certificates(where: Places) -> Path:
    return where.run / "certificates"


def kubeconfig(where: Places, user: str) -> Path:
    return where.run / f"{user}.kubeconfig"


def etcd_folder(where: Places) -> Path:
    return where.run / "etcd"


def start_api(where: Places, network: NetworkNamespace, ledger: Ledger) -> None:
    """etcd without fsync (the state is thrown away) and the API server; does not wait for them."""
    listening = [
        f"--listen-client-urls={ETCD_CLIENTS}",
        f"--advertise-client-urls={ETCD_CLIENTS}",
        f"--listen-peer-urls={ETCD_PEERS}",
    ]
    data = f"--data-dir={etcd_folder(where)}"
    ledger.start("etcd", [*network.inside(), where.bin / "etcd", data, *listening, "--unsafe-no-fsync"])
    start_apiserver(where, network, ledger)


def start_apiserver(where: Places, network: NetworkNamespace, ledger: Ledger) -> None:
    """The API server alone, for an etcd that runs; does not wait for it."""
    keys = certificates(where)
    flags = {
        "etcd-servers": ETCD_CLIENTS,
        "bind-address": "0.0.0.0",
        "advertise-address": NODE_ADDRESS,
        "secure-port": "443",
        "tls-cert-file": keys / "apiserver.crt",
        "tls-private-key-file": keys / "apiserver.key",
        "client-ca-file": keys / "ca.crt",
        "service-account-key-file": keys / "accounts.pub",
        "service-account-signing-key-file": keys / "accounts.key",
        "service-account-issuer": "https://kubernetes.default.svc",
        "authorization-mode": "Node,RBAC",
        "service-cluster-ip-range": SERVICE_RANGE,
        "allow-privileged": "true",
        "endpoint-reconciler-type": "none",
        "kubelet-preferred-address-types": "InternalIP",
        "kubelet-client-certificate": keys / "admin.crt",
        "kubelet-client-key": keys / "admin.key",
    }
    ledger.start(
        "apiserver", [*network.inside(), where.bin / "kube-apiserver", *(f"--{flag}={value}" for flag, value in flags.items())]
    )


def wait_for_api(ledger: Ledger, kubectl: Kubectl) -> None:
    ledger.wait("apiserver", "the API server is ready", lambda: kubectl.ran("get", "--raw=/readyz").returncode == 0, within_s=API_S)


def start_controllers(where: Places, network: NetworkNamespace, ledger: Ledger) -> None:
    """Controller manager and scheduler; they are alone, so there is no election."""
    common = ["--leader-elect=false", "--bind-address=127.0.0.1"]
    keys = certificates(where)
    ledger.start(
        "controller-manager",
        [
            *network.inside(),
            where.bin / "kube-controller-manager",
            *common,
            f"--kubeconfig={kubeconfig(where, 'controller-manager')}",
            f"--service-account-private-key-file={keys / 'accounts.key'}",
            f"--root-ca-file={keys / 'ca.crt'}",
            "--use-service-account-credentials=true",
        ],
    )
    ledger.start(
        "scheduler",
        [*network.inside(), where.bin / "kube-scheduler", *common, f"--kubeconfig={kubeconfig(where, 'scheduler')}"],
    )
