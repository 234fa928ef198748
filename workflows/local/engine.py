"""Runs the templates of a checked manifest: DAGs with their fan-outs, leaves, deadlines, the exit handler.

Phases, node names and outputs are those of Argo Workflows 4.0.5 (workflow/controller/dag.go, operator.go).
"""

import asyncio
import json
import re
import signal
import threading
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from steps.contracts.declaration import Form
from steps.contracts.errors import BadInput
from steps.contracts.parcel import MAX_ARGUMENT_BYTES
from steps.contracts.run_record import RunRecord
from workflows.local.containers import Pod
from workflows.local.expression import when_holds
from workflows.local.fanout import child_name, item_values, items_of
from workflows.local.folders import run_folder
from workflows.local.leaf import limit_of, run_pod, with_retries
from workflows.local.manifest import Manifest, Template, inputs_of
from workflows.local.outcome import Outcome, dag_phase, group_of, may_run, output_values
from workflows.local.record import OnNode, Record
from workflows.local.references import ancestors, is_fan_out
from workflows.local.setting import Setting
from workflows.local.tags import fill, only_tag, plain, tags_in

Values = Mapping[str, str]
Gate = asyncio.Semaphore | None


def run_locally(
    manifest: Manifest,
    parameters: Values,
    setting: Setting,
    *,
    run: str,
    uid: str,
    on_node: OnNode | None = None,
    replace: bool = False,
) -> RunRecord:
    """Run a manifest to its end and return its record, which is also in `<runs_folder>/<run>.json` from the first moment on.

    parameters: those of the workflow. run, uid: name and uid of the run, the name as Kubernetes wants it. on_node: told of
    every change of a node. replace: write over an older run of this name. Raises BadInput for what the runner refuses, and for
    a name that is taken. When interrupted, or told to end by SIGTERM, no process of the run is left, and
    the record says Failed.
    """
    given = manifest.parameters(parameters)
    _check_name(run)
    with run_folder(setting.runs_folder, run, replace=replace):
        first = RunRecord(
            run=run,
            uid=uid,
            template=manifest.name,
            phase="Running",
            message=None,
            parameters=given,
            started_at=setting.now(),
            finished_at=None,
            nodes=(),
        )
        record = Record(first, setting.runs_folder / f"{run}.json", setting.now, on_node)
        engine = _Engine(manifest, setting, record, run, _globals(manifest, given, run, uid))
        try:
            ended = asyncio.run(_ended_by_sigterm(engine))
        except asyncio.CancelledError as error:
            record.finish("Failed", "interrupted")
            raise KeyboardInterrupt from error
        except BaseException as error:
            record.finish("Failed" if isinstance(error, KeyboardInterrupt) else "Error", str(error) or "interrupted")
            raise
        return record.finish(ended.phase, ended.message)


async def _ended_by_sigterm(engine: "_Engine") -> Outcome:
    """What the run comes to. SIGTERM cancels it as an interrupt does: its containers are sessions of their own and would stay."""
    task = asyncio.current_task()
    if task is not None and threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await engine.run()


def _check_name(run: str) -> None:
    """The name becomes a folder that is emptied: one that climbs, or is a path, must never get there."""
    pattern, words = Form.NAME.value
    if re.fullmatch(pattern, run) is None:
        raise BadInput(f"a run cannot be called {run!r}; give {words}, for example sweep-1")


def _globals(manifest: Manifest, given: Values, run: str, uid: str) -> dict[str, str]:
    workflow = {"workflow.name": run, "workflow.uid": uid, "workflow.namespace": manifest.namespace}
    return {**workflow, **{f"workflow.parameters.{name}": value for name, value in given.items()}}


