"""Device ids of the kubelet and the GPU each one means (facts/gpu-and-linux section 2)."""

import re
from collections.abc import Sequence
from typing import Final

from steps.contracts.node_facts import GpuFacts

_OLD_REPLICA: Final = re.compile(r"(?P<device>.+)-\d{1,3}")
_NODE_FORM: Final = re.compile(r"nvidia(?P<minor>\d{1,3})(/.*)?")


def gpu_of_device(device_id: str, gpus: Sequence[GpuFacts]) -> GpuFacts | None:
    """The GPU or MIG instance that `device_id` names: its uuid, a time-slicing replica of it (`::3`, older `-3`), or GKE's
    `nvidia0/vgpu1`. None if NVML lists no such device."""
    base = device_id.split("::", 1)[0]
    by_uuid = {gpu.uuid: gpu for gpu in gpus}
    if base in by_uuid:
        return by_uuid[base]
    old = _OLD_REPLICA.fullmatch(base)
    if old is not None and old["device"] in by_uuid:
        return by_uuid[old["device"]]
    node = _NODE_FORM.fullmatch(base)
    if node is None:
        return None
    minor = int(node["minor"])
    return next((gpu for gpu in gpus if gpu.parent_uuid is None and gpu.minor_number.known() == minor), None)
