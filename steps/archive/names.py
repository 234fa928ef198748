"""Names of the files in an evidence folder, and node names of a run's tree taken apart. Pure."""

import re
from typing import Final

RUN_RECORD: Final = "run.json"
SUMMARY: Final = "summary.json"
REPORT: Final = "report.html"
CHECKSUMS: Final = "SHA256SUMS"
LOGS: Final = "logs"
SESSIONS: Final = "sessions"
COLLECTED: Final = "collected"
RECEIPT: Final = "receipt.json"
RELEASE_CHECK: Final = "release-check.json"
CONTINUITY: Final = "continuity.json"
"""Of one shard."""
SINCE: Final = "since.json"
"""Of the run: its shards' continuity, and who watched meanwhile."""


def checked_uid(run: str) -> str | None:
    """The pod for whose deletion a run of this name was started, `release-<uid>-<resourceVersion>` (sensors/pods), else None."""
    prefix, _, rest = run.partition("-")
    uid, _, version = rest.rpartition("-")
    return uid if prefix == "release" and uid and version else None


def safe(name: str) -> str:
    """A foreign name as a file name: no separators, no leading dot, at most 200 characters, never empty."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".")[:200] or "unnamed"


def parent_of(node_name: str) -> str:
    """The node name one level up: cut at the last dot outside parentheses, since an item such as `(0:node-a.example)` holds
    dots of its own. The root has no parent: empty."""
    depth = 0
    for position in range(len(node_name) - 1, -1, -1):
        letter = node_name[position]
        depth += (letter == ")") - (letter == "(")
        if letter == "." and depth <= 0:
            return node_name[:position]
    return ""


def task_of(node_name: str) -> str:
    """The last part of a node name: `collect(0:node-a)`."""
    parent = parent_of(node_name)
    return node_name[len(parent) + 1 :] if parent else node_name
