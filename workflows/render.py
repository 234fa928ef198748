"""Render what is derived: workflows to `workflows/manifests/`, the steps' page to `docs/`: `python -m workflows.render [--check]`.

The committed YAML is what is deployed, tested and run locally; equal Python gives equal bytes.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from hera.workflows import WorkflowTemplate

from experiments.zombie.drive.declaration import STEP as DRIVE
from experiments.zombie.report.declaration import STEP as ZOMBIE_REPORT
from experiments.zombie.watch.declaration import STEP as WATCH
from steps.contracts.files import write_atomically
from steps.registry import STEPS
from workflows import MANIFESTS
from workflows.release_check import release_check
from workflows.step_docs import page
from workflows.sweep import sweep
from workflows.zombie import zombie

TEMPLATES: Final[Mapping[str, Callable[[], WorkflowTemplate]]] = {"release-check": release_check, "sweep": sweep, "zombie": zombie}
HEADER: Final = "# Rendered from workflows/{module}.py by `python -m workflows.render`. Do not edit.\n"
ROOT: Final = MANIFESTS.parent.parent
DOCUMENTED: Final = (*STEPS.values(), DRIVE, WATCH, ZOMBIE_REPORT)


def render(name: str) -> str:
    """The manifest of one workflow, as YAML text."""
    return HEADER.format(module=name.replace("-", "_")) + str(TEMPLATES[name]().to_yaml())


def steps_page() -> str:
    """docs/steps.md."""
    return page(DOCUMENTED, [TEMPLATES[name]().to_dict() for name in ("sweep", "release-check", "zombie")])


RENDERED: Final[Mapping[Path, Callable[[], str]]] = {
    **{MANIFESTS / f"{name}.yaml": partial(render, name) for name in TEMPLATES},
    ROOT / "docs" / "steps.md": steps_page,
}
"""Every file that is rendered, and what it should hold."""


def main(argv: list[str] | None = None) -> int:
    """Write the files, or with --check say which differ. Returns 0, or 3 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 3 if a committed file is stale")
    check = parser.parse_args(argv).check
    stale = {path: content for path, make in RENDERED.items() if (content := make()) != committed(path)}
    for path, content in stale.items():
        if check:
            print(f"{path.relative_to(ROOT)} is stale: run `python -m workflows.render` and read the diff", file=sys.stderr)
        else:
            write_atomically(path, content.encode())
    return 3 if check and stale else 0


def committed(path: Path) -> str | None:
    """What the file holds now; None if it is not there."""
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
