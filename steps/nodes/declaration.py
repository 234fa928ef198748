"""Declaration of the step `nodes`."""

from typing import Final

from steps.contracts.declaration import Form, In, Out, Step

STEP: Final = Step(
    name="nodes",
    help="list the GPU nodes, in shards small enough for one Argo argument",
    inputs=(In("shard-size", "nodes a shard", Form.COUNT, default="8", least=1),),
    outputs=(
        Out("shards", 'JSON list of {"shard": number, "nodes": [names]}'),
        Out("count", "how many shards there are"),
    ),
)
