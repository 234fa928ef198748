"""Events are stored as events.k8s.io/v1; the core API shows the same ones in its own words."""

from typing import Final

from sim.world.state import Json

RENAMED: Final = {"regarding": "involvedObject", "note": "message", "reportingController": "reportingComponent"}


def as_core_event(event: Json) -> Json:
    """The same Event as /api/v1 shows it."""
    shown = {RENAMED.get(key, key): value for key, value in event.items()}
    return shown | {"apiVersion": "v1"}
