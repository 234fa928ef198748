"""Step `nodes`: which nodes offer GPUs, in shards. A node that is not ready is among them: the sweep names it as silent."""

from typing import Final

import msgspec

from steps.contracts.declaration import Inputs
from steps.contracts.errors import BadInput, Exit
from steps.contracts.parcel import MAX_ARGUMENT_BYTES
from steps.contracts.ports import Outside
from steps.logs import log_for
from steps.nodes.shards import shards_of

MADE_BY: Final = "nodes"


def run(inputs: Inputs, outside: Outside) -> Exit:
    """Write the shards and their number. Raises BadInput when the list does not fit into an argument."""
    nodes = outside.cluster().gpu_nodes()
    shards = shards_of([node.name for node in nodes], inputs.count("shard-size"))
    written = msgspec.json.encode(shards)
    if len(written) > MAX_ARGUMENT_BYTES:
        raise BadInput(
            f"the list of {len(nodes)} GPU nodes has {len(written)} bytes, an argument holds {MAX_ARGUMENT_BYTES}; "
            "sweep one pool of nodes at a time"
        )
    inputs.put("shards", written)
    inputs.put("count", str(len(shards)).encode())
    not_ready = [node.name for node in nodes if not node.ready]
    log_for(MADE_BY).info("nodes.listed", nodes=len(nodes), shards=len(shards), not_ready=not_ready)
    return Exit.DONE
