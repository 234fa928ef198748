"""Declaration of the step `publish`."""

from typing import Final

from steps.contracts.declaration import Form, In, Out, Step

STEP: Final = Step(
    name="publish",
    help="put the judge's documents into the evidence folder and hand on the stop orders",
    inputs=(
        In("run", "name of the run"),
        In("shard", "number of the shard", Form.COUNT),
        In("evidence", "folder of all evidence", Form.PATH),
        In("facts", "what collect handed over: a JSON list of parcels", Form.PATH, artifact=True),
        In("cluster", "ClusterFacts of survey", Form.PATH),
        In("traced", "Traced of trace", Form.PATH),
        In("decisions", "Decisions of decide", Form.PATH),
        In("continuity", "Continuity of decide", Form.PATH),
        In("orders", "stop orders of decide", Form.PATH),
    ),
    outputs=(Out("stops", "JSON list of StopOrder, checked and within an argument's size"),),
)
