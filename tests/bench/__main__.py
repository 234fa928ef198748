"""Measure every row, print the table, write build/bench.json; exit 3 if a measured row misses its target."""

import sys
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from steps.contracts.errors import Exit
from steps.contracts.files import write_atomically
from tests.bench import deletion, node_rows, reclaim, startup, zombie
from tests.bench.row import Row

RESULT = Path("build/bench.json")


def main() -> int:
    rows = [*startup.rows(), *node_rows.rows(), *reclaim.rows(), *deletion.rows(), *zombie.rows()]
    write_atomically(RESULT, msgspec.json.format(msgspec.json.encode(rows), indent=2))
    _show(rows)
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
    print(f"written to {RESULT}")


if __name__ == "__main__":
    sys.exit(main())
