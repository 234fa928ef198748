"""Measure rows, print the table, write them as JSON; exit 3 if a measured row misses its target.

`python -m tests.bench [GROUP ...] [--to PATH]`; without a group all of them, as `make bench` does. `reclaim`, `deletion` and
`zombie` each start the test cluster for themselves.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console
from rich.table import Table

from steps.contracts.errors import Exit
from steps.contracts.files import write_atomically
from tests.bench import deletion, node_rows, reclaim, startup, world, zombie
from tests.bench.row import Row

GROUPS: Final[Mapping[str, Callable[[], list[Row]]]] = {
    "startup": startup.rows,
    "node": node_rows.rows,
    "world": world.rows,
    "reclaim": reclaim.rows,
    "deletion": deletion.rows,
    "zombie": zombie.rows,
}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="measure ratios side by side in one run")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)} (default: all)")
    parser.add_argument("--to", type=Path, default=Path("build/bench.json"), metavar="PATH", help="default: build/bench.json")
    given = parser.parse_args(argv)
    for group in given.groups:
        if group not in GROUPS:
            parser.error(f"there is no group {group!r}; give some of {', '.join(GROUPS)}")
    rows = [row for group in given.groups or GROUPS for row in GROUPS[group]()]
    write_atomically(given.to, msgspec.json.format(msgspec.json.encode(rows), indent=2))
    _show(rows)
    print(f"written to {given.to}")
    return int(Exit.FOUND_PROBLEMS if any(row.holds is False for row in rows) else Exit.DONE)


def _show(rows: list[Row]) -> None:
    table = Table(title="gpu-reclaim bench: ratios measured side by side in one run", show_lines=True)
    for column in ("what", "ratio", "target", "holds", "setting"):
        table.add_column(column)
    for row in rows:
        ratio = "unknown" if row.ratio is None else f"{row.ratio:.2f}"
        holds = {True: "yes", False: "NO", None: "unknown"}[row.holds]
        table.add_row(row.name, ratio, f"at most {row.target:g}", holds, row.setting)
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
