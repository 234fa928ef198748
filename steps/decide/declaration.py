"""Declaration of the step `decide`."""

from typing import Final

from steps.contracts.declaration import Form, In, Out, Step

STEP: Final = Step(
    name="decide",
    help="give every session a verdict and a reason, keep the decisions that act, and account for what earlier sweeps saw",
    inputs=(
        In("run", "name of the run"),
        In("run-uid", "uid of the Workflow that owns the kept decisions", Form.ID),
        In("shard", "number of the shard", Form.COUNT),
        In("shards", "how many shards this sweep has; they share the policy's cap", Form.COUNT, default="1"),
        In("dry-run", "true: nothing is stopped", Form.SWITCH, default="true"),
        In("policy", "policy file, mounted from the ConfigMap gpu-reclaim-policy", Form.PATH),
        In("facts", "what collect handed over: a JSON list of parcels", Form.PATH, artifact=True),
        In("cluster", "ClusterFacts of survey", Form.PATH),
        In("traced", "Traced of trace", Form.PATH),
    ),
    outputs=(
        Out("orders", "JSON list of StopOrder: what leaves the judge"),
        Out("decisions", "Decisions, all of them"),
        Out("continuity", "Continuity: the time in which no sweep looked, and what became of every pod an earlier one saw"),
    ),
)
