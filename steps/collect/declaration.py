"""Declaration of the step `collect`."""

from typing import Final

from steps.contracts.declaration import Form, In, Out, Step

SHORTEST_INTERVAL_S: Final = 0.1
"""Process lists hold the driver's global lock; 40 of them a second stalled a game (facts/gpu-and-linux 3.9)."""
LONGEST_S: Final = 90.0
"""All looks together; its pod has 120 s in all, and a node whose pod runs out of them is silent."""


def looks(default: str, longest_s: float) -> tuple[In, In]:
    """How many looks a step takes, and how far apart. longest_s: all of them together."""
    within = f"between two looks; all looks within {longest_s:g} s"
    return (
        In("samples", "looks to take", Form.COUNT, default=default, least=1, most=12),
        In("interval-s", within, Form.SECONDS, default="10", least=SHORTEST_INTERVAL_S, most=60),
    )


STEP: Final = Step(
    name="collect",
    help="look at this node: GPUs, allocations, holders, connections",
    inputs=(
        In("node", "name of the node this runs on"),
        *looks("1", LONGEST_S),
        In("scan", "full, or quick: of /proc only what NVML lists; nothing is stopped on it", default="full"),
    ),
    outputs=(Out("facts", "NodeFacts", parcel=True),),
)
