"""Which devices the kubelet gave to which containers, from its device manager's checkpoint.

The file still names the devices of a pod that is gone, until the next allocation drops the entry (device-plugin#290): it
says who was *given* a device, never who uses it.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from steps.contracts.document import Sample
from steps.contracts.node_facts import Allocation

CHECKPOINT: Final = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
_OURS: Final = "nvidia.com/"
_MAX_BYTES: Final = 16 * 1024 * 1024


class _Entry(msgspec.Struct):
    """One entry. devices: by NUMA node ("-1" if none); old kubelets wrote a flat list."""

    pod_uid: str = msgspec.field(name="PodUID")
    container: str = msgspec.field(name="ContainerName")
    resource: str = msgspec.field(name="ResourceName")
    devices: dict[str, list[str] | None] | list[str] | None = msgspec.field(name="DeviceIDs")


class _Data(msgspec.Struct):
    """entries: null when nothing is allocated; a file without the field is not this format, and no proof of emptiness."""

    entries: list[_Entry] | None = msgspec.field(name="PodDeviceEntries")


class _Checkpoint(msgspec.Struct):
    data: _Data = msgspec.field(name="Data")


class CheckpointReader:
    """AllocationReader over the checkpoint file, mounted read-only."""

    def __init__(self, path: Path | str = CHECKPOINT) -> None:
        self._path = Path(path)

    def read(self) -> Sample[tuple[Allocation, ...]]:
        """Allocations of nvidia.com resources, in a fixed order. Source: the file; taken_at: when the kubelet wrote it.

        No file is absent (no kubelet here, or not mounted), a broken one an error: neither means that nothing is allocated.
        """
        source = str(self._path)
        try:
            with self._path.open("rb") as file:
                content = file.read(_MAX_BYTES + 1)
                written_at = datetime.fromtimestamp(self._path.stat().st_mtime, UTC)
        except FileNotFoundError:
            return Sample.absent(f"{source} does not exist: no kubelet here, or its folder is not mounted", source)
        except OSError as error:
            return Sample.error(f"{source} cannot be read: {error.strerror}", source)
        if len(content) > _MAX_BYTES:
            return Sample.error(f"{source} is larger than {_MAX_BYTES} bytes", source)
        try:
            checkpoint = msgspec.json.decode(content, type=_Checkpoint)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return Sample.error(f"{source} is not a checkpoint of the device manager: {error}", source)
        return Sample.measured(_allocations(checkpoint), source, written_at)


def _allocations(checkpoint: _Checkpoint) -> tuple[Allocation, ...]:
    entries = checkpoint.data.entries
    found = [
        Allocation(device_id=device, resource=entry.resource, pod_uid=entry.pod_uid, container=entry.container)
        for entry in (() if entries is None else entries)
        if entry.resource.startswith(_OURS)
        for device in _device_ids(entry)
    ]
    return tuple(sorted(found, key=lambda a: (a.device_id, a.pod_uid, a.container, a.resource)))


def _device_ids(entry: _Entry) -> list[str]:
    if entry.devices is None:
        return []
    if isinstance(entry.devices, list):
        return entry.devices
    return [device for devices in entry.devices.values() if devices is not None for device in devices]
