"""Argo Workflows and Argo Events as host processes beside the cluster, with their full CRDs from their own modules."""

import sys
from functools import partial
from pathlib import Path
from typing import Final

import yaml

from sensors.bus import existing_bus
from steps.contracts.files import write_atomically
from tests.cluster.lab import settings
from tests.cluster.lab.bases import ARGOEXEC, EVENTS, NATS_IMAGE, PAUSE
from tests.cluster.lab.commands import ran
from tests.cluster.lab.controlplane import certificates, kubeconfig
from tests.cluster.lab.gobuild import source_of
from tests.cluster.lab.kubectl import Json, Kubectl
from tests.cluster.lab.network import NetworkNamespace
from tests.cluster.lab.parts import ARGO_EVENTS, ARGO_WORKFLOWS, NATS
from tests.cluster.lab.places import CHECKOUT, EVENTS_CONFIGURATION, Places
from tests.cluster.lab.processes import Ledger

NAMESPACE: Final = "gpu-reclaim"
SERVER_ADDRESS: Final = "http://127.0.0.1:2746"
"""Of Argo's API server, in the cluster's network namespace."""
CRDS_S: Final = 180.0
SERVED_S: Final = 60.0
RECOMMENDED: Final = CHECKOUT / "deploy" / "controller" / "workflow-controller-configmap.yaml"
"""The controller's settings as recommended to everybody."""


def crds(where: Places) -> list[Path]:
    """The full CRDs, whose rules the API server enforces; the minimal ones carry none."""
    folders = (
        source_of(where, ARGO_WORKFLOWS) / "manifests" / "base" / "crds" / "full",
        source_of(where, ARGO_EVENTS) / "manifests" / "base" / "crds",
    )
    return [path for folder in folders for path in sorted(folder.glob("argoproj.io_*.yaml"))]


def create_crds(where: Places, kubectl: Kubectl) -> None:
    """Create, not apply: the cluster is new, and the server's bookkeeping for apply costs seconds on objects of a megabyte."""
    kubectl("create", "--validate=ignore", *(f"--filename={path}" for path in crds(where)), timeout_s=CRDS_S)
    wait_for_kinds(kubectl)


def wait_for_kinds(kubectl: Kubectl) -> None:
    """Until the API serves what the controllers and this program ask for."""
    for kind in ("workflows.argoproj.io", "workflowtemplates.argoproj.io", "eventbus.argoproj.io"):
        kubectl.wait(f"the API serves {kind}", partial(_served, kubectl, kind), within_s=SERVED_S)


def _served(kubectl: Kubectl, kind: str) -> bool:
    return kubectl.ran("get", kind, "--all-namespaces").returncode == 0


def start_workflows(where: Places, network: NetworkNamespace, ledger: Ledger, kubectl: Kubectl) -> None:
    """The namespace's workflow controller, with the recommended settings. It looks again at a workflow after 1 s instead of 10."""
    kubectl.apply(RECOMMENDED, namespace=NAMESPACE)
    ledger.start(
        "workflow-controller",
        [
            *network.inside(),
            where.bin / "workflow-controller",
            f"--kubeconfig={kubeconfig(where, 'admin')}",
            f"--namespace={NAMESPACE}",
            "--namespaced",
            f"--executor-image={ARGOEXEC}",
            "--executor-image-pull-policy=IfNotPresent",
        ],
        {"DEFAULT_REQUEUE_TIME": "1s", "LEADER_ELECTION_DISABLE": "true"},
    )


def start_server(where: Places, network: NetworkNamespace, ledger: Ledger) -> None:
    """Argo's API server without the web page, at SERVER_ADDRESS; returns when it answers for each service that is used: each has a
    connection of its own behind the gateway, which a first refusal delays. hybrid: whoever sends a token acts with its rights
    alone, everybody else with the server's."""
    ledger.start(
        "argo-server",
        [
            *network.inside(),
            where.bin / "argo",
            "server",
            f"--kubeconfig={kubeconfig(where, 'admin')}",
            "--namespaced",
            f"--namespace={NAMESPACE}",
            "--auth-mode=hybrid",
            "--secure=false",
        ],
        # For requests with a token it takes the server's address from here, whatever the flag says.
        {"KUBECONFIG": str(kubeconfig(where, "admin"))},
    )
    services = ("workflows", "workflow-templates")
    asked = [f"{SERVER_ADDRESS}/api/v1/{service}/{NAMESPACE}?listOptions.limit=1" for service in services]
    look = f"import urllib.request; [urllib.request.urlopen(one, timeout=5) for one in {asked}]"
    check = [*network.inside(), sys.executable, "-c", look]
    ledger.wait("argo-server", "Argo's API server answers", lambda: ran(check, timeout_s=20).returncode == 0, within_s=SERVED_S)


def start_nats(where: Places, network: NetworkNamespace, ledger: Ledger) -> None:
    """NATS with JetStream, on the files that an earlier one of this cluster left."""
    configuration = where.run / "nats.conf"
    configuration.write_text(settings.nats(where.run, certificates(where)), encoding="utf-8")
    ledger.start("nats", [*network.inside(), "nats-server", "--config", configuration])


def start_events(where: Places, network: NetworkNamespace, ledger: Ledger, kubectl: Kubectl) -> None:
    """NATS with JetStream, the controller of Argo Events, and the event bus `default`."""
    start_nats(where, network, ledger)
    write_atomically(EVENTS_CONFIGURATION, yaml.safe_dump(_events_configuration(where)).encode())
    ledger.start(
        "argo-events",
        [
            *network.inside(),
            where.bin / "argo-events",
            "controller",
            "--namespaced",
            f"--managed-namespace={NAMESPACE}",
            "--leader-election=false",
        ],
        {
            "KUBECONFIG": str(kubeconfig(where, "admin")),
            "NAMESPACE": NAMESPACE,
            "ARGO_EVENTS_IMAGE": EVENTS,
            # The only way to set the pull policy of event source and sensor pods: what their templates say is ignored.
            "IMAGE_PULL_POLICY": "IfNotPresent",
        },
    )
    kubectl.apply(event_bus())


def _events_configuration(where: Places) -> Json:
    """As its makers ship it, with images of this lab for a bus of its own pods. The two beside NATS, whose modules cannot be had,
    do nothing: one reloads a configuration that does not change, the other exports figures that nobody reads."""
    shipped = source_of(where, ARGO_EVENTS) / "manifests" / "base" / "controller-manager" / "controller-config.yaml"
    content: Json = yaml.safe_load(yaml.safe_load(shipped.read_text(encoding="utf-8"))["data"]["controller-config.yaml"])
    for one in content["eventBus"]["jetstream"]["versions"]:
        if one["version"] == NATS.version:
            one |= {"natsImage": NATS_IMAGE, "startCommand": "/bin/nats-server"}
            one |= {"configReloaderImage": PAUSE, "metricsExporterImage": PAUSE}
    return content


def event_bus() -> Json:
    """As shipped for a NATS that is there already, but for its address."""
    bus = existing_bus(replicas=1)
    bus["spec"]["jetstreamExotic"]["url"] = settings.NATS_URL
    return bus
