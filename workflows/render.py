"""Render the workflows to `workflows/manifests/`: `python -m workflows.render [--check]`.

The committed YAML is what is deployed, tested and run locally; equal Python gives equal bytes.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import Final

from hera.workflows import WorkflowTemplate

from steps.contracts.files import write_atomically
from workflows import MANIFESTS
from workflows.release_check import release_check
from workflows.sweep import sweep
from workflows.zombie import zombie

TEMPLATES: Final[Mapping[str, Callable[[], WorkflowTemplate]]] = {"release-check": release_check, "sweep": sweep, "zombie": zombie}
HEADER: Final = "# Rendered from workflows/{module}.py by `python -m workflows.render`. Do not edit.\n"


def render(name: str) -> str:
    """The manifest of one workflow, as YAML text."""
    return HEADER.format(module=name.replace("-", "_")) + str(TEMPLATES[name]().to_yaml())


def main(argv: list[str] | None = None) -> int:
    """Write the manifests, or with --check say which differ. Returns 0, or 3 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 3 if a committed manifest is stale")
    check = parser.parse_args(argv).check
    stale = [name for name in TEMPLATES if _committed(name) != render(name)]
    for name in stale:
        if check:
            print(f"workflows/manifests/{name}.yaml is stale: run `python -m workflows.render` and read the diff", file=sys.stderr)
        else:
            write_atomically(MANIFESTS / f"{name}.yaml", render(name).encode())
    return 3 if check and stale else 0


def _committed(name: str) -> str | None:
    path = MANIFESTS / f"{name}.yaml"
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
