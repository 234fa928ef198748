"""Step `stop`: stop one session through its owner's own switch, by decision id. The only step that changes a workload."""

from steps.contracts.declaration import Inputs
from steps.contracts.errors import Exit, SourceUnavailable
from steps.contracts.files import read_limited
from steps.contracts.node_facts import NodeFacts
from steps.contracts.ports import Outside
from steps.contracts.stop_receipt import Refusal, StopReceipt
from steps.decide.policy import MAX_POLICY_BYTES, parse_policy
from steps.logs import log_for
from steps.stop.life import captured
from steps.stop.order import Order, find
from steps.stop.receipts import MADE_BY
from steps.stop.transaction import Transaction

SILENT = frozenset({Refusal.DRY_RUN, Refusal.OBSERVE_ONLY, Refusal.UNKNOWN_DECISION})
"""Refusals that leave no Event: in a dry run nothing at all is created."""


def run(inputs: Inputs, outside: Outside) -> Exit:
    """Write the receipt and `acted` (yes or no). A refusal is a result, exit 0.

    Raises BadInput (broken policy or capture) before anything was done, and SourceUnavailable if the API failed before the
    write; running it again with the same decision continues where it ended.
    """
    path = inputs.path("policy")
    order = Order(
        run=inputs.text("run"),
        shard=inputs.count("shard"),
        decision_id=inputs.text("decision"),
        dry_run=inputs.switch("dry-run"),
        policy=parse_policy(read_limited(path, MAX_POLICY_BYTES), str(path)),
        now=outside.clock.now(),
        origin=outside.origin,
    )
    captures = inputs.parcels("captures", NodeFacts)
    kept = outside.decisions().load(order.run, order.shard)
    decided = find(order, kept)
    nodes = {} if decided is None else captured(decided, captures, order.now)
    receipt = Transaction(order, outside.owners(), outside.intents(), outside.clock).run(kept, nodes)
    inputs.put("receipt", receipt)
    inputs.put("acted", b"yes" if receipt.acted else b"no")
    _report(receipt, outside)
    return Exit.DONE


def _report(receipt: StopReceipt, outside: Outside) -> None:
    """One log line, and an Event on the owner. What was done stays done, so a failing Event is only logged."""
    log = log_for(MADE_BY).bind(
        decision=receipt.decision_id, session_uid=receipt.owner.uid if receipt.owner else None, sentence=receipt.sentence
    )
    if receipt.acted:
        log.info("stop.stopped", replicas_before=receipt.replicas_before, replicas_after=receipt.replicas_after)
    else:
        log.info("stop.refused", reason=receipt.refusal.value if receipt.refusal else None)
    if receipt.owner is None or receipt.refusal in SILENT:
        return
    try:
        rejected = outside.events().record(receipt.owner, "Stopped" if receipt.acted else "StopRefused", "Stop", receipt.sentence)
        problem = rejected.detail if rejected else None
    except SourceUnavailable as error:
        problem = str(error)
    if problem is not None:
        log.warning("stop.event_missing", problem=problem)
