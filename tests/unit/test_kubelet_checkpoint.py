"""Who was given a device, from the kubelet's checkpoint."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from steps.adapters.kubelet import CheckpointReader
from steps.contracts.document import Sample, State
from steps.contracts.node_facts import Allocation


def entry(devices: Any, resource: str = "nvidia.com/gpu", pod: str = "uid-1", container: str = "main") -> dict[str, Any]:
    return {"PodUID": pod, "ContainerName": container, "ResourceName": resource, "DeviceIDs": devices, "AllocResp": "Cg=="}


def read(tmp_path: Path, content: Any) -> Sample[tuple[Allocation, ...]]:
    path = tmp_path / "kubelet_internal_checkpoint"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return CheckpointReader(path).read()


def checkpoint(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"Data": {"PodDeviceEntries": list(entries), "RegisteredDevices": {"nvidia.com/gpu": ["GPU-a"]}}, "Checksum": 7}


@pytest.mark.parametrize("devices", [{"-1": ["GPU-a", "GPU-b"]}, {"0": ["GPU-b"], "1": ["GPU-a"], "2": None}, ["GPU-b", "GPU-a"]])
def test_both_forms_of_device_ids_are_read(tmp_path: Path, devices: Any) -> None:
    sample = read(tmp_path, checkpoint(entry(devices)))
    assert sample.known() == tuple(
        Allocation(device_id=device, resource="nvidia.com/gpu", pod_uid="uid-1", container="main") for device in ("GPU-a", "GPU-b")
    )


def test_the_age_of_the_reading_is_the_files(tmp_path: Path) -> None:
    sample = read(tmp_path, checkpoint())
    assert (sample.known(), sample.taken_at) == ((), datetime.fromtimestamp(1_700_000_000, UTC))
    assert (sample.source or "").endswith("kubelet_internal_checkpoint")


def test_devices_of_other_makers_are_left_out_and_mig_kinds_are_not(tmp_path: Path) -> None:
    sample = read(
        tmp_path,
        checkpoint(
            entry(["x"], "amd.com/gpu"), entry(["MIG-1"], "nvidia.com/mig-1g.10gb"), entry(["y"], "example.com/nvidia.com/gpu")
        ),
    )
    assert [allocation.device_id for allocation in sample.known() or ()] == ["MIG-1"]


def test_a_kubelet_that_has_given_nothing_is_measured(tmp_path: Path) -> None:
    assert read(tmp_path, {"Data": {"PodDeviceEntries": None}, "Checksum": 1}).known() == ()


def test_a_missing_file_is_absent_and_not_empty(tmp_path: Path) -> None:
    sample = CheckpointReader(tmp_path / "nowhere").read()
    assert (sample.value, sample.state) == (None, State.ABSENT)
    assert "does not exist" in (sample.reason or "")


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", '{"Data": {}}', '{"Data": {"PodDeviceEntries": [{"PodUID": "x"}]}}', json.dumps(checkpoint(entry(7)))],
)
def test_a_broken_file_is_an_error_and_not_empty(tmp_path: Path, content: str) -> None:
    sample = read(tmp_path, content)
    assert (sample.value, sample.state) == (None, State.ERROR)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    assert CheckpointReader(tmp_path).read().state is State.ERROR
