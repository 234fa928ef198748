"""Is a cgroup path a pod's? Only this yes or no; which pod it is, and whether to believe it, is for trace to say. Pure."""

import re
from collections.abc import Iterable
from typing import Final

_POD: Final = re.compile(
    r"(?:^|[-/])pod(?:[0-9a-f]{8}([-_])[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}|[0-9a-f]{32})(?=[./:]|$)"
)


def in_a_pod(lines: Iterable[str]) -> bool:
    """True if any line has a segment that names a pod uid, in either cgroup driver's spelling (facts 1.2)."""
    return any(_POD.search(line) is not None for line in lines)
