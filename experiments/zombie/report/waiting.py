"""Waits for what a stopped run still hands over: Argo begins the exit handler at the stop, while drive cleans up."""

from typing import Final

from experiments.zombie.ports import ZombieOutside
from steps.contracts.run_record import RunRecord

CLEAN_UP_S: Final = 400.0
"""How long drive and watch may take to end. The report's own pod has 600 s."""
OUTPUTS_S: Final = 30.0
"""How long the workflow engine may take to write down what they handed over, once they have ended."""
POLL_S: Final = 1.0


def whole_record(run: str, outside: ZombieOutside) -> RunRecord:
    """The run's record when nothing more comes, or when it has been waited for long enough."""
    clock = outside.base.clock
    began, waited = clock.now(), False
    while outside.under_way(run) and (clock.now() - began).total_seconds() < CLEAN_UP_S:
        waited = True
        clock.sleep(POLL_S)
    ended = clock.now()
    while True:
        record = outside.base.runs().read(run)
        if not waited or not _lacking(record) or (clock.now() - ended).total_seconds() >= OUTPUTS_S:
            return record
        clock.sleep(POLL_S)


def _lacking(record: RunRecord) -> bool:
    """A pod of drive or watch has handed over nothing."""
    return any(one.template in ("drive", "watch") and one.pod is not None and not one.outputs for one in record.nodes)
