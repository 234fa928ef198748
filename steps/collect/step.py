"""The public function of the step `collect`."""

from steps.collect.look import look
from steps.collect.summary import summary
from steps.contracts.declaration import Inputs
from steps.contracts.errors import Exit
from steps.contracts.ports import Outside
from steps.logs import log_for


def run(inputs: Inputs, outside: Outside) -> Exit:
    """Write NodeFacts. A node whose NVML or kubelet does not answer has facts, too: they say so."""
    facts = look(inputs.text("node"), outside, inputs.count("samples"), inputs.seconds("interval-s"), made_by="collect")
    inputs.put("facts", facts)
    log_for("collect").info("collect.looked", **summary(facts))
    return Exit.DONE
