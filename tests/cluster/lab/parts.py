"""What the test cluster is made of: which Go modules in which versions give which programs, and how each is linked."""

from dataclasses import dataclass
from typing import Final

from sensors.bus import NATS_VERSION


@dataclass(frozen=True, slots=True)
class Program:
    """One binary. package: its main package."""

    name: str
    package: str


@dataclass(frozen=True, slots=True)
class Part:
    """One Go module at one version. unpacked: built inside a copy of the module of our own, which may be mended."""

    name: str
    module: str
    version: str
    programs: tuple[Program, ...]
    ldflags: str = "-s -w"
    unpacked: bool = False

    def recipe(self) -> str:
        """What decides the binaries: another text means that they are stale."""
        return f"{self.module}@v{self.version} {self.ldflags} CGO_ENABLED=0"


_VERSION_PACKAGE: Final = "k8s.io/component-base/version"

KUBERNETES: Final = Part(
    name="kubernetes",
    module="k8s.io/kubernetes",
    version="1.34.4",
    programs=tuple(
        Program(name, f"k8s.io/kubernetes/cmd/{name}")
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")
    ),
    # Without these the version reads v0.0.0 and clients warn.
    ldflags=(f"-s -w -X {_VERSION_PACKAGE}.gitVersion=v1.34.4 -X {_VERSION_PACKAGE}.gitMajor=1 -X {_VERSION_PACKAGE}.gitMinor=34"),
)
# Debian's etcd 3.4 lacks watch progress, and the Argo controllers' informers fail with it.
ETCD: Final = Part(
    name="etcd",
    module="go.etcd.io/etcd/server/v3",
    version="3.6.15",
    programs=(Program("etcd", "go.etcd.io/etcd/server/v3"),),
)
ARGO_WORKFLOWS: Final = Part(
    name="argo-workflows",
    module="github.com/argoproj/argo-workflows/v4",
    version="4.0.5",
    programs=tuple(
        Program(name, f"github.com/argoproj/argo-workflows/v4/cmd/{name}") for name in ("workflow-controller", "argoexec", "argo")
    ),
    unpacked=True,
)
ARGO_EVENTS: Final = Part(
    name="argo-events",
    module="github.com/argoproj/argo-events",
    version="1.9.11",
    programs=(Program("argo-events", "github.com/argoproj/argo-events/cmd"),),
    unpacked=True,
)

# For the event bus' own pods alone; the bus beside the cluster is Debian's.
NATS: Final = Part(
    name="nats-server",
    module="github.com/nats-io/nats-server/v2",
    version=NATS_VERSION,
    programs=(Program("nats-server", "github.com/nats-io/nats-server/v2"),),
)

PARTS: Final = (KUBERNETES, ETCD, ARGO_WORKFLOWS, ARGO_EVENTS)
"""What every cluster needs."""
