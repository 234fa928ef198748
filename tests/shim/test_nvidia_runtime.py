"""The OCI runtime wrapper on bundles: who gets what, and that everything else passes through untouched."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sim.node import devices
from sim.node.gpusim import LAUNCHER, install
from sim.node.injection import library_in_container
from sim.node.nvidia_runtime import bundle_of, visible_devices
from sim.node.state import StateError, ordinary_node
from tests.shim.conftest import ROOT

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="making device nodes needs root")
FIRST, SECOND = (gpu.uuid for gpu in ordinary_node(2).gpus)


@pytest.fixture
def folder(tmp_path: Path, library: Path) -> Path:
    made = tmp_path / "gpu-sim"
    made.mkdir()
    install(made, 2, library)
    return made


def bundle(tmp_path: Path, **settings: Any) -> Path:
    made = tmp_path / "bundle"
    made.mkdir()
    config = {"ociVersion": "1.2.0", "process": {"env": ["PATH=/bin"]}, "annotations": {"kept": "yes"}, **settings}
    (made / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return made


def asking(value: str) -> dict[str, Any]:
    return {"process": {"env": ["PATH=/bin", f"NVIDIA_VISIBLE_DEVICES={value}"]}}


def create(tmp_path: Path, folder: Path, where: Path) -> subprocess.CompletedProcess[str]:
    return launched(tmp_path, folder, ["--root", "/run/x", "create", "--bundle", str(where), "--pid-file", "/run/pid", "some-id"])


def launched(tmp_path: Path, folder: Path, words: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the installed launcher as containerd does; instead of runc a program that prints its arguments."""
    runc = tmp_path / "runc"
    runc.write_text('#!/bin/sh\necho "$@"\n', encoding="utf-8")
    runc.chmod(0o755)
    return subprocess.run(
        [folder / LAUNCHER, *words],
        env={"PATH": "/bin", "GPU_SIM_RUNC": str(runc), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def config_of(where: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((where / "config.json").read_text(encoding="utf-8"))
    return config


@needs_root
def test_a_probe_gets_every_gpu_and_may_write_nothing(tmp_path: Path, folder: Path) -> None:
    where = bundle(tmp_path, **asking("all"))
    done = create(tmp_path, folder, where)
    assert done.stdout.split() == ["--root", "/run/x", "create", "--bundle", str(where), "--pid-file", "/run/pid", "some-id"]
    config = config_of(where)
    assert [(one["path"], one["major"], one["minor"]) for one in config["linux"]["devices"]] == [
        ("/dev/nvidiactl", 1, 5),
        ("/dev/nvidia0", 1, 7),
        ("/dev/nvidia1", *devices.number_of(folder / "dev" / "nvidia1")),
    ]
    assert {rule["access"] for rule in config["linux"]["resources"]["devices"]} == {"rw"}
    assert {mount["destination"]: "ro" in mount["options"] for mount in config["mounts"]} == {
        "/var/lib/gpu-sim": True,
        str(library_in_container()): True,
    }
    assert config["annotations"] == {"kept": "yes"}


@needs_root
@pytest.mark.parametrize("asked", [SECOND, "1"])
def test_a_session_gets_its_gpu_and_may_lock_only_there(tmp_path: Path, folder: Path, asked: str) -> None:
    where = bundle(tmp_path, **asking(asked))
    create(tmp_path, folder, where)
    config = config_of(where)
    assert [one["path"] for one in config["linux"]["devices"]] == ["/dev/nvidiactl", "/dev/nvidia1"]
    writable = [mount["destination"] for mount in config["mounts"] if "rw" in mount["options"]]
    assert writable == [f"/var/lib/gpu-sim/memory/{SECOND}", f"/var/lib/gpu-sim/activity/{SECOND}"]


@needs_root
def test_what_the_device_plugin_gave_already_is_not_given_twice(tmp_path: Path, folder: Path) -> None:
    where = bundle(
        tmp_path,
        **asking(FIRST),
        mounts=[{"destination": "/var/lib/gpu-sim", "source": "/plugin", "options": ["ro"]}],
        linux={"devices": [{"path": "/dev/nvidia0", "type": "c", "major": 1, "minor": 7}]},
    )
    create(tmp_path, folder, where)
    config = config_of(where)
    assert sorted(one["path"] for one in config["linux"]["devices"]) == ["/dev/nvidia0", "/dev/nvidiactl"]
    assert [mount["source"] for mount in config["mounts"] if mount["destination"] == "/var/lib/gpu-sim"] == ["/plugin"]


@needs_root
@pytest.mark.parametrize("settings", [{}, asking("void"), asking("none"), asking("")])
def test_a_container_that_asks_for_no_gpu_is_not_touched(tmp_path: Path, folder: Path, settings: dict[str, Any]) -> None:
    where = bundle(tmp_path, **settings)
    before = (where / "config.json").read_bytes()
    assert create(tmp_path, folder, where).returncode == 0
    assert (where / "config.json").read_bytes() == before


@needs_root
@pytest.mark.parametrize("words", [["--root", "/r", "start", "some-id"], ["state", "an id  with spaces"], []])
def test_a_command_without_a_bundle_goes_to_runc_as_it_came(tmp_path: Path, folder: Path, words: list[str]) -> None:
    done = launched(tmp_path, folder, words)
    assert (done.returncode, done.stdout, done.stderr) == (0, " ".join(words) + "\n", "")


@needs_root
def test_runc_is_found_by_itself_where_containerd_has_no_path(tmp_path: Path, folder: Path) -> None:
    done = launched(tmp_path, folder, ["state", "some-id"], GPU_SIM_RUNC="", PATH=str(tmp_path))
    assert done.stdout == "state some-id\n"


@needs_root
def test_a_gpu_that_does_not_exist_stops_the_container_with_a_sentence(tmp_path: Path, folder: Path) -> None:
    where = bundle(tmp_path, **asking("GPU-x"))
    done = create(tmp_path, folder, where)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no simulated GPU GPU-x" in done.stderr
    assert done.stderr.count("\n") == 1


@needs_root
def test_device_nodes_open_without_a_driver_and_no_two_gpus_share_a_number(folder: Path) -> None:
    nodes = sorted((folder / "dev").iterdir())
    assert [node.name for node in nodes] == ["nvidia0", "nvidia1", "nvidiactl"]
    for node in nodes:
        os.close(os.open(node, os.O_RDWR))
    assert len({devices.number_of(node) for node in nodes}) == 3
    assert all(stat.S_IMODE(node.stat().st_mode) == 0o666 for node in nodes)


@needs_root
def test_more_gpus_than_numbers_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="no device number is left"):
        devices.make_nodes(tmp_path, list(range(len(devices.GPU_NUMBERS) + 1)))


def test_a_file_that_is_no_device_node_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nvidia0").touch()
    with pytest.raises(StateError, match="is no device node"):
        devices.number_of(tmp_path / "nvidia0")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["create", "--bundle", "/b", "id"], Path("/b")),
        (["--root", "/r", "--log-format", "json", "create", "-b", "/b", "id"], Path("/b")),
        (["run", "--bundle=/b", "id"], Path("/b")),
        (["create", "id"], Path.cwd()),
        (["--root", "/r", "delete", "--force", "id"], None),
        (["state", "id"], None),
    ],
)
def test_only_create_and_run_have_a_bundle(words: list[str], expected: Path | None) -> None:
    assert bundle_of(words) == expected


def test_the_last_setting_of_the_variable_counts() -> None:
    config = {"process": {"env": ["NVIDIA_VISIBLE_DEVICES=void", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_VISIBLE_DEVICES_X=none"]}}
    assert visible_devices(config) == "all"
    assert visible_devices({}) == ""


def test_the_runtime_needs_no_installed_package() -> None:
    script = ROOT / "sim" / "node" / "nvidia_runtime.py"
    done = subprocess.run(
        [sys.executable, "-I", "-S", script, "state", "id"],
        env={"GPU_SIM_RUNC": "/bin/echo"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "state id\n")
