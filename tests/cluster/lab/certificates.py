"""Certificates and kubeconfigs of one run of the cluster, valid for a few days, made by openssl."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.lab.commands import output_of
from tests.cluster.lab.network import API_ADDRESS, NODE_ADDRESS

DAYS: Final = "7"
CURVE: Final = ("-pkeyopt", "ec_paramgen_curve:P-256")


@dataclass(frozen=True, slots=True)
class Certificate:
    """file: the name of the pair of files. subject and names: as in openssl."""

    file: str
    subject: str
    names: str


NODE: Final = "lab-node"
API_NAMES: Final = (
    "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:localhost,"
    f"IP:127.0.0.1,IP:{API_ADDRESS},IP:{NODE_ADDRESS}"
)
CERTIFICATES: Final = (
    Certificate("apiserver", "/CN=kube-apiserver", API_NAMES),
    Certificate("nats", "/CN=nats", f"IP:{NODE_ADDRESS}"),
    Certificate("admin", "/O=system:masters/CN=admin", "DNS:admin"),
    Certificate("controller-manager", "/CN=system:kube-controller-manager", "DNS:controller-manager"),
    Certificate("scheduler", "/CN=system:kube-scheduler", "DNS:scheduler"),
    Certificate("kubelet", f"/O=system:nodes/CN=system:node:{NODE}", f"DNS:{NODE},IP:{NODE_ADDRESS}"),
)
KUBECONFIGS: Final = ("admin", "controller-manager", "scheduler", "kubelet")


def make_certificates(folder: Path) -> None:
    """An authority, a key for service account tokens, and every certificate above, in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    authority = ["openssl", "req", "-x509", "-newkey", "ec", *CURVE, "-nodes", "-days", DAYS, "-subj", "/CN=lab-ca"]
    output_of([*authority, "-keyout", "ca.key", "-out", "ca.crt"], timeout_s=20, cwd=folder)
    output_of(["openssl", "genpkey", "-algorithm", "EC", *CURVE, "-out", "accounts.key"], timeout_s=20, cwd=folder)
    output_of(["openssl", "pkey", "-in", "accounts.key", "-pubout", "-out", "accounts.pub"], timeout_s=20, cwd=folder)
    for certificate in CERTIFICATES:
        _sign(folder, certificate)


def _sign(folder: Path, certificate: Certificate) -> None:
    name = certificate.file
    request = ["openssl", "req", "-newkey", "ec", *CURVE, "-nodes", "-subj", certificate.subject]
    output_of([*request, "-keyout", f"{name}.key", "-out", f"{name}.csr"], timeout_s=20, cwd=folder)
    (folder / f"{name}.ext").write_text(f"subjectAltName={certificate.names}\n", encoding="ascii")
    sign = ["openssl", "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", DAYS]
    output_of([*sign, "-extfile", f"{name}.ext", "-out", f"{name}.crt"], timeout_s=20, cwd=folder)


def write_kubeconfig(path: Path, certificates: Path, user: str) -> None:
    """A kubeconfig for `user`, whose certificate is of that file name."""
    path.write_text(json.dumps(_kubeconfig(certificates, user)), encoding="utf-8")
    path.chmod(0o600)


def _kubeconfig(certificates: Path, user: str) -> Mapping[str, object]:
    cluster = {"server": f"https://{API_ADDRESS}:443", "certificate-authority": str(certificates / "ca.crt")}
    keys = {"client-certificate": str(certificates / f"{user}.crt"), "client-key": str(certificates / f"{user}.key")}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": cluster}],
        "users": [{"name": user, "user": keys}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": user}}],
        "current-context": "lab",
    }
