"""The public function of the step `collect`."""

from steps.collect.declaration import LONGEST_S
from steps.collect.look import look
from steps.collect.pace import pace_of
from steps.collect.summary import summary
from steps.contracts.declaration import Inputs
from steps.contracts.errors import BadInput, Exit
from steps.contracts.node_facts import Scan
from steps.contracts.ports import Outside
from steps.logs import log_for


def run(inputs: Inputs, outside: Outside) -> Exit:
    """Write NodeFacts. A node whose NVML or kubelet does not answer has facts, too: they say so. Raises BadInput."""
    scan = _scan(inputs.text("scan"))
    samples, interval_s = pace_of(inputs, LONGEST_S)
    facts = look(inputs.text("node"), outside, samples, interval_s, made_by="collect", scan=scan)
    inputs.put("facts", facts)
    log_for("collect").info("collect.looked", **summary(facts))
    return Exit.DONE


def _scan(word: str) -> Scan:
    try:
        return Scan(word)
    except ValueError as error:
        raise BadInput(f"--scan={word!r} is no scan; give full or quick") from error
