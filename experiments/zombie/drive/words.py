"""What the JSON lines of parent, workers and hook say. Pure; a line that is no JSON is somebody else's and is passed over."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

Line = dict[str, Any]


def lines(text: str) -> Iterator[Line]:
    """The JSON objects among the lines."""
    for line in text.splitlines():
        try:
            parsed = json.loads(line)
        except ValueError:
            continue
        if isinstance(parsed, dict) and isinstance(parsed.get("event"), str):
            yield parsed


def spoken(text: str, event: str, field: str) -> object:
    """A field of the last line with this event; None if there is none."""
    return next((line.get(field) for line in reversed(list(lines(text))) if line["event"] == event), None)


def happened(text: str, ending: str, pid: int) -> bool:
    """Whether a process said an event whose name ends so."""
    return any(line["event"].endswith(ending) and line.get("pid") == pid for line in lines(text))


def moments(text: str) -> list[tuple[datetime, Line]]:
    """Lines with the time their author gave them, in order; those without a readable time are left out."""
    found = []
    for line in lines(text):
        try:
            found.append((datetime.fromisoformat(str(line.get("at"))), line))
        except ValueError:
            continue
    return sorted(found, key=lambda one: one[0])
