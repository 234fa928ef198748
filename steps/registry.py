"""All steps by name: declarations, and where the public function of each lives (loaded only when it runs)."""

from collections.abc import Callable
from importlib import import_module
from typing import Final, cast

from steps.archive.declaration import STEP as ARCHIVE
from steps.capture.declaration import STEP as CAPTURE
from steps.collect.declaration import STEP as COLLECT
from steps.contracts.declaration import Inputs, Step
from steps.contracts.errors import Exit
from steps.contracts.ports import Outside
from steps.decide.declaration import STEP as DECIDE
from steps.nodes.declaration import STEP as NODES
from steps.publish.declaration import STEP as PUBLISH
from steps.release_check.declaration import STEP as RELEASE_CHECK
from steps.stop.declaration import STEP as STOP
from steps.survey.declaration import STEP as SURVEY
from steps.trace.declaration import STEP as TRACE
from steps.verify.declaration import STEP as VERIFY

STEPS: Final[dict[str, Step]] = {
    step.name: step for step in (NODES, COLLECT, SURVEY, TRACE, DECIDE, PUBLISH, CAPTURE, STOP, VERIFY, RELEASE_CHECK, ARCHIVE)
}


def function_of(step: Step) -> Callable[[Inputs, Outside], Exit]:
    """The public function of a step: `run` in `steps.<name>.step`, where a dash of the name is an underscore."""
    return cast("Callable[[Inputs, Outside], Exit]", import_module(f"steps.{step.name.replace('-', '_')}.step").run)
