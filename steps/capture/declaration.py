"""Declaration of the step `capture`."""

from typing import Final

from steps.contracts.declaration import Form, In, Out, Step

STEP: Final = Step(
    name="capture",
    help="look at the node again right before a stop: holders, connections, activity",
    inputs=(
        In("node", "name of the node this runs on"),
        In("samples", "looks to take", Form.COUNT, default="2"),
        In("interval-s", "seconds between two looks", Form.SECONDS, default="10"),
    ),
    outputs=(Out("facts", "NodeFacts; verify's *before*", parcel=True),),
)
