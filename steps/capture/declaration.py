"""Declaration of the step `capture`."""

from typing import Final

from steps.collect.declaration import looks
from steps.contracts.declaration import In, Out, Step

LONGEST_S: Final = 120.0
"""All looks together; its pod has 180 s in all."""

STEP: Final = Step(
    name="capture",
    help="look at the node again right before a stop: holders, connections, activity",
    inputs=(
        In("node", "name of the node this runs on"),
        *looks("2", LONGEST_S),
    ),
    outputs=(Out("facts", "NodeFacts; verify's *before*", parcel=True),),
)
