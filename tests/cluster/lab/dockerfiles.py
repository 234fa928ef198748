"""Builds the project's own images from the project's own Dockerfiles, offline, by buildah with storage and settings of its own.

An image is built again when something that goes into it changed: Dockerfile, the files it copies, the requirements, the base.
"""

import hashlib
import platform
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.lab.bases import PYTHON, make_python
from tests.cluster.lab.commands import output_of
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.places import CHECKOUT, Places
from tests.cluster.lab.progress import say, timed

STEPS: Final = "docker.io/gpureclaim/steps:0.1.0"
TEST_SESSION: Final = "docker.io/gpureclaim/test-session:0.1.0"
SCENARIOS: Final = "docker.io/gpureclaim/zombie"

BUILD_TIMEOUT_S: Final = 600.0
DOWNLOAD_TIMEOUT_S: Final = 600.0
KEPT_TARS: Final = 3
"""Of one image, besides the newest: another program may be about to give one to its cluster."""
WHEEL_PLATFORMS: Final = ("manylinux2014", "manylinux_2_17", "manylinux_2_28", "manylinux_2_34")
SETTINGS: Final = {
    # No search list: a short name cannot go out to a public registry.
    "registries.conf": "unqualified-search-registries = []\nshort-name-mode = 'enforcing'\n",
    "policy.json": '{"default": [{"type": "insecureAcceptAnything"}]}\n',
}


@dataclass(frozen=True, slots=True)
class OwnImage:
    """sources: what the Dockerfile copies, relative to the checkout. wheels: a requirements file whose wheels it installs.
    target: the stage to build, of a Dockerfile that makes several images."""

    name: str
    dockerfile: str
    sources: tuple[str, ...]
    wheels: str | None = None
    target: str | None = None


OWN_IMAGES: Final = (
    OwnImage(
        STEPS, "images/steps/Dockerfile", ("steps", "experiments", "images/steps/gpu-reclaim"), wheels="requirements/steps.txt"
    ),
    OwnImage(TEST_SESSION, "images/sessions/Dockerfile", ("sim/node/workload.py",)),
    *(
        OwnImage(f"{SCENARIOS}:{name}", "images/scenarios/Dockerfile", ("images/scenarios", "sim/node/workload.py"), target=name)
        for name in ("nofix", "tini", "fullfix")
    ),
)


def make_own(where: Places, image: OwnImage) -> Path:
    """The image as an OCI tar named after the content it was made from. Raises LabError with buildah's last words."""
    base = make_python(where)
    short = image.name.rpartition("/")[2].replace(":", "-")
    target = where.images / f"{short}-{content_hash(image, base.name)}.tar"
    if target.is_file():
        return target
    for older in sorted(where.images.glob(f"{short}-*.tar"), key=lambda path: path.stat().st_mtime)[:-KEPT_TARS]:
        older.unlink()
    options = _wheel_options(where, CHECKOUT / image.wheels) if image.wheels else []
    with timed(f"image {image.name} from {image.dockerfile}"):
        _Buildah(where).build(image, base, options, target)
    say(f"{image.name}: {target.stat().st_size / 1e6:.0f} MB compressed")
    return target


def content_hash(image: OwnImage, base: str) -> str:
    """Of all that decides the image. Raises LabError naming the file that is missing."""
    digest = hashlib.sha256(base.encode())
    named = (image.dockerfile, f"{image.dockerfile}.dockerignore", *image.sources, *([image.wheels] if image.wheels else []))
    for name in named:
        for path in _files(CHECKOUT / name):
            relative = path.relative_to(CHECKOUT)
            digest.update(f"{relative} {path.stat().st_mode & 0o111} ".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]


def _files(path: Path) -> Sequence[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise LabError(f"{path} is missing, and an image is made from it; restore it in the checkout")
    return sorted(file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts)


def _wheel_options(where: Places, requirements: Path) -> list[str]:
    house = _wheelhouse(where, requirements)
    return ["--volume", f"{house}:/wheels:ro", "--build-arg", "PIP_OPTIONS=--no-index --find-links=/wheels"]


def _wheelhouse(where: Places, requirements: Path) -> Path:
    """The wheels of a requirements file for the image's Python 3.11, checked by hash, downloaded once."""
    house = where.wheels / hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    if house.is_dir():
        return house
    unfinished = house.with_name(f".{house.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    platforms = [f"--platform={name}_{platform.machine()}" for name in WHEEL_PLATFORMS]
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--only-binary=:all:", "--python-version=3.11"]
    with timed(f"wheels of {requirements.name}"):
        output_of([*argv, *platforms, "--dest", unfinished, "--requirement", requirements], timeout_s=DOWNLOAD_TIMEOUT_S)
    unfinished.rename(house)
    return house


class _Buildah:
    """buildah with storage, registries and policy below the cache: it neither sees nor touches the machine's own."""

    def __init__(self, where: Places) -> None:
        self._home = where.buildah
        self._home.mkdir(parents=True, exist_ok=True)
        for name, content in SETTINGS.items():
            (self._home / name).write_text(content, encoding="utf-8")

    def build(self, image: OwnImage, base: Path, options: Sequence[str], target: Path) -> None:
        """Unchanged layers are taken from the storage."""
        self._load(base)
        build = ["bud", "--isolation", "chroot", "--pull-never", "--layers", "--quiet", "--file", str(CHECKOUT / image.dockerfile)]
        build += ["--target", image.target] if image.target else []
        build += ["--ignorefile", str(CHECKOUT / f"{image.dockerfile}.dockerignore"), "--tag", image.name, *options, str(CHECKOUT)]
        self._run(build)
        unfinished = target.with_name(f".{target.name}.unfinished")
        unfinished.unlink(missing_ok=True)
        self._run(["push", "--quiet", image.name, f"oci-archive:{unfinished}:{image.name}"])
        unfinished.replace(target)

    def _load(self, base: Path) -> None:
        """Make the base known under its public name, unless this very tar is; with a new base all older layers are useless."""
        marker = self._home / "base.loaded"
        if marker.is_file() and marker.read_text(encoding="utf-8") == base.name:
            return
        with timed("Python base into buildah"):
            self._run(["rmi", "--all", "--force"])
            self._run(["pull", "--quiet", f"oci-archive:{base}"])
            loaded = self._run(["images", "--quiet", "--no-trunc"]).split()
            self._run(["tag", loaded[0], PYTHON])
        marker.write_text(base.name, encoding="utf-8")

    def _run(self, words: Sequence[str]) -> str:
        return output_of(self._argv(words), timeout_s=BUILD_TIMEOUT_S, more_environ=self._environ())

    def _argv(self, words: Sequence[str]) -> list[str]:
        storage = ["--root", str(self._home / "root"), "--runroot", str(self._home / "runroot"), "--storage-driver", "overlay"]
        return ["buildah", *storage, words[0], *self._signature_policy(words[0]), *words[1:]]

    def _signature_policy(self, command: str) -> list[str]:
        return ["--signature-policy", str(self._home / "policy.json")] if command in {"bud", "pull", "push"} else []

    def _environ(self) -> dict[str, str]:
        return {"CONTAINERS_REGISTRIES_CONF": str(self._home / "registries.conf"), "BUILDAH_ISOLATION": "chroot"}
