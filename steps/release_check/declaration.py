"""Declaration of the step `release-check`."""

from typing import Final

from steps.collect.declaration import SHORTEST_INTERVAL_S
from steps.contracts.declaration import Form, In, Out, Step
from steps.contracts.errors import Exit

STEP: Final = Step(
    name="release-check",
    help="look on this node whether a deleted pod's devices came back, and who holds them now; stops nothing",
    inputs=(
        In("uid", "uid of the deleted pod", Form.ID),
        In("namespace", "its namespace, to show it"),
        In("name", "its name, to show it"),
        In("node", "name of the node this runs on"),
        In("containers", "ids of its containers", Form.CONTAINER_IDS, default="[]"),
        In(
            "deleted-at",
            "when its deletion was due, as the event says; nothing: the event does not say it",
            Form.MOMENT,
            default="",
        ),
        In("grace-s", "its termination grace", Form.GRACE, default="30"),
        In("interval-s", "seconds between two looks", Form.SECONDS, default="1", least=SHORTEST_INTERVAL_S, most=60),
    ),
    outputs=(Out("check", "ReleaseCheck", parcel=True),),
    exits=(Exit.DONE, Exit.COULD_NOT, Exit.BAD_INPUT, Exit.MEMORY_NOT_BACK),
)
