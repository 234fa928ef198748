"""Declaration of the step `stop`."""

from typing import Final

from steps.contracts.declaration import Form, In, Out, Step

STEP: Final = Step(
    name="stop",
    help="stop one session through its owner's own switch, by decision id, guards judged again",
    inputs=(
        In("run", "name of the run that decided"),
        In("shard", "number of the shard that decided", Form.COUNT),
        In("decision", "id of the decision; never a decision itself", Form.ID),
        In("dry-run", "true: nothing is stopped", Form.SWITCH, default="true"),
        In("policy", "policy file, mounted from the ConfigMap gpu-reclaim-policy", Form.PATH),
        In("captures", "what capture handed over: a JSON list of parcels", Form.PATH, artifact=True),
    ),
    outputs=(
        Out("receipt", "StopReceipt"),
        Out("acted", "yes or no, for the next step's condition"),
    ),
)
