"""Images that no Dockerfile of the project makes: pause, the Argo programs, and the stand-in for the public Python base."""

import hashlib
import shutil
from pathlib import Path
from typing import Final

from tests.cluster.lab.commands import output_of
from tests.cluster.lab.oci import ImageSpec, pack
from tests.cluster.lab.parts import ARGO_EVENTS, ARGO_WORKFLOWS, NATS
from tests.cluster.lab.places import Places
from tests.cluster.lab.progress import timed

PAUSE: Final = "docker.io/local/pause:1"
ARGOEXEC: Final = f"docker.io/local/argoexec:{ARGO_WORKFLOWS.version}"
EVENTS: Final = f"docker.io/local/argo-events:{ARGO_EVENTS.version}"
NATS_IMAGE: Final = f"docker.io/local/nats-server:{NATS.version}"
PYTHON: Final = "docker.io/library/python:3.11-slim-bookworm"
"""The name that the project's Dockerfiles build from; here it is Debian 12 with its own Python 3.11."""

DEBOOTSTRAP_TIMEOUT_S: Final = 1200.0
PYTHON_PACKAGES: Final = ("python3", "python3-venv", "ca-certificates", "netbase", "tzdata", "tini")
NOT_PACKED: Final = (
    "var/cache/apt",
    "var/lib/apt/lists",
    "usr/share/doc",
    "usr/share/locale",
    "usr/share/man",
    "proc",
    "sys",
    "dev",
)

PAUSE_SOURCE: Final = """
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static void stop(int number) { (void)number; _exit(0); }
static void reap(int number) { (void)number; while (waitpid(-1, 0, WNOHANG) > 0) {} }
int main(void) { signal(SIGINT, stop); signal(SIGTERM, stop); signal(SIGCHLD, reap); for (;;) pause(); }
"""
PASSWD: Final = "root:x:0:0::/:/bin/false\nnobody:x:8737:8737::/:/bin/false\n"


def make_pause(where: Places) -> Path:
    """The program that holds a pod's namespaces."""
    target = where.images / f"pause-{_short(PAUSE_SOURCE)}.tar"
    if not target.is_file():
        root = _fresh_root(where, "pause")
        output_of(["gcc", "-static", "-Os", "-o", root / "pause", "-x", "c", "-"], timeout_s=60, stdin=PAUSE_SOURCE)
        pack(root, ImageSpec(PAUSE, entrypoint=["/pause"]), target)
    return target


def make_argoexec(where: Places) -> Path:
    """Argo Workflows' executor, which runs inside every pod of a workflow."""
    return _program_image(where, "argoexec", ARGOEXEC)


def make_argo_events(where: Places) -> Path:
    """Argo Events' one program: event source and sensor."""
    return _program_image(where, "argo-events", EVENTS)


def make_nats(where: Places) -> Path:
    """NATS, for the event bus' own pods."""
    return _program_image(where, "nats-server", NATS_IMAGE)


def make_python(where: Places) -> Path:
    """Debian 12 with Python 3.11 under the name of the public base, so that Dockerfiles build unchanged and offline."""
    target = where.images / f"python-{_short(' '.join(PYTHON_PACKAGES) + repr(NOT_PACKED))}.tar"
    if not target.is_file():
        root = _fresh_root(where, "python")
        with timed("Debian with Python by debootstrap"):
            wanted = ["--variant=minbase", f"--include={','.join(PYTHON_PACKAGES)}"]
            output_of(["debootstrap", *wanted, "bookworm", root], timeout_s=DEBOOTSTRAP_TIMEOUT_S)
        for name in ("proc", "sys", "dev"):
            (root / name).mkdir(exist_ok=True)
        pack(root, ImageSpec(PYTHON, command=["python3"], left_out=NOT_PACKED), target)
        shutil.rmtree(root)
    return target


def _program_image(where: Places, program: str, name: str) -> Path:
    binary = where.bin / program
    stat = binary.stat()
    target = where.images / f"{program}-{_short(f'{name} {stat.st_size} {stat.st_mtime_ns}')}.tar"
    if not target.is_file():
        root = _fresh_root(where, program)
        for folder in ("bin", "etc", "tmp"):
            (root / folder).mkdir()
        (root / "tmp").chmod(0o1777)
        shutil.copy2(binary, root / "bin" / program)
        (root / "etc" / "passwd").write_text(PASSWD, encoding="utf-8")
        pack(root, ImageSpec(name, entrypoint=[f"/bin/{program}"]), target)
        shutil.rmtree(root)
    return target


def _fresh_root(where: Places, name: str) -> Path:
    where.images.mkdir(parents=True, exist_ok=True)
    root = where.images / f".{name}.root"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    return root


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
