"""Declaration of the step `watch`."""

from typing import Final

from steps.contracts.declaration import Form, In, Out, Step
from steps.contracts.errors import Exit

STEP: Final = Step(
    name="watch",
    help="watch this node's GPUs and the processes of the session, several times a second, while drive runs a scenario",
    inputs=(
        In("run", "name of the run", Form.ID),
        In("scenario", "the scenario that is driven"),
        In("node", "name of the node this runs on"),
        In("interval-s", "seconds between two looks", Form.SECONDS, default="0.12"),
        In("clean-s", "seconds the GPUs are given to become free before the scenario is refused", Form.SECONDS, default="15"),
        In("settle-s", "seconds of watching after drive has ended", Form.SECONDS, default="2"),
        In("limit-s", "seconds after which watching ends in any case", Form.SECONDS, default="1500"),
    ),
    outputs=(Out("recording", "WatchRecording", parcel=True),),
    exits=(Exit.DONE, Exit.COULD_NOT, Exit.BAD_INPUT, Exit.FOUND_PROBLEMS),
)