class _Engine:
    def __init__(self, manifest: Manifest, setting: Setting, record: Record, run: str, global_values: Values) -> None:
        self._manifest, self._setting, self._record, self._run = manifest, setting, record, run
        self._globals = dict(global_values)
        self._pods = asyncio.Semaphore(min(setting.processes, int(manifest.spec.get("parallelism", setting.processes))))
        self._deadline_at: float | None = None

    async def run(self) -> Outcome:
        """The whole run, exit handler included. The handler is not bound by the run's deadline."""
        if "activeDeadlineSeconds" in self._manifest.spec:
            self._deadline_at = asyncio.get_running_loop().time() + float(self._manifest.spec["activeDeadlineSeconds"])
        arguments = {name: self._globals[f"workflow.parameters.{name}"] for name in self._manifest.parameter_names()}
        main = await self._execute(self._manifest.spec["entrypoint"], self._run, arguments)
        if "onExit" not in self._manifest.spec:
            return main
        self._deadline_at = None
        failures = json.dumps(json.dumps(self._record.failures()))
        self._globals |= {"workflow.status": main.phase, "workflow.failures": failures}
        at_exit = await self._execute(self._manifest.spec["onExit"], f"{self._run}.onExit", arguments)
        return at_exit if main.phase == "Succeeded" else main

    async def _execute(self, template_name: str, name: str, arguments: Values) -> Outcome:
        template = self._manifest.templates[template_name]
        where = f"{name}: input"
        inputs = {}
        for declared, default in inputs_of(template).items():
            value = arguments[declared] if declared in arguments else fill("" if default is None else default, self._globals, where)
            inputs[declared] = _sized(plain(value, f"{where} {declared!r}"), f"{where} {declared!r}")
        if "dag" in template:
            return await self._dag(template, name, inputs)
        return await with_retries(
            template, name, inputs, self._record, lambda attempt_name: self._pod(template, attempt_name, inputs)
        )

    async def _pod(self, template: Template, name: str, inputs: Values) -> Outcome:
        async with self._pods:
            pod_name = f"{self._run}-{template['name']}-{_fnv32a(name)}"
            self._record.begin(name, template["name"], "Pod", inputs=inputs, pod=pod_name)
            pod = Pod(
                name=pod_name,
                template=template,
                values={**self._globals, **{f"inputs.parameters.{one}": value for one, value in inputs.items()}},
                namespace=self._manifest.namespace,
                folder=self._setting.runs_folder / self._run / ".pods" / pod_name,
                log_folder=self._setting.runs_folder / self._run,
                setting=self._setting,
            )
            limit_s = self._limit(template)
            if limit_s is not None and limit_s <= 0:
                outcome = Outcome("Failed", "Step exceeded its deadline")
            else:
                outcome = await run_pod(pod, name, self._record, limit_s)
            self._record.end(name, outcome.phase, message=outcome.message, outputs=outcome.outputs)
            return outcome

    def _limit(self, template: Template) -> float | None:
        own = limit_of(template)
        if self._deadline_at is None:
            return own
        left = self._deadline_at - asyncio.get_running_loop().time()
        return left if own is None else min(own, left)

    async def _dag(self, template: Template, name: str, inputs: Values) -> Outcome:
        self._record.begin(name, template["name"], "DAG", inputs=inputs)
        by_name = {task["name"]: task for task in template["dag"]["tasks"]}
        gate = asyncio.Semaphore(int(template["parallelism"])) if "parallelism" in template else None
        values = {**self._globals, **{f"inputs.parameters.{one}": value for one, value in inputs.items()}}
        running: dict[str, asyncio.Task[Outcome]] = {}

        async def one(task: Mapping[str, Any]) -> Outcome:
            before = {dependency: await running[dependency] for dependency in ancestors(task["name"], by_name)}
            known = {**values, **output_values(task["name"], by_name, before)}
            return await self._task(task, f"{name}.{task['name']}", known, before, gate)

        try:
            async with asyncio.TaskGroup() as group:
                for task in by_name.values():
                    running[task["name"]] = group.create_task(one(task))
        except BaseExceptionGroup as errors:
            raise _first_of(errors) from None
        outcome = Outcome(dag_phase(by_name, {one: task.result() for one, task in running.items()}))
        self._record.end(name, outcome.phase)
        return outcome

    async def _task(self, task: Mapping[str, Any], name: str, values: Values, before: Mapping[str, Outcome], gate: Gate) -> Outcome:
        if not may_run(task, before):
            return self._never(task, name, "Omitted", "omitted: depends condition not met")
        if not is_fan_out(task):
            return await self._child(task, name, values, gate)
        items = [] if self._excused(task, name, values) else self._items(task, name, values)
        if items is None:
            return self._never(task, name, "Error", f"withParam value could not be parsed as a JSON list: {task['withParam']}")
        if not items:
            return self._never(task, name, "Skipped", "Skipped, empty params")
        self._record.begin(name, task["template"], "TaskGroup")
        boundary = name.removesuffix(task["name"])
        children = [
            self._child(task, boundary + child_name(task["name"], index, item), {**values, **item_values(item)}, gate)
            for index, item in enumerate(items)
        ]
        outcome = group_of(tuple(await _all(children)))
        self._record.end(name, outcome.phase)
        return outcome

    def _items(self, task: Mapping[str, Any], name: str, values: Values) -> list[Any] | None:
        if "withItems" in task:
            return list(task["withItems"])
        return items_of(fill(task["withParam"], values, f"{name}: withParam"))

    def _excused(self, task: Mapping[str, Any], name: str, values: Values) -> bool:
        """Whether `when` is false and the list is no list yet: an output that the controller then does not even look up, or no
        JSON list at all. There are no children then (dag.go: resolveDependencyReferences, expandTask)."""
        if "when" not in task or "withParam" not in task:
            return False
        try:
            if when_holds(fill(task["when"], values, f"{name}: when")):
                return False
        except BadInput:
            return False
        looked_up = any(tag.startswith("tasks.") for tag in tags_in(task["withParam"]))
        return looked_up or items_of(fill(task["withParam"], values, f"{name}: withParam")) is None

    async def _child(self, task: Mapping[str, Any], name: str, values: Values, gate: Gate) -> Outcome:
        if "when" in task:
            condition = fill(task["when"], values, f"{name}: when")
            try:
                proceed = when_holds(condition)
            except BadInput as error:
                return self._never(task, name, "Error", str(error))
            if not proceed:
                return self._never(task, name, "Skipped", f"when '{condition}' evaluated false")
        arguments = {}
        for one in task.get("arguments", {}).get("parameters", []):
            text = str(one["value"])
            tag = only_tag(text)
            if tag is None or tag in values or not tag.startswith("tasks."):
                arguments[one["name"]] = fill(text, values, f"{name}: argument {one['name']!r}")
        async with gate or nullcontext():
            return await self._execute(task["template"], name, arguments)

    def _never(self, task: Mapping[str, Any], name: str, phase: str, message: str) -> Outcome:
        self._record.never_ran(name, task["template"], phase, message)
        return Outcome(phase, message)


def _first_of(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first refusal ended the run; the others are its echo."""
    first = errors.exceptions[0]
    return _first_of(first) if isinstance(first, BaseExceptionGroup) else first


async def _all(children: list[Any]) -> list[Outcome]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(child) for child in children]
    return [task.result() for task in tasks]


def _sized(value: str, where: str) -> str:
    if len(value.encode()) > MAX_ARGUMENT_BYTES:
        raise BadInput(f"{where} is larger than the {MAX_ARGUMENT_BYTES} bytes of an argument; use smaller shards")
    return value


def _fnv32a(text: str) -> int:
    """The hash in the names of Argo's nodes and pods."""
    value = 2166136261
    for byte in text.encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value
