"""Declaration of the step `capture`."""

from typing import Final

from steps.collect.declaration import SHORTEST_INTERVAL_S
from steps.contracts.declaration import Form, In, Out, Step

LONGEST_S: Final = 120.0
"""All looks together; its pod has 180 s in all."""

STEP: Final = Step(
    name="capture",
    help="look at the node again right before a stop: holders, connections, activity",
    inputs=(
        In("node", "name of the node this runs on"),
        In("samples", "looks to take", Form.COUNT, default="2", least=1, most=12),
        In(
            "interval-s",
            f"between two looks; all looks within {LONGEST_S:g} s",
            Form.SECONDS,
            default="10",
            least=SHORTEST_INTERVAL_S,
            most=60,
        ),
    ),
    outputs=(Out("facts", "NodeFacts; verify's *before*", parcel=True),),
)
