"""One leaf of a workflow: a pod with its containers and outputs, tried again as its retry strategy says."""

import asyncio
import re
import shutil
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from steps.contracts.errors import BadInput
from steps.contracts.parcel import MAX_ARGUMENT_BYTES
from workflows.local.containers import KILLED, Pod
from workflows.local.manifest import Template, containers_of, shared_mounts
from workflows.local.outcome import FAILING, Outcome
from workflows.local.record import Record
from workflows.local.tags import plain

_DEPENDENCY_FAILED: Final = 64
"""Exit code of emissary when a container that this one waits for has failed (cmd/argoexec/commands/emissary.go)."""
_UNITS_S: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def seconds_of(duration: str) -> float:
    """A Go duration such as `120s` or `1h30m`. Raises BadInput for anything else."""
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|h|m|s)", duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        raise BadInput(f"timeout {duration!r} is no duration; give for example 120s")
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts)


def limit_of(template: Template) -> float | None:
    """How long a pod of the template may take, in seconds."""
    given = []
    if "timeout" in template:
        given.append(seconds_of(template["timeout"]))
    if "activeDeadlineSeconds" in template:
        given.append(float(template["activeDeadlineSeconds"]))
    return min(given, default=None)


async def with_retries(
    template: Template, name: str, inputs: Mapping[str, str], record: Record, attempt: Callable[[str], Awaitable[Outcome]]
) -> Outcome:
    """The outcome of a leaf: of its only attempt, or of the last that its retry strategy allows."""
    retry = template.get("retryStrategy")
    if retry is None:
        return await attempt(name)
    record.begin(name, template["name"], "Retry", inputs=inputs)
    again_on = {"OnFailure": ("Failed",), "OnError": ("Error",), "Always": FAILING}[retry.get("retryPolicy", "OnFailure")]
    limit = int(retry["limit"])
    outcome = await attempt(f"{name}(0)")
    tried = 1
    while outcome.phase in again_on and tried <= limit:
        outcome = await attempt(f"{name}({tried})")
        tried += 1
    message = "No more retries left" if outcome.phase in again_on else outcome.message
    record.end(name, outcome.phase, message=message, outputs=outcome.outputs)
    return Outcome(outcome.phase, message, outcome.outputs)


async def run_pod(pod: Pod, name: str, record: Record, limit_s: float | None) -> Outcome:
    """Run a pod's containers to their end, and read its outputs, also after a failure (cmd/argoexec/commands/wait.go)."""
    try:
        pod.folder.mkdir(parents=True, exist_ok=True)
        pod.prepare()
        codes = await _run_containers(pod, name, record, limit_s)
        if None in codes.values():
            return Outcome("Failed", KILLED)
        outputs, problem = _read_outputs(pod)
        failed = next((f"{one}: Error (exit code {code})" for one, code in codes.items() if code), None)
        if failed is not None:
            return Outcome("Failed", failed, outputs)
        return Outcome("Succeeded", None, outputs) if problem is None else Outcome("Error", problem, outputs)
    finally:
        shutil.rmtree(pod.folder, ignore_errors=True)


async def _run_containers(pod: Pod, name: str, record: Record, limit_s: float | None) -> dict[str, int | None]:
    """Exit code of each container; None where the time limit ended it."""
    if "container" in pod.template:
        return {"main": await pod.run(containers_of(pod.template)[0], limit_s)}
    started: dict[str, asyncio.Task[int | None]] = {}
    loop = asyncio.get_running_loop()
    ends_at = None if limit_s is None else loop.time() + limit_s

    async def one(container: Mapping[str, Any]) -> int | None:
        node = f"{name}.{container['name']}"
        before = [await started[dependency] for dependency in container.get("dependencies", [])]
        record.begin(node, pod.template["name"], "Container")
        if None in before or any(before):
            code = None if None in before else _DEPENDENCY_FAILED
        else:
            code = await pod.run(container, None if ends_at is None else ends_at - loop.time())
        phase = {0: "Succeeded", _DEPENDENCY_FAILED: "Error"}.get(-1 if code is None else code, "Failed")
        record.end(node, phase, message=None if code == 0 else f"exit code {code}" if code is not None else KILLED)
        return code

    async with asyncio.TaskGroup() as group:
        for container in containers_of(pod.template):
            started[container["name"]] = group.create_task(one(container))
    return {container: task.result() for container, task in started.items()}


def _read_outputs(pod: Pod) -> tuple[dict[str, str], str | None]:
    """The outputs in their order, and what is wrong with the first that cannot be read; those after it are not read."""
    outputs: dict[str, str] = {}
    for one in pod.template.get("outputs", {}).get("parameters", []):
        path = pod.real_path(one["valueFrom"]["path"], shared_mounts(pod.template))
        try:
            with path.open(encoding="utf-8") as file:
                text = file.read(MAX_ARGUMENT_BYTES + 1)
        except (OSError, UnicodeDecodeError) as error:
            if "default" not in one["valueFrom"]:
                return outputs, f"output {one['name']} cannot be read: {error}"
            text = str(one["valueFrom"]["default"])
        where = f"output {one['name']} of {pod.template['name']}"
        if len(text) > MAX_ARGUMENT_BYTES:
            raise BadInput(f"{where} is larger than the {MAX_ARGUMENT_BYTES} bytes of an argument; hand over less")
        outputs[one["name"]] = plain(text.removesuffix("\n"), where)
    return outputs, None
