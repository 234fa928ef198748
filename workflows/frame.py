"""What every workflow has around its steps: its words in the Argo UI, accounts, clean-up, and the archive pod at its end."""

from collections.abc import Sequence
from typing import Any, Final

from hera.workflows import Container, Parameter, RetryStrategy, WorkflowTemplate
from hera.workflows import models as m

from steps.archive.declaration import STEP as ARCHIVE
from workflows.pods import EVIDENCE, EVIDENCE_FOLDER, NAMESPACE, PART_OF, POD_SECURITY, Wiring

RUN: Final = {"run": "{{workflow.name}}"}
HOUR_S: Final = 3600
DAY_S: Final = 24 * HOUR_S
RETRY_LOST_POD: Final = RetryStrategy(limit=2, retry_policy="OnError")
"""For steps that only read or may be repeated at will: again if the pod was lost, not if the step said no."""


def framed(
    name: str,
    *,
    title: str,
    description: str,
    entrypoint: str,
    arguments: Sequence[Parameter],
    deadline_s: int,
    kept_s: tuple[int, int],
    on_exit: str = "archive",
    account: str = "reader",
    **more: Any,
) -> WorkflowTemplate:
    """The WorkflowTemplate, still without templates. kept_s: how long a Workflow stays after success, and after failure; its pods
    stay until its end, because archive reads their logs."""
    return WorkflowTemplate(
        name=name,
        namespace=NAMESPACE,
        labels={**PART_OF, "app.kubernetes.io/name": name},
        annotations={"workflows.argoproj.io/title": title, "workflows.argoproj.io/description": description},
        entrypoint=entrypoint,
        on_exit=on_exit,
        arguments=list(arguments),
        service_account_name=account,
        automount_service_account_token=False,
        executor=m.ExecutorConfig(service_account_name="executor"),
        security_context=POD_SECURITY,
        pod_metadata=m.Metadata(labels=PART_OF),
        active_deadline_seconds=deadline_s,
        pod_gc=m.PodGC(strategy="OnWorkflowCompletion"),
        ttl_strategy=m.TTLStrategy(seconds_after_success=kept_s[0], seconds_after_failure=kept_s[1]),
        **more,
    )


def archive() -> Container:
    """The template that writes the evidence when all is over, also after failure and deadline, which no exit handler feels."""
    return Wiring(ARCHIVE, given={**RUN, "evidence": EVIDENCE_FOLDER}).container(
        reads_api=True,
        account="archivist",
        volumes=[EVIDENCE],
        memory_limit="512Mi",
        retry_strategy=RETRY_LOST_POD,
        active_deadline_seconds=600,
    )
