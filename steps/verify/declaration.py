"""Declaration of the step `verify`."""

from typing import Final

from steps.collect.declaration import SHORTEST_INTERVAL_S
from steps.contracts.declaration import Form, In, Out, Step
from steps.contracts.errors import Exit

STEP: Final = Step(
    name="verify",
    help="watch this node until the session's memory is back, taken over, or leaked",
    inputs=(
        In("node", "name of the node this runs on"),
        In("receipt", "StopReceipt of stop", Form.PATH, artifact=True),
        In("captures", "what capture handed over: a JSON list of parcels", Form.PATH, artifact=True),
        In("interval-s", "seconds between two looks", Form.SECONDS, default="1", least=SHORTEST_INTERVAL_S, most=60),
    ),
    outputs=(Out("release", "Release", parcel=True),),
    exits=(Exit.DONE, Exit.COULD_NOT, Exit.BAD_INPUT, Exit.MEMORY_NOT_BACK),
)
