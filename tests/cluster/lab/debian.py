"""The Debian packages that the test cluster runs on, installed where they are missing."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.cluster.lab.commands import output_of, ran
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.progress import timed

PACKAGES: Final = (
    "containerd",
    "runc",
    "containernetworking-plugins",
    "nats-server",
    "debootstrap",
    "buildah",
    "iptables",
    "conntrack",
    "iproute2",
    "openssl",
    "gcc",
    "libc6-dev",
)
INSTALL_TIMEOUT_S: Final = 900.0


def require_root_on_debian() -> None:
    """Raises LabError with one sentence where this machine cannot run the test cluster."""
    if os.geteuid() != 0:
        raise LabError(
            "the test cluster needs root (network namespace, containerd, kubelet); run it as root, best in a virtual machine"
        )
    if not Path("/etc/debian_version").is_file():
        raise LabError("the test cluster takes containerd, runc and others from Debian 12; run it on such a machine")


def install_missing(packages: Sequence[str] = PACKAGES) -> None:
    """Install those of the packages that dpkg does not list as installed; touches nothing else."""
    missing = [name for name in packages if not _installed(name)]
    if not missing:
        return
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    with timed(f"installing {', '.join(missing)}"):
        output_of(["apt-get", "update", "-q"], timeout_s=INSTALL_TIMEOUT_S, more_environ=quiet)
        output_of(
            ["apt-get", "install", "-q", "-y", "--no-install-recommends", *missing], timeout_s=INSTALL_TIMEOUT_S, more_environ=quiet
        )


def _installed(name: str) -> bool:
    told = ran(["dpkg-query", "-W", "-f", "${db:Status-Status}", name], timeout_s=20)
    return told.returncode == 0 and told.stdout == "installed"
