"""Declaration of the step `survey`."""

from typing import Final

from steps.contracts.declaration import Form, In, Out, Step

STEP: Final = Step(
    name="survey",
    help="read sessions, owners, guards and waiting pods from the API",
    inputs=(
        In("nodes", "JSON list of the shard's nodes", Form.NAMES),
        In(
            "facts",
            "what collect handed over: a JSON list of parcels; whose pods a list lacks is listed again",
            Form.PATH,
            artifact=True,
        ),
        In("policy", "policy file, mounted from the ConfigMap gpu-reclaim-policy", Form.PATH),
    ),
    outputs=(Out("cluster", "ClusterFacts"),),
)
