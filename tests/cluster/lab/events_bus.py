"""The event bus in pods of its own, as shipped: what that needs beyond the cluster's other parts, an image of NATS and names.

Stand-ins: the containers beside NATS, which do nothing (`argo.py`), and dnsmasq, which answers for a headless Service from a list
that is written here.
"""

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from steps.contracts.files import write_atomically
from tests.cluster.lab import argo
from tests.cluster.lab.bases import make_nats
from tests.cluster.lab.debian import install_missing
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.gobuild import build
from tests.cluster.lab.imagestore import import_images
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab
from tests.cluster.lab.network import NODE_ADDRESS
from tests.cluster.lab.node import socket_of
from tests.cluster.lab.parts import NATS

SERVICE: Final = f"eventbus-default-js-svc.{argo.NAMESPACE}.svc"
"""The name by which Argo Events' sources and sensors reach the bus `default`."""
PODS: Final = "eventbus-name=default"
ADDRESSES_S: Final = 60.0
READY_S: Final = 120.0


def make_ready(lab: Lab, replicas: int) -> tuple[Path, ...]:
    """Everything that so many pods of the bus find when they are created. Returns the folders behind their claims."""
    install_missing(("dnsmasq-base",))
    build(lab.where, (NATS,))
    import_images(lab.where, socket_of(lab.where), [make_nats(lab.where)])
    if not lab.ledger.runs("dns"):
        _start_dns(lab)
    return tuple(lab.volume(f"eventbus-default-js-vol-eventbus-default-js-{number}", lab.namespace) for number in range(replicas))


def wait_until_up(lab: Lab, replicas: int) -> Sequence[Json]:
    """Give the bus' pods their names as soon as they have addresses, and wait until they are ready. Returns the pods."""

    def addressed() -> bool:
        return sum("podIP" in pod["status"] for pod in pods(lab)) == replicas

    def ready() -> bool:
        return sum(_is_ready(pod) for pod in pods(lab)) == replicas

    lab.kubectl.wait(f"{replicas} pods of the bus have addresses", addressed, within_s=ADDRESSES_S)
    name_pods(lab)
    lab.kubectl.wait(f"{replicas} pods of the bus are ready", ready, within_s=READY_S)
    return pods(lab)


def pods(lab: Lab) -> Sequence[Json]:
    return lab.kubectl.list("pod", lab.namespace, selector=PODS)


def name_pods(lab: Lab) -> None:
    """Write the names of the bus' pods as they are now, and let dnsmasq read them."""
    known = {pod["metadata"]["name"]: pod["status"]["podIP"] for pod in pods(lab) if "podIP" in pod["status"]}
    lines = [f"{address} {name}.{SERVICE} {SERVICE}" for name, address in sorted(known.items())]
    write_atomically(_names(lab), ("\n".join(lines) + "\n").encode())
    dns = lab.ledger.named("dns")
    if dns is None or not dns.alive():
        raise LabError(f"the lab's DNS has ended:\n{lab.ledger.tail('dns')}")
    dns.signal(signal.SIGHUP)


def put_back(lab: Lab) -> None:
    """The bus beside the cluster again, for whoever comes next. Sources and sensors must be gone: a bus in use is kept."""
    lab.kubectl.delete("eventbus", "default", lab.namespace)
    lab.kubectl.wait("the bus' own pods are gone", lambda: not pods(lab), within_s=READY_S)
    lab.kubectl.apply(argo.event_bus())


def _start_dns(lab: Lab) -> None:
    """Answers for the names in one file, and that all others of a cluster do not exist."""
    write_atomically(_names(lab), b"")
    quiet = ["--conf-file=", "--pid-file=", "--no-resolv", "--no-hosts", "--keep-in-foreground", "--user=root"]
    served = [f"--addn-hosts={_names(lab)}", "--local=/svc/", "--local=/cluster.local/"]
    lab.ledger.start("dns", lab.inside("dnsmasq", *quiet, *served, f"--listen-address={NODE_ADDRESS}", "--bind-interfaces"))


def _names(lab: Lab) -> Path:
    return lab.where.run / "names-of-the-bus"


def _is_ready(pod: Json) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
