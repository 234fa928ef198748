"""The test cluster's own parts, without a cluster: what is ended, what is built again, what is packed, what is refused."""

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from steps.contracts.files import write_atomically
from tests.cluster.lab.dockerfiles import OwnImage, content_hash
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.gobuild import is_built
from tests.cluster.lab.imagestore import nameless, store_of, take_over
from tests.cluster.lab.kubectl import Kubectl
from tests.cluster.lab.lab import require_mark
from tests.cluster.lab.locks import alone
from tests.cluster.lab.network import NetworkNamespace
from tests.cluster.lab.oci import ImageSpec, pack
from tests.cluster.lab.parts import ETCD
from tests.cluster.lab.places import Places
from tests.cluster.lab.processes import Ledger, end, identified, started_ticks

SLEEPER = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
STUBBORN = [sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    kept = Ledger(tmp_path, tmp_path / "logs")
    yield kept
    end(kept.all(), term_s=0)


def wait_until_up(ledger: Ledger, name: str) -> None:
    ledger.wait(name, f"{name} is up", lambda: "up" in ledger.tail(name), within_s=10)


def test_a_recorded_process_is_found_and_ended_by_another_program(ledger: Ledger, tmp_path: Path) -> None:
    process = ledger.start("sleeper", SLEEPER)
    Ledger(tmp_path, tmp_path / "logs").end("sleeper")
    assert not process.alive()


def test_a_process_that_ignores_sigterm_is_killed(ledger: Ledger) -> None:
    process = ledger.start("stubborn", STUBBORN)
    wait_until_up(ledger, "stubborn")
    end([process], term_s=0.2)
    assert not process.alive()


def test_a_pid_that_was_used_again_is_left_alone(ledger: Ledger) -> None:
    process = ledger.start("sleeper", SLEEPER)
    end([msgspec.structs.replace(process, started_ticks=process.started_ticks - 1)])
    assert process.alive()


def test_a_pid_recorded_before_a_restart_of_the_machine_is_left_alone(ledger: Ledger) -> None:
    process = ledger.start("sleeper", SLEEPER)
    end([msgspec.structs.replace(process, boot_id="another boot")])
    assert process.alive()


def test_a_zombie_has_ended() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert started_ticks(child.pid) is None
    assert identified("zombie", child.pid) is None
    child.wait()


def test_waiting_for_a_component_that_ended_shows_its_last_words(ledger: Ledger) -> None:
    ledger.start("short", [sys.executable, "-c", "import time; time.sleep(0.3); print('bind: address already in use')"])
    with pytest.raises(LabError, match="address already in use"):
        ledger.wait("short", "it answers", lambda: False, within_s=10)


def test_waiting_has_an_end(ledger: Ledger) -> None:
    ledger.start("sleeper", SLEEPER)
    with pytest.raises(LabError, match=r"not within 0\.3 s: it answers"):
        ledger.wait("sleeper", "it answers", lambda: False, within_s=0.3)


def test_a_broken_record_is_told_and_not_taken_for_no_cluster(tmp_path: Path) -> None:
    (tmp_path / "processes.json").write_text("[{", encoding="utf-8")
    with pytest.raises(LabError, match="broken"):
        Ledger(tmp_path, tmp_path / "logs").all()


def test_a_binary_is_up_to_date_only_with_the_stamp_of_its_recipe(tmp_path: Path) -> None:
    where, program = Places(tmp_path), ETCD.programs[0]
    assert not is_built(where, ETCD, program)
    write_atomically(where.bin / program.name, b"binary")
    assert not is_built(where, ETCD, program), "without a stamp it may be half a build"
    write_atomically(where.bin / f".{program.name}.recipe", ETCD.recipe().encode())
    assert is_built(where, ETCD, program)
    assert not is_built(where, replace(ETCD, version="3.6.16"), program)
    assert not is_built(where, replace(ETCD, ldflags="-s"), program)


def test_the_same_folder_gives_the_same_image(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "usr" / "share" / "doc").mkdir(parents=True)
    (root / "usr" / "share" / "doc" / "copyright").write_text("left out", encoding="utf-8")
    (root / "hello").write_text("hello", encoding="utf-8")
    spec = ImageSpec("docker.io/local/hello:1", entrypoint=["/hello"], left_out=["usr/share/doc"])
    for name in ("first.tar", "second.tar"):
        pack(root, spec, tmp_path / name)
    assert (tmp_path / "first.tar").read_bytes() == (tmp_path / "second.tar").read_bytes()


def test_an_image_carries_its_full_name_and_not_what_was_left_out(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "doc").mkdir(parents=True)
    (root / "doc" / "copyright").write_text("left out", encoding="utf-8")
    (root / "hello").write_text("hello", encoding="utf-8")
    pack(root, ImageSpec("docker.io/local/hello:1", left_out=["doc"]), tmp_path / "image.tar")
    names, index = _layer_names(tmp_path / "image.tar")
    assert names == {".", "./hello"}
    annotations = index["manifests"][0]["annotations"]
    assert annotations["io.containerd.image.name"] == "docker.io/local/hello:1"


def _layer_names(image: Path) -> tuple[set[str], dict[str, list[dict[str, dict[str, str]]]]]:
    with tarfile.open(image) as tar:
        index = msgspec.json.decode(_read(tar, "index.json"))
        manifest = msgspec.json.decode(_read(tar, _blob(index["manifests"][0]["digest"])))
        layer = tar.extractfile(_blob(manifest["layers"][0]["digest"]))
        with tarfile.open(fileobj=layer) as content:
            return set(content.getnames()), index


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    assert file is not None
    return file.read()


def _blob(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/")


def test_an_image_is_made_again_when_the_base_changes_or_a_source_is_missing() -> None:
    image = OwnImage("docker.io/local/x:1", "images/sessions/Dockerfile", ("sim/node/workload.py",))
    assert content_hash(image, "base-1") == content_hash(image, "base-1")
    assert content_hash(image, "base-1") != content_hash(image, "base-2")
    with pytest.raises(LabError, match=r"sim/node/nothing\.py is missing"):
        content_hash(replace(image, sources=("sim/node/nothing.py",)), "base-1")


def kubectl_that_says(folder: Path, answer: str) -> Kubectl:
    """A program in kubectl's place, for the one question that is asked before any other."""
    program = folder / "kubectl"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\n", encoding="utf-8")
    program.chmod(0o755)
    return Kubectl(program, folder / "kubeconfig", (), folder)


@pytest.mark.parametrize("labels", ["{}", '{"gpu-reclaim.dev/test-cluster": "false"}'])
def test_a_cluster_without_the_mark_is_refused(tmp_path: Path, labels: str) -> None:
    with pytest.raises(LabError, match="not marked for tests"):
        require_mark(kubectl_that_says(tmp_path, f'{{"metadata": {{"labels": {labels}}}}}'), tmp_path)


def test_a_cluster_with_the_mark_is_taken(tmp_path: Path) -> None:
    require_mark(kubectl_that_says(tmp_path, '{"metadata": {"labels": {"gpu-reclaim.dev/test-cluster": "true"}}}'), tmp_path)


def test_two_programs_do_not_start_a_cluster_at_once(tmp_path: Path) -> None:
    where = Places(tmp_path)
    with (
        alone(where, "starting", patience_s=0),
        pytest.raises(LabError, match="another program is starting"),
        alone(where, "starting", patience_s=0.1),
    ):
        pass


@pytest.mark.parametrize("name", ["", "../host", "a b", "-x"])
def test_a_namespace_name_that_is_a_path_or_a_flag_is_refused(name: str) -> None:
    with pytest.raises(LabError, match="no name for a network namespace"):
        NetworkNamespace(name)


def test_an_image_store_that_was_left_clean_is_kept_once(tmp_path: Path) -> None:
    where = Places(tmp_path)
    write_atomically(store_of(where) / "images", b"layers")
    write_atomically(store_of(where) / "left-clean", b"")
    take_over(where)
    assert (store_of(where) / "images").is_file()
    take_over(where)
    assert not (store_of(where) / "images").exists(), "its containerd did not end in order, so it may name containers that are gone"


def test_an_image_whose_name_was_given_to_a_newer_one_is_found() -> None:
    listed = """REF                  TYPE                                       DIGEST     SIZE     PLATFORMS   LABELS
docker.io/local/a:1  application/vnd.oci.image.manifest.v1+json sha256:new 62.1 MiB linux/amd64 io.cri-containerd.image=managed
sha256:config-new    application/vnd.oci.image.manifest.v1+json sha256:new 62.1 MiB linux/amd64 io.cri-containerd.image=managed
sha256:config-old    application/vnd.oci.image.manifest.v1+json sha256:old 62.1 MiB linux/amd64 io.cri-containerd.image=managed
"""
    assert nameless(listed) == ["sha256:config-old"]
    assert nameless("") == []


def test_an_ended_child_leaves_no_zombie(ledger: Ledger) -> None:
    process = ledger.start("sleeper", SLEEPER)
    end([process])
    assert not Path(f"/proc/{process.pid}").exists()
