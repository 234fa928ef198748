"""Packs a folder as an OCI image tar, with the standard library alone; the same folder gives the same bytes."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast

PATH_OF_A_CONTAINER: Final = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CREATED: Final = "2026-01-01T00:00:00Z"
MEDIA: Final = "application/vnd.oci.image"
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class ImageSpec:
    """names: full references; the first goes into the tar's index. left_out: paths below the root that are not packed."""

    name: str
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    left_out: Sequence[str] = ()


def architecture() -> str:
    """This machine's architecture in the words of OCI."""
    machine = platform.machine()
    return ARCHITECTURES.get(machine, machine)


def pack(root: Path, spec: ImageSpec, target: Path) -> None:
    """Write the image tar of `root` to `target`, by rename once it is whole."""
    unfinished = target.with_name(f".{target.name}.unfinished")
    layer_file = target.with_name(f".{target.name}.layer")
    try:
        layer = _pack_layer(root, spec.left_out, layer_file)
        config = _json(_config(spec, layer))
        manifest = _json(_manifest(config, layer))
        with tarfile.open(unfinished, "w") as image:
            _add(image, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
            _add(image, "index.json", _json(_index(spec, manifest)))
            _add(image, _blob(_digest(manifest)), manifest)
            _add(image, _blob(_digest(config)), config)
            _add_file(image, _blob(layer.digest), layer_file)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
        layer_file.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class _Blob:
    digest: str
    size_bytes: int


class _Counted:
    """A file that knows the digest and size of what was written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self._size_bytes = 0

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        self._size_bytes += len(data)
        return self._file.write(data)

    def blob(self) -> _Blob:
        return _Blob(f"sha256:{self._hash.hexdigest()}", self._size_bytes)


def _pack_layer(root: Path, left_out: Sequence[str], target: Path) -> _Blob:
    gone = tuple(f"./{path.strip('/')}" for path in left_out)

    def kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        entry.uname = entry.gname = ""
        return None if entry.name in gone or entry.name.startswith(tuple(f"{path}/" for path in gone)) else entry

    with target.open("wb") as file:
        counted = _Counted(file)
        with tarfile.open(fileobj=cast("BinaryIO", counted), mode="w|", format=tarfile.PAX_FORMAT) as layer:
            layer.add(root, arcname=".", filter=kept)
        return counted.blob()


def _config(spec: ImageSpec, layer: _Blob) -> Mapping[str, object]:
    return {
        "architecture": architecture(),
        "os": "linux",
        "created": CREATED,
        "config": {"Env": [PATH_OF_A_CONTAINER], "Entrypoint": list(spec.entrypoint), "Cmd": list(spec.command)},
        "rootfs": {"type": "layers", "diff_ids": [layer.digest]},
        "history": [{"created": CREATED, "created_by": "tests.cluster.lab"}],
    }


def _manifest(config: bytes, layer: _Blob) -> Mapping[str, object]:
    return {
        "schemaVersion": 2,
        "mediaType": f"{MEDIA}.manifest.v1+json",
        "config": {"mediaType": f"{MEDIA}.config.v1+json", "digest": _digest(config), "size": len(config)},
        "layers": [{"mediaType": f"{MEDIA}.layer.v1.tar", "digest": layer.digest, "size": layer.size_bytes}],
    }


def _index(spec: ImageSpec, manifest: bytes) -> Mapping[str, object]:
    """The annotation io.containerd.image.name is what gives the image its name in containerd."""
    named = {"io.containerd.image.name": spec.name, "org.opencontainers.image.ref.name": spec.name.rpartition(":")[2]}
    entry = {"mediaType": f"{MEDIA}.manifest.v1+json", "digest": _digest(manifest), "size": len(manifest), "annotations": named}
    return {"schemaVersion": 2, "manifests": [entry]}


def _json(document: Mapping[str, object]) -> bytes:
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _add(image: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    image.addfile(entry, io.BytesIO(content))


def _add_file(image: tarfile.TarFile, name: str, path: Path) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = path.stat().st_size
    with path.open("rb") as file:
        image.addfile(entry, file)
