"""Step `publish`: the judge's documents go into the evidence folder, whole or not at all, and the stop orders go on.

Runs in the judge's container `main`: only what it writes leaves the pod.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from steps.contracts.cluster_facts import ClusterFacts
from steps.contracts.continuity import Continuity
from steps.contracts.decision import Decisions, StopOrder
from steps.contracts.declaration import Inputs
from steps.contracts.document import MAX_DOCUMENT_BYTES, encode
from steps.contracts.errors import BadInput, Exit, SourceUnavailable
from steps.contracts.files import is_there, read_limited, write_atomically
from steps.contracts.node_facts import NodeFacts
from steps.contracts.parcel import MAX_ARGUMENT_BYTES
from steps.contracts.ports import Outside
from steps.contracts.traced import Traced
from steps.logs import log_for

FACTS: Final = "facts.json"
CLUSTER: Final = "cluster.json"
TRACED: Final = "traced.json"
DECISIONS: Final = "decisions.json"
CONTINUITY: Final = "continuity.json"
ORDERS: Final = "orders.json"


def run(inputs: Inputs, outside: Outside) -> Exit:
    """Publish a shard. Every document is read and checked before the first is written.

    Raises BadInput: a broken document, an order without its decision, more orders than an argument holds.
    """
    facts = inputs.parcels("facts", NodeFacts)
    decisions = inputs.document("decisions", Decisions)
    orders = _checked_orders(inputs.path("orders"), decisions)
    documents = {
        FACTS: msgspec.json.encode(facts),
        CLUSTER: encode(inputs.document("cluster", ClusterFacts)),
        TRACED: encode(inputs.document("traced", Traced)),
        DECISIONS: encode(decisions),
        CONTINUITY: encode(inputs.document("continuity", Continuity)),
        ORDERS: msgspec.json.encode(orders),
    }
    folder = inputs.path("evidence") / inputs.text("run") / f"shard-{inputs.count('shard')}"
    _put_folder(folder, documents)
    inputs.put("stops", documents[ORDERS])
    size = sum(len(content) for content in documents.values())
    log_for("publish").info("publish.published", run=inputs.text("run"), folder=str(folder), size_bytes=size, stops=len(orders))
    return Exit.DONE


def _checked_orders(path: Path, decisions: Decisions) -> tuple[StopOrder, ...]:
    content = read_limited(path, MAX_DOCUMENT_BYTES)
    try:
        orders = msgspec.json.decode(content, type=tuple[StopOrder, ...])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is no list of stop orders: {error}; run decide again") from error
    if len(content) > MAX_ARGUMENT_BYTES:
        raise BadInput(
            f"{path} has {len(content)} bytes of stop orders, more than the {MAX_ARGUMENT_BYTES} that leave a judge; "
            "lower max_stops_per_sweep in the policy"
        )
    acting = {decision.decision_id for decision in decisions.decisions if decision.acts}
    strays = [order.decision for order in orders if order.decision not in acting]
    if strays:
        raise BadInput(f"{path} orders {strays[0]}, for which no acting decision exists; run decide again")
    return orders


def _put_folder(folder: Path, documents: dict[str, bytes]) -> None:
    """The folder appears by one rename; where it exists already (the step ran before), its files are replaced one by one."""
    if is_there(folder):
        for name, content in documents.items():
            write_atomically(folder / name, content)
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    except OSError as error:
        raise SourceUnavailable(f"{folder} cannot be made: {error.strerror}; give an evidence folder that is writable") from error
    try:
        for name, content in documents.items():
            write_atomically(beside / name, content)
        beside.chmod(0o755)
        beside.rename(folder)
    except OSError as error:
        raise SourceUnavailable(f"{folder} cannot be written: {error.strerror}; run the judge again") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
