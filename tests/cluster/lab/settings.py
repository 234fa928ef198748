"""Configuration files of containerd, CNI, kubelet and NATS: pure text from paths; the reasons stand beside the odd lines."""

import json
from pathlib import Path
from typing import Final

from tests.cluster.lab.bases import PAUSE
from tests.cluster.lab.network import NODE_ADDRESS, POD_RANGE

NATS_URL: Final = f"nats://{NODE_ADDRESS}:4222"


def containerd(home: Path, store: Path, nvidia_runtime: Path) -> str:
    """Two runtimes: runc, and `nvidia`, which is runc behind a wrapper that lays the simulated GPU into a container.

    restrict_oom_score_adj: the machine may lack CAP_SYS_RESOURCE. The sandbox image needs its full name. Network namespaces of
    pods lie below the state folder, so that they are found and removed with it.
    """
    return f"""version = 2
root = "{store}"
state = "{home}/state"
[grpc]
  address = "{home}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{home}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{home}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
      BinaryName = "{nvidia_runtime}"
"""


def cni(home: Path) -> str:
    """A bridge for the pods; addresses are kept below the run folder, so that every cluster begins with all of them."""
    ranges = {
        "type": "host-local",
        "dataDir": f"{home}/addresses",
        "ranges": [[{"subnet": POD_RANGE}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": True, "hairpinMode": True, "ipam": ranges}
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "0.4.0", "name": "gpu-reclaim-lab", "plugins": [bridge, portmap]})


def kubelet(home: Path, certificates: Path) -> str:
    """As JSON. Names are asked at the node's address, where mostly nobody answers (`events_bus` does); no eviction by the machine's
    own disk, no image removed for space; cgroup v1 is still accepted."""
    return json.dumps(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{home}/containerd.sock",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": f"{certificates}/ca.crt"},
            },
            "authorization": {"mode": "Webhook"},
            "address": NODE_ADDRESS,
            "readOnlyPort": 0,
            "cgroupDriver": "cgroupfs",
            "enforceNodeAllocatable": [],
            "failSwapOn": False,
            "failCgroupV1": False,
            "makeIPTablesUtilChains": False,
            "protectKernelDefaults": False,
            "resolvConf": "",
            "clusterDNS": [NODE_ADDRESS],
            "clusterDomain": "cluster.local",
            "imageGCHighThresholdPercent": 100,
            "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%", "memory.available": "50Mi"},
            "maxPods": 250,
            "serializeImagePulls": False,
        }
    )


def nats(home: Path, certificates: Path) -> str:
    """Argo Events speaks TLS to NATS unless told otherwise."""
    return f"""listen: {NODE_ADDRESS}:4222
jetstream {{store_dir: "{home}/jetstream"}}
tls {{cert_file: "{certificates}/nats.crt", key_file: "{certificates}/nats.key"}}
"""
