"""containerd's images, kept from cluster to cluster: importing, unpacking and deleting them takes longer than all the rest.

Kept only if the end was orderly: `forget_containers` empties it of everything but images and marks it clean, and the next start
takes the mark away. Without the mark (a kill, a crash, a failure on the way) the store is thrown away and filled anew.
"""

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from steps.contracts.files import write_atomically
from tests.cluster.lab.commands import output_of, ran
from tests.cluster.lab.places import Places
from tests.cluster.lab.progress import timed

CTR_S: Final = 120.0


def store_of(where: Places) -> Path:
    """containerd's root folder."""
    return where.cache / "containerd"


def take_over(where: Places) -> None:
    """Make the store ready for a containerd that starts: as it was left if it was left clean, else empty."""
    clean = _mark(where)
    if not clean.is_file():
        shutil.rmtree(store_of(where), ignore_errors=True)
        store_of(where).mkdir(parents=True)
    clean.unlink(missing_ok=True)


def import_images(where: Places, socket: Path, tars: Sequence[Path]) -> None:
    """Give containerd the images that it lacks. Raises LabError naming the first that it refused."""
    known = _known(where)
    lacking = [tar for tar in tars if tar.name not in known]
    if not lacking:
        return
    with timed(f"{len(lacking)} images into containerd"), ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(lambda tar: output_of([*_ctr(socket), "images", "import", tar], timeout_s=CTR_S), lacking))
    # Of one image only the last import counts: the name points to it alone.
    replaced = {_image(tar.name) for tar in lacking}
    kept = [name for name in known if _image(name) not in replaced]
    write_atomically(_list(where), msgspec.json.encode([*kept, *(tar.name for tar in lacking)]))


def forget_containers(where: Places, socket: Path) -> None:
    """Remove every task, container and replaced image from a running containerd, and mark the store clean if that went well."""
    tasks = ran([*_ctr(socket), "tasks", "list", "--quiet"], timeout_s=CTR_S)
    if tasks.stdout.split():
        ran([*_ctr(socket), "tasks", "delete", "--force", *tasks.stdout.split()], timeout_s=CTR_S)
    containers = ran([*_ctr(socket), "containers", "list", "--quiet"], timeout_s=CTR_S)
    if containers.stdout.split():
        ran([*_ctr(socket), "containers", "delete", *containers.stdout.split()], timeout_s=CTR_S)
    if replaced := nameless(ran([*_ctr(socket), "images", "list"], timeout_s=CTR_S).stdout):
        ran([*_ctr(socket), "images", "delete", *replaced], timeout_s=CTR_S)
    left = ran([*_ctr(socket), "containers", "list", "--quiet"], timeout_s=CTR_S)
    if left.returncode == 0 and not left.stdout.strip():
        write_atomically(_mark(where), b"")


def nameless(listed: str) -> list[str]:
    """Of what `ctr images list` says, the references `sha256:...` to images whose name was given to a newer one."""
    rows = [line.split() for line in listed.splitlines()[1:]]
    named = {row[2] for row in rows if not row[0].startswith("sha256:")}
    return [row[0] for row in rows if row[0].startswith("sha256:") and row[2] not in named]


def _ctr(socket: Path) -> list[str]:
    return ["ctr", "--address", str(socket), "--namespace", "k8s.io"]


def _mark(where: Places) -> Path:
    return store_of(where) / "left-clean"


def _list(where: Places) -> Path:
    """Names of the tars in the store; it goes with the store."""
    return store_of(where) / "imported.json"


def _known(where: Places) -> list[str]:
    path = _list(where)
    return msgspec.json.decode(path.read_bytes(), type=list[str]) if path.is_file() else []


def _image(tar_name: str) -> str:
    """The part of a tar's name before its content's hash: two with the same are versions of one image."""
    return tar_name.rpartition("-")[0]
