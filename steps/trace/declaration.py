"""Declaration of the step `trace`."""

from typing import Final

from steps.contracts.declaration import Form, In, Out, Step

STEP: Final = Step(
    name="trace",
    help="join devices and processes with pods and sessions, and classify every GPU",
    inputs=(
        In("nodes", "JSON list of the nodes that were asked; a silent one is named", Form.NAMES),
        In("facts", "what collect handed over: a JSON list of parcels", Form.PATH, artifact=True),
        In("cluster", "ClusterFacts of survey", Form.PATH),
    ),
    outputs=(Out("traced", "Traced"),),
)
