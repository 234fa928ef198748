"""Declaration of the step `collect`."""

from typing import Final

from steps.contracts.declaration import Form, In, Out, Step

STEP: Final = Step(
    name="collect",
    help="look at this node: GPUs, allocations, holders, connections",
    inputs=(
        In("node", "name of the node this runs on"),
        In("samples", "looks to take", Form.COUNT, default="1"),
        In("interval-s", "seconds between two looks", Form.SECONDS, default="10"),
        In("scan", "full, or quick: of /proc only what NVML lists; nothing is stopped on it", default="full"),
    ),
    outputs=(Out("facts", "NodeFacts", parcel=True),),
)
