"""The experiments' steps by name: declarations, and where the public function of each lives (loaded only when it runs)."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from experiments.zombie.drive.declaration import STEP as DRIVE
from experiments.zombie.report.declaration import STEP as REPORT
from experiments.zombie.watch.declaration import STEP as WATCH
from steps.contracts.declaration import Inputs, Step
from steps.contracts.errors import Exit
from steps.contracts.ports import Outside

if TYPE_CHECKING:
    from experiments.zombie.ports import ZombieOutside

STEPS: Final[dict[str, Step]] = {step.name: step for step in (DRIVE, WATCH, REPORT)}
_PLACES: Final = {
    "drive": "experiments.zombie.drive.step",
    "watch": "experiments.zombie.watch.step",
    "zombie-report": "experiments.zombie.report.step",
}


def function_of(step: Step) -> Callable[[Inputs, Outside], Exit]:
    """The public function of a step, `run` of its module, over the outside of all steps."""

    def run(inputs: Inputs, outside: Outside) -> Exit:
        from experiments.wiring import zombie_outside  # noqa: PLC0415 - loads adapters

        step_run = cast("Callable[[Inputs, ZombieOutside], Exit]", import_module(_PLACES[step.name]).run)
        return step_run(inputs, zombie_outside(outside))

    return run
