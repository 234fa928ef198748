"""Builds the programs of the test cluster from their Go modules, each once; what is up to date is left alone.

A stamp beside each binary holds its recipe (module, version, linker flags). A binary appears by rename, its stamp after it, so a
killed build is run again from where it stood; Go's own cache keeps what was compiled.
"""

import json
import re
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from steps.contracts.files import write_atomically
from tests.cluster.lab.commands import output_of
from tests.cluster.lab.errors import LabError
from tests.cluster.lab.locks import alone
from tests.cluster.lab.parts import ARGO_WORKFLOWS, KUBERNETES, PARTS, Part, Program
from tests.cluster.lab.places import Places
from tests.cluster.lab.progress import say, timed

DOWNLOAD_TIMEOUT_S: Final = 900.0
COMPILE_TIMEOUT_S: Final = 2400.0
OTHER_PROGRAM_S: Final = 5400.0
ENVIRON: Final = {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"}
WEB_PAGE: Final = "<html><body>API only</body></html>"


def build(where: Places, parts: Sequence[Part] = PARTS) -> None:
    """Every program of the parts, in `where.bin`. Raises LabError with Go's last words."""
    with alone(where, "building", patience_s=OTHER_PROGRAM_S):
        for part in parts:
            _build_part(where, part)


def _build_part(where: Places, part: Part) -> None:
    stale = [program for program in part.programs if not is_built(where, part, program)]
    if not stale:
        say(f"{part.name} {part.version} is built")
        return
    with timed(f"source of {part.name} {part.version}"):
        folder = _module_to_build_in(where, part)
    for program in stale:
        with timed(f"building {program.name} {part.version}"):
            _build_one(where, part, program, folder)


def missing(where: Places) -> list[str]:
    """Names of the programs that are not built, or from another recipe."""
    return [program.name for part in PARTS for program in part.programs if not is_built(where, part, program)]


def source_of(where: Places, part: Part) -> Path:
    """The unpacked copy of a part's module, where its manifests are found."""
    return where.sources / f"{part.name}-{part.version}"


def is_built(where: Places, part: Part, program: Program) -> bool:
    """True if the binary is there and its stamp names the part's recipe."""
    stamp = _stamp(where, program)
    binary = where.bin / program.name
    return binary.is_file() and stamp.is_file() and stamp.read_text(encoding="utf-8") == part.recipe()


def _stamp(where: Places, program: Program) -> Path:
    return where.bin / f".{program.name}.recipe"


def _build_one(where: Places, part: Part, program: Program, folder: Path) -> None:
    where.bin.mkdir(parents=True, exist_ok=True)
    unfinished = where.bin / f".{program.name}.unfinished"
    argv = ["go", "build", "-ldflags", part.ldflags, "-o", str(unfinished), program.package]
    output_of(argv, timeout_s=COMPILE_TIMEOUT_S, cwd=folder, more_environ=ENVIRON)
    unfinished.replace(where.bin / program.name)
    write_atomically(_stamp(where, program), part.recipe().encode())


def _module_to_build_in(where: Places, part: Part) -> Path:
    asked = output_of(
        ["go", "mod", "download", "-json", f"{part.module}@v{part.version}"], timeout_s=DOWNLOAD_TIMEOUT_S, cwd=_empty(where)
    )
    downloaded = Path(json.loads(asked)["Dir"])
    return _unpacked(where, part, downloaded) if part.unpacked else _wrapped(where, part, downloaded)


def _empty(where: Places) -> Path:
    """A folder without go.mod, so that no module of this checkout has a say."""
    where.sources.mkdir(parents=True, exist_ok=True)
    return where.sources


def _unpacked(where: Places, part: Part, downloaded: Path) -> Path:
    """A copy of the module that is its own main module, so that its own go.mod and go.sum decide every version."""
    target = source_of(where, part)
    if target.is_dir():
        return target
    unfinished = target.with_name(f".{target.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(downloaded, unfinished)
    for path in (unfinished, *unfinished.rglob("*")):
        path.chmod(path.stat().st_mode | stat.S_IWUSR)
    if part is ARGO_WORKFLOWS:
        _mend_argo_workflows(unfinished)
    unfinished.rename(target)
    return target


def _mend_argo_workflows(source: Path) -> None:
    """A module archive carries no symbolic links (one source file of the executor is one) and no generated web page."""
    signals = source / "workflow" / "executor" / "osspecific"
    (signals / "signal_linux.go").symlink_to("signal_darwin.go")
    page = source / "ui" / "dist" / "app" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(WEB_PAGE, encoding="utf-8")


def _wrapped(where: Places, part: Part, downloaded: Path) -> Path:
    """A small module that requires the part: for modules whose own go.mod points to folders that the archive lacks."""
    folder = where.sources / f"{part.name}-{part.version}"
    folder.mkdir(parents=True, exist_ok=True)
    described = (downloaded / "go.mod").read_text(encoding="utf-8")
    go_line = re.search(r"^go [0-9.]+$", described, re.MULTILINE)
    if go_line is None:
        raise LabError(f"{downloaded}/go.mod names no Go version; delete Go's module cache and build again")
    lines = [f"module lab/{part.name}", go_line.group(), f"require {part.module} v{part.version}"]
    lines += _staging_pins(part, described)
    lines += [f"tool {program.package}" for program in part.programs]
    wanted = "\n".join(lines) + "\n"
    recorded = folder / "go.mod.wanted"
    if not recorded.is_file() or recorded.read_text(encoding="utf-8") != wanted:
        (folder / "go.mod").write_text(wanted, encoding="utf-8")
        output_of(["go", "mod", "tidy"], timeout_s=DOWNLOAD_TIMEOUT_S, cwd=folder, more_environ=ENVIRON)
        write_atomically(recorded, wanted.encode())
    return folder


def _staging_pins(part: Part, described: str) -> list[str]:
    """Kubernetes replaces its own libraries by folders; whoever requires it has to pin them: v1.34.4 goes with v0.34.4."""
    if part is not KUBERNETES:
        return []
    version = "v0." + part.version.removeprefix("1.")
    return [f"replace {name} => {name} {version}" for name in re.findall(r"(k8s\.io/[a-z0-9-]+) => \./staging", described)]
