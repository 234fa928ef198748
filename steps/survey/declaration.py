"""Declaration of the step `survey`."""

from typing import Final

from steps.contracts.declaration import Form, In, Out, Step

STEP: Final = Step(
    name="survey",
    help="read sessions, owners, guards and waiting pods from the API",
    inputs=(
        In("nodes", "JSON list of the shard's nodes", Form.NAMES),
        In("policy", "policy file, mounted from the ConfigMap gpu-reclaim-policy", Form.PATH),
    ),
    outputs=(Out("cluster", "ClusterFacts"),),
)
