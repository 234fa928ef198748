"""The test cluster as one object, however it came to be: started here, or there already."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tests.cluster.lab import gpu
from tests.cluster.lab.argo import NAMESPACE, SERVER_ADDRESS, start_events, start_nats, start_server, start_workflows
from tests.cluster.lab.certificates import NODE
from tests.cluster.lab.commands import output_of
from tests.cluster.lab.controlplane import kubeconfig, start_apiserver, wait_for_api
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.kubectl import Kubectl
from tests.cluster.lab.network import NetworkNamespace
from tests.cluster.lab.places import Places
from tests.cluster.lab.processes import Ledger
from tests.cluster.lab.record import read_record
from tests.cluster.lab.volumes import host_volume

MARK: Final = "gpu-reclaim.dev/test-cluster"
"""Label of the namespace kube-system, value "true": this cluster is for tests, which may change and break it."""


@dataclass(frozen=True, slots=True)
class Lab:
    """node: name of the node with the simulated GPU. argo: the CLI. network: None for a cluster that is not on this machine."""

    where: Places
    network: NetworkNamespace | None
    kubeconfig: Path
    kubectl: Kubectl
    argo: Path
    namespace: str = NAMESPACE
    node: str = NODE

    def inside(self, *argv: str | Path) -> list[str]:
        """A command line that reaches the cluster: for programs of the project that talk to its API."""
        return [*(self.network.inside() if self.network else []), *(str(word) for word in argv)]

    @property
    def ledger(self) -> Ledger:
        """The processes of the cluster; only of one that runs on this machine."""
        self._here("processes")
        return Ledger(self.where.run, self.where.logs)

    @property
    def evidence(self) -> Path:
        """The folder behind the volume claim `gpu-reclaim-evidence`, as this machine sees it."""
        self._here("evidence folder")
        return evidence_folder(self.where)

    def volume(self, claim: str, namespace: str) -> Path:
        """A volume for that claim of a test and for no other; the folder behind it, writable for the test session's user."""
        self._here("host folders")
        name = f"{namespace}-{claim}"
        folder = self.where.run / "volumes" / name
        self.kubectl.apply(host_volume(name, folder, claim, namespace))
        return folder

    def argo_server(self) -> str:
        """Address of Argo's API server, started at the first call; reachable through `inside`."""
        network = self._here("argo server")
        if not self.ledger.runs("argo-server"):
            start_server(self.where, network, self.ledger)
        return SERVER_ADDRESS

    def events(self) -> None:
        """NATS, the controller of Argo Events and the event bus `default`, started at the first call."""
        network = self._here("event bus")
        if not self.ledger.runs("argo-events"):
            start_events(self.where, network, self.ledger, self.kubectl)

    @contextmanager
    def without(self, name: str) -> Iterator[None]:
        """The cluster while its `nats`, `workflow-controller` or `apiserver` is down; started again afterwards, the last one until
        it answers."""
        network = self._here(name)
        start = {
            "nats": partial(start_nats, self.where, network, self.ledger),
            "workflow-controller": partial(start_workflows, self.where, network, self.ledger, self.kubectl),
            "apiserver": partial(start_apiserver, self.where, network, self.ledger),
        }[name]
        self.ledger.end(name)
        try:
            yield
        finally:
            start()
            wait_for_api(self.ledger, self.kubectl)

    def gpus(self) -> int | None:
        """How many GPUs the node can give; None if it says nothing."""
        return gpu.gpus_advertised(self.kubectl)

    def _here(self, what: str) -> NetworkNamespace:
        if self.network is None:
            raise LabError(f"a test asks for the cluster's {what}, which only the cluster started by the tests has")
        return self.network


def evidence_folder(where: Places) -> Path:
    return where.run / "evidence"


def own(where: Places, network: NetworkNamespace) -> Lab:
    """The cluster whose state lies in the run folder."""
    path = kubeconfig(where, "admin")
    kubectl = Kubectl(where.bin / "kubectl", path, network.inside(), where.run / "kubectl-cache")
    return Lab(where, network, path, kubectl, where.bin / "argo")


def foreign(where: Places, path: Path) -> Lab:
    """Another cluster that bears the mark. Raises LabError without it: a test never touches a cluster by accident."""
    kubectl = Kubectl(where.bin / "kubectl", path, (), where.cache / "kubectl-cache")
    require_mark(kubectl, path)
    nodes = kubectl.list("node")
    if len(nodes) != 1:
        raise LabError(f"the cluster of {path} has {len(nodes)} nodes; these tests are written for one with the simulated GPU")
    return Lab(where, None, path, kubectl, where.bin / "argo", node=str(nodes[0]["metadata"]["name"]))


def choose(where: Places, path: Path) -> Lab:
    """The cluster behind a kubeconfig that somebody named on purpose: one that `up` left, or one elsewhere, marked for tests."""
    record = read_record(where)
    if record is None or path.resolve() != kubeconfig(where, "admin").resolve():
        return foreign(where, path)
    lab = own(where, NetworkNamespace(record.network))
    require_mark(lab.kubectl, path)
    return lab


def require_mark(kubectl: Kubectl, path: Path) -> None:
    """Raises LabError unless the cluster says itself that tests may use it."""
    told = kubectl.get("namespace", "kube-system")
    labels = {} if told is None else told["metadata"].get("labels", {})
    if labels.get(MARK) != "true":
        raise LabError(
            f"the cluster of {path} is not marked for tests; if they may change and break it: "
            f"kubectl label namespace kube-system {MARK}=true"
        )


def lint(lab: Lab, manifests: Sequence[Path]) -> str:
    """What `argo lint --offline` says. Raises LabError with its words if it finds fault."""
    return output_of([lab.argo, "lint", "--offline", *manifests], timeout_s=60)
