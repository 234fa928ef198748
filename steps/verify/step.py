"""The step `verify`: watch this node until the stopped session's devices are back, taken over, or leaked."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from steps.collect.look import look
from steps.contracts.declaration import Inputs
from steps.contracts.document import Stamp
from steps.contracts.errors import BadInput, Exit
from steps.contracts.node_facts import NodeFacts, Scan
from steps.contracts.ports import Outside
from steps.contracts.release import ReleaseVerdict
from steps.contracts.stop_receipt import StopReceipt
from steps.logs import log_for
from steps.verify.watch import Task, watch

EXIT_OF: Final = {
    ReleaseVerdict.RETURNED: Exit.DONE,
    ReleaseVerdict.TAKEN_OVER: Exit.DONE,
    ReleaseVerdict.LEAKED: Exit.MEMORY_NOT_BACK,
    ReleaseVerdict.PENDING: Exit.COULD_NOT,
    ReleaseVerdict.UNKNOWN: Exit.COULD_NOT,
}


def run(inputs: Inputs, outside: Outside) -> Exit:
    """Write the Release, whatever it says. Raises BadInput if the stop did not act."""
    node, interval_s = inputs.text("node"), inputs.seconds("interval-s")
    receipt = inputs.document("receipt", StopReceipt)
    capture = capture_of(node, inputs.parcels("captures", NodeFacts))

    def stamp_of(now: datetime) -> Stamp:
        return Stamp(made_by="verify", made_at=now, origin=outside.origin)

    def look_once() -> NodeFacts:
        return look(node, outside, 1, 0.0, made_by="verify")

    release = watch(Task(receipt, node, capture, interval_s), look_once, outside.clock, stamp_of)
    inputs.put("release", release)
    log_for("verify").info(
        "verify.watched",
        node=node,
        decision=receipt.decision_id,
        verdict=release.verdict.value,
        devices={device.device: device.verdict.value for device in release.devices},
        watched_s=(release.watched_until - release.watched_from).total_seconds(),
    )
    return EXIT_OF[release.verdict]


def capture_of(node: str, captures: Sequence[NodeFacts]) -> NodeFacts | None:
    """The newest capture of this node; None if there is none: then less can be proven, and the Release says so. Raises BadInput
    for a quick scan: it does not know all holders, so their end would prove nothing."""
    mine = [facts for facts in captures if facts.node == node]
    if any(facts.scan is Scan.QUICK for facts in mine):
        raise BadInput(f"the capture of {node} is a quick scan, which knows only what NVML lists; capture with a full one")
    return max(mine, key=lambda facts: facts.stamp.made_at, default=None)
