"""The public function of the step `capture`."""

from steps.capture.declaration import LONGEST_S
from steps.collect.look import look
from steps.collect.pace import pace_of
from steps.collect.summary import summary
from steps.contracts.declaration import Inputs
from steps.contracts.errors import Exit
from steps.contracts.ports import Outside
from steps.logs import log_for


def run(inputs: Inputs, outside: Outside) -> Exit:
    """Write NodeFacts. A node whose NVML or kubelet does not answer has facts, too: they say so. Raises BadInput."""
    samples, interval_s = pace_of(inputs, LONGEST_S)
    facts = look(inputs.text("node"), outside, samples, interval_s, made_by="capture")
    inputs.put("facts", facts)
    log_for("capture").info("capture.looked", **summary(facts))
    return Exit.DONE
