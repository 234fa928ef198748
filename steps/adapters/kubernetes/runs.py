"""What Argo Workflows recorded of a run, as a RunRecord, and the logs of its pods."""

import base64
import binascii
import gzip
import zlib
from typing import Final
from urllib.parse import quote

import msgspec

from steps.adapters.kubernetes.answers import body_of
from steps.adapters.kubernetes.api import Api, Json
from steps.adapters.kubernetes.fields import instant_at, list_at, mapping_at, path_of, text_at, texts_at, uid_of
from steps.contracts.document import Sample
from steps.contracts.errors import SourceUnavailable
from steps.contracts.run_record import NodeRecord, RunRecord

PREFIX: Final = "/apis/argoproj.io/v1alpha1"
POD_NAME_FORMAT: Final = "workflows.argoproj.io/pod-name-format"
TEMPLATE_LABEL: Final = "workflows.argoproj.io/workflow-template"
ENDED: Final = frozenset({"Succeeded", "Failed", "Error"})
LONGEST_PREFIX: Final = 253 - 10 - 1
TAIL_LINES: Final = 5000
READ_FACTOR: Final = 16
"""A log is read to this many times the bytes that are kept, since the server cuts its end and not its beginning."""


class ArgoRuns:
    """Fits ports.RunReader. namespace: where the Workflows run."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api: Final = api
        self._namespace: Final = namespace

    def read(self, run: str) -> RunRecord:
        """Fits the port. The phase is that of the root node once it has ended: while onExit runs, the Workflow itself still
        says Running. Raises SourceUnavailable, also if the nodes were moved to a database."""
        path = path_of(PREFIX, self._namespace, "workflows", run)
        raw = body_of(self._api.get(path), "get", path)
        nodes = _nodes(raw, run)
        root = next((node for node in nodes if text_at(node, "name") == run and text_at(node, "phase") in ENDED), None)
        status = mapping_at(raw, "status") if root is None else root
        return RunRecord(
            run=run,
            uid=uid_of(raw),
            template=text_at(raw, "spec", "workflowTemplateRef", "name")
            or texts_at(raw, "metadata", "labels").get(TEMPLATE_LABEL, ""),
            phase=text_at(status, "phase") or "Pending",
            message=text_at(status, "message"),
            parameters=_arguments(raw),
            started_at=instant_at(raw, "status", "startedAt"),
            finished_at=instant_at(status, "finishedAt"),
            nodes=tuple(sorted((_record(node, raw, run) for node in nodes), key=lambda node: node.name)),
        )

    def log(self, pod: str, container: str, limit_bytes: int) -> Sample[str]:
        """Fits the port: the last lines, at most so many bytes; a pod that is gone or never started is absent."""
        path = path_of("/api/v1", self._namespace, "pods", pod, f"log?container={quote(container, safe='')}&tailLines={TAIL_LINES}")
        status, text = self._api.text(path, limit_bytes=limit_bytes * READ_FACTOR)
        if status >= 400:
            return Sample.absent(f"HTTP {status}: {' '.join(text.split())[:200]}", "kubernetes")
        kept = text.encode()[-limit_bytes:].decode(errors="ignore") if limit_bytes else ""
        return Sample.measured(kept, "kubernetes")


def _nodes(raw: Json, run: str) -> list[Json]:
    """Node statuses, unpacked where the controller compressed them (gzip, base64)."""
    status = mapping_at(raw, "status")
    if text_at(status, "offloadNodeStatusVersion"):
        raise SourceUnavailable(
            f"run {run}: its node status lies in Argo's database; switch node status off-loading off for this namespace"
        )
    packed = text_at(status, "compressedNodes")
    nodes = _unpacked(packed, run) if packed else mapping_at(status, "nodes")
    return [node for node in nodes.values() if isinstance(node, dict)]


def _unpacked(packed: str, run: str) -> Json:
    try:
        nodes = msgspec.json.decode(gzip.decompress(base64.b64decode(packed, validate=True)))
    except (binascii.Error, zlib.error, EOFError, OSError, msgspec.DecodeError) as error:
        raise SourceUnavailable(
            f"run {run}: its compressed node status cannot be read: {error}; look at the Workflow object"
        ) from error
    return nodes if isinstance(nodes, dict) else {}


def _record(node: Json, raw: Json, run: str) -> NodeRecord:
    return NodeRecord(
        name=text_at(node, "name") or "",
        template=_template(node),
        kind=text_at(node, "type") or "",
        phase=text_at(node, "phase") or "Pending",
        message=text_at(node, "message"),
        started_at=instant_at(node, "startedAt"),
        finished_at=instant_at(node, "finishedAt"),
        inputs=_parameters(list_at(node, "inputs", "parameters")),
        outputs=_parameters(list_at(node, "outputs", "parameters")),
        pod=_pod_name(node, raw, run) if text_at(node, "type") == "Pod" else None,
    )


def _template(node: Json) -> str:
    return text_at(node, "templateRef", "template") or text_at(node, "templateName") or ""


def _arguments(raw: Json) -> dict[str, str]:
    """The template's parameters, overridden by those the run was submitted with."""
    stored = list_at(raw, "status", "storedWorkflowTemplateSpec", "arguments", "parameters")
    return {**_parameters(stored), **_parameters(list_at(raw, "spec", "arguments", "parameters"))}


def _parameters(raws: list[Json]) -> dict[str, str]:
    """Those with a value; Argo writes numbers and booleans as text."""
    return {name: str(raw["value"]) for raw in raws if (name := text_at(raw, "name")) and raw.get("value") is not None}


def _pod_name(node: Json, raw: Json, run: str) -> str:
    """As the controller names pods (workflow/util/pod_name.go of v4.0.5): v1 is the node id, v2 `<run>-<template>-<hash>`."""
    name = text_at(node, "name") or ""
    if texts_at(raw, "metadata", "annotations").get(POD_NAME_FORMAT) == "v1":
        return text_at(node, "id") or ""
    if name == run:
        return run
    template = _template(node)
    prefix = f"{run}-{template}" if template else run
    return f"{prefix[:LONGEST_PREFIX]}-{fnv_1a(name.encode())}"


def fnv_1a(data: bytes) -> int:
    """FNV-1a of 32 bits, Go's `fnv.New32a`."""
    value = 0x811C9DC5
    for byte in data:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value
