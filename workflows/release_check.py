"""A pod is gone: what of its devices is still held on its node, and by whom. One probe pod; it stops nothing.

    release-check, on the pod's node        archive, when all is over (onExit)

A pod that never was on a node gets no probe: there is nothing to verify, and a pod for no node would stay Pending.
"""

from hera.workflows import DAG, Parameter, Task, WorkflowTemplate

from steps.release_check.declaration import STEP as RELEASE_CHECK
from workflows.frame import DAY_S, HOUR_S, archive, framed
from workflows.pods import Wiring

DESCRIPTIONS = {
    "uid": "uid of the deleted pod.",
    "namespace": "Its namespace, to show it.",
    "name": "Its name, to show it.",
    "node": "The node it ran on; empty: it ran on none, and there is nothing to verify.",
    "containers": "Ids of its containers, a JSON list as the API writes them.",
    "deleted-at": "When its deletion was due; empty: the event was no deletion, or it is not known.",
    "grace-s": "Its termination grace in seconds.",
}
DEFAULTS = {"namespace": "unknown", "name": "unknown", "node": "", "containers": "[]", "deleted-at": "", "grace-s": "30"}


def release_check() -> WorkflowTemplate:
    """The WorkflowTemplate `release-check`."""
    with framed(
        "release-check",
        title="GPU release check",
        description=(
            "A pod with a GPU was deleted: looks on its node whether the memory came back, and names who holds the device now. "
            "Stops nothing."
        ),
        entrypoint="pod-deleted",
        arguments=_parameters(),
        deadline_s=HOUR_S // 2,
        kept_s=(HOUR_S, 7 * DAY_S),
    ) as template:
        with DAG(name="pod-deleted", fail_fast=False):
            Task(
                name="release-check",
                template="release-check",
                when='"{{workflow.parameters.node}}" != ""',
                arguments={name: f"{{{{workflow.parameters.{name}}}}}" for name in DESCRIPTIONS},
            )
        Wiring(RELEASE_CHECK).node_container(timeout_s=900)
        archive()
    return template


def _parameters() -> list[Parameter]:
    """The uid alone has no default: without it nothing could be told from anything."""
    return [
        Parameter(name=name, description=words, value=DEFAULTS[name])
        if name in DEFAULTS
        else Parameter(name=name, description=words)
        for name, words in DESCRIPTIONS.items()
    ]
