"""Which signals a kind of session requires, and which do not apply to it and why.

A required signal that is unknown keeps the session. A kind that is not listed requires every signal there is.
"""

import enum
from collections.abc import Mapping
from typing import Final


class Signal(enum.Enum):
    """What a verdict may rest on. heartbeat: a file or stamp that a tool touches while somebody looks at it."""

    GPU_ACTIVITY = "gpu activity"
    CONNECTIONS = "connections"
    HEARTBEAT = "heartbeat"


REQUIRED: Final = ""

NEEDS: Final[Mapping[str, Mapping[Signal, str]]] = {
    "Deployment": {
        Signal.GPU_ACTIVITY: REQUIRED,
        Signal.CONNECTIONS: REQUIRED,
        Signal.HEARTBEAT: "a plain Deployment has no heartbeat",
    },
}
"""Owner kind -> signal -> why it does not apply (empty: it is required)."""


def required_of(kind: str) -> tuple[Signal, ...]:
    """The signals without which a session of this kind is never stopped."""
    needs = NEEDS.get(kind)
    return tuple(Signal) if needs is None else tuple(signal for signal, why_not in needs.items() if why_not == REQUIRED)


def not_applicable_to(kind: str) -> tuple[tuple[Signal, str], ...]:
    """(signal, why it does not apply) for this kind."""
    needs = NEEDS.get(kind)
    return () if needs is None else tuple((signal, why_not) for signal, why_not in needs.items() if why_not != REQUIRED)
