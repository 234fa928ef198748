"""The cluster's own network namespace. It has no way out, so nothing can be pulled or reached by mistake.

A bridge without ports carries the node's address; the API's service address is a local address of the namespace, so pods reach it
through their gateway without kube-proxy. Everything goes by address; only a test of the event bus' own pods starts a DNS.
"""

import re
from pathlib import Path
from typing import Final

from tests.cluster.lab.commands import output_of
from tests.cluster.lab.errors import LabError

NODE_ADDRESS: Final = "10.244.99.1"
API_ADDRESS: Final = "10.0.0.1"
SERVICE_RANGE: Final = "10.0.0.0/24"
POD_RANGE: Final = "10.244.7.0/24"
DEFAULT_NAME: Final = "gpu-reclaim-lab"
NAME_VARIABLE: Final = "GPU_RECLAIM_LAB_NETNS"


class NetworkNamespace:
    """A named network namespace, as `ip netns` makes it."""

    def __init__(self, name: str) -> None:
        if re.fullmatch(r"[a-z0-9][-a-z0-9]{0,40}", name) is None:
            raise LabError(f"{name!r} is no name for a network namespace; give letters, digits and '-', for example {DEFAULT_NAME}")
        self.name: Final = name

    @property
    def path(self) -> Path:
        return Path("/run/netns") / self.name

    def inside(self) -> list[str]:
        """What to put before a command so that it runs in here; the PID stays that of the command."""
        return ["nsenter", f"--net={self.path}"]

    def make(self) -> None:
        """Make it with its addresses. Raises LabError if it exists: somebody else's, or a cluster that was not ended."""
        if self.path.exists():
            raise LabError(f"network namespace {self.name} exists already; end its owner, or set {NAME_VARIABLE} to another name")
        output_of(["ip", "netns", "add", self.name], timeout_s=10)
        for words in (
            "ip link set lo up",
            "ip link add nodebr type bridge",
            f"ip addr add {NODE_ADDRESS}/24 dev nodebr",
            "ip link set nodebr up",
            # Where the address lies does not exist: kubelet and the CNI want a default route, and nothing may leave.
            "ip route add default via 10.244.99.254 dev nodebr",
            f"ip addr add {API_ADDRESS}/32 dev lo",
            "sysctl -q -w net.ipv4.ip_forward=1",
        ):
            output_of([*self.inside(), *words.split()], timeout_s=10)

    def remove(self) -> None:
        """Remove it if it is there; its links and addresses go with it."""
        if self.path.exists():
            output_of(["ip", "netns", "delete", self.name], timeout_s=10)
