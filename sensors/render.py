"""Render the event objects to `sensors/manifests/`: `python -m sensors.render [--check]`.

The committed YAML is what is deployed and tested; equal Python gives equal bytes.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import yaml

from sensors import MANIFESTS, bus, pods, tags, ticks
from sensors.common import Json
from steps.contracts.files import write_atomically

OBJECTS: Final[Mapping[str, Sequence[Callable[[], Json]]]] = {
    "bus": (bus.bus,),
    "existing-bus": (bus.existing_bus,),
    "pods": (pods.source, pods.pod_deleted),
    "ticks": (ticks.source, ticks.tick),
    "cron": (ticks.cron,),
    "tags": (tags.source, tags.tag_pushed),
}
"""The sets that overlays pick, each a folder of `manifests/`."""
HEADER: Final = "# Rendered from sensors/*.py by `python -m sensors.render`. Do not edit.\n"


class _Plain(yaml.SafeDumper):
    """No anchors where a part stands twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    """Lines as lines. Said here, because importing Hera teaches PyYAML's own dumper the same."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Plain.add_representer(str, _text)


def render(name: str) -> str:
    """The objects of one set, as YAML text."""
    made = [one() for one in OBJECTS[name]]
    return HEADER + yaml.dump_all(made, Dumper=_Plain, sort_keys=False, width=1000)


def kustomization(name: str) -> str:
    return f"{HEADER}apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- {name}.yaml\n"


def files() -> dict[str, str]:
    """Every committed file below `manifests/` and its text."""
    return {
        path: text
        for name in OBJECTS
        for path, text in ((f"{name}/{name}.yaml", render(name)), (f"{name}/kustomization.yaml", kustomization(name)))
    }


def main(argv: list[str] | None = None) -> int:
    """Write the manifests, or with --check say which differ. Returns 0, or 3 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 3 if a committed manifest is stale")
    check = parser.parse_args(argv).check
    stale = [path for path, text in files().items() if _committed(path) != text]
    for path in stale:
        if check:
            print(f"sensors/manifests/{path} is stale: run `python -m sensors.render` and read the diff", file=sys.stderr)
        else:
            write_atomically(MANIFESTS / path, files()[path].encode())
    return 3 if check and stale else 0


def _committed(path: str) -> str | None:
    full = MANIFESTS / path
    return full.read_text(encoding="utf-8") if full.exists() else None


if __name__ == "__main__":
    sys.exit(main())
