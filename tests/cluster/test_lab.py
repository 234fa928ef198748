"""What the other cluster tests stand on: the simulated GPU reaches the pods that should have it, and nothing leaves the cluster."""

import json

import pytest

from tests.cluster.lab.commands import output_of
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab
from tests.cluster.scene import STEPS_IMAGE

pytestmark = pytest.mark.cluster

LOOK = """
import pynvml
try:
    pynvml.nvmlInit()
except pynvml.NVMLError_LibraryNotFound:
    print("no library")
else:
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    print(pynvml.nvmlDeviceGetCount(), pynvml.nvmlDeviceGetUUID(handle), pynvml.nvmlDeviceGetName(handle))
"""


def looking_pod(name: str, **spec: str) -> Json:
    look = {"name": "main", "image": STEPS_IMAGE, "imagePullPolicy": "Never", "command": ["python3", "-c", LOOK]}
    with_gpus = look | {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"restartPolicy": "Never", "containers": [with_gpus], **spec},
    }


def said_by(lab: Lab, pod: Json) -> str:
    """What the pod wrote, once it has ended; the pod is removed."""
    name = pod["metadata"]["name"]
    lab.kubectl.create(pod)
    try:
        lab.kubectl.wait(f"pod {name} ends", lambda: _phase(lab, name) in ("Succeeded", "Failed"), within_s=60)
        return lab.kubectl.logs(name, "default").strip()
    finally:
        lab.kubectl.delete("pod", name, "default", wait=False)


def _phase(lab: Lab, name: str) -> str:
    pod = lab.kubectl.get("pod", name, "default")
    return "" if pod is None else str(pod["status"].get("phase", ""))


def test_a_pod_of_the_runtime_class_sees_the_gpu_without_asking_for_one(lab: Lab) -> None:
    count, uuid, name = said_by(lab, looking_pod("with-class", runtimeClassName="nvidia")).split(" ", 2)
    assert (count, uuid[:4]) == ("1", "GPU-")
    assert name.startswith("Simulated GPU")


def test_a_pod_without_the_runtime_class_sees_none(lab: Lab) -> None:
    assert said_by(lab, looking_pod("without-class")) == "no library"


def test_the_node_offers_one_gpu_and_the_executor_of_this_cluster(lab: Lab) -> None:
    assert lab.gpus() == 1
    node = lab.kubectl.get("node", lab.node)
    assert node is not None
    images = {name for image in node["status"]["images"] for name in image["names"] or ()}
    assert any(name.startswith("docker.io/local/argoexec:") for name in images)


def test_the_network_namespace_has_no_way_out(lab: Lab) -> None:
    (route,) = json.loads(output_of(lab.inside("ip", "-json", "route", "show", "default"), timeout_s=10))
    assert route["dev"] == "nodebr"
    assert json.loads(output_of(lab.inside("ip", "-json", "link", "show", "master", "nodebr"), timeout_s=10)) == []
    others = json.loads(output_of(lab.inside("ip", "-json", "-details", "link", "show"), timeout_s=10))
    kinds = {link["ifname"]: link.get("linkinfo", {}).get("info_kind") for link in others}
    reaching = {name for name, kind in kinds.items() if name != "lo" and kind not in ("bridge", "veth")}
    assert not reaching, f"{reaching} could lead out of {lab.network}"
