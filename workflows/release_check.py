"""A pod is gone: what of its devices is still held on its node, and by whom. One probe pod; it stops nothing.

    release-check, on the pod's node        archive, when all is over (onExit)

A pod that never was on a node gets no probe: there is nothing to verify, and a pod for no node would stay Pending.
"""

from hera.workflows import DAG, Parameter, Task, WorkflowTemplate
from hera.workflows import models as m

from steps.archive.declaration import STEP as ARCHIVE
from steps.release_check.declaration import STEP as RELEASE_CHECK
from workflows.pods import EVIDENCE, EVIDENCE_FOLDER, NAMESPACE, PART_OF, POD_SECURITY, Wiring
from workflows.sweep import RETRY_LOST_POD, RUN

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
    with WorkflowTemplate(
        name="release-check",
        namespace=NAMESPACE,
        labels={**PART_OF, "app.kubernetes.io/name": "release-check"},
        annotations={
            "workflows.argoproj.io/title": "GPU release check",
            "workflows.argoproj.io/description": (
                "A pod with a GPU was deleted: looks on its node whether the memory came back, and names who holds the device now. "
                "Stops nothing."
            ),
        },
        entrypoint="pod-deleted",
        on_exit="archive",
        arguments=_parameters(),
        service_account_name="reader",
        automount_service_account_token=False,
        executor=m.ExecutorConfig(service_account_name="executor"),
        security_context=POD_SECURITY,
        pod_metadata=m.Metadata(labels=PART_OF),
        active_deadline_seconds=1800,
        pod_gc=m.PodGC(strategy="OnWorkflowCompletion"),
        ttl_strategy=m.TTLStrategy(seconds_after_success=3600, seconds_after_failure=7 * 24 * 3600),
    ) as template:
        with DAG(name="pod-deleted", fail_fast=False):
            Task(
                name="release-check",
                template="release-check",
                when='"{{workflow.parameters.node}}" != ""',
                arguments={name: f"{{{{workflow.parameters.{name}}}}}" for name in DESCRIPTIONS},
            )
        Wiring(RELEASE_CHECK).node_container(timeout_s=900)
        Wiring(ARCHIVE, given={**RUN, "evidence": EVIDENCE_FOLDER}).container(
            reads_api=True,
            account="archivist",
            volumes=[EVIDENCE],
            memory_limit="512Mi",
            retry_strategy=RETRY_LOST_POD,
            active_deadline_seconds=600,
        )
    return template


def _parameters() -> list[Parameter]:
    """The uid alone has no default: without it nothing could be told from anything."""
    return [
        Parameter(name=name, description=words, value=DEFAULTS[name])
        if name in DEFAULTS
        else Parameter(name=name, description=words)
        for name, words in DESCRIPTIONS.items()
    ]
