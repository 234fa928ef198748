"""A rendered WorkflowTemplate, read and checked as a whole before anything runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from steps.contracts.document import MAX_DOCUMENT_BYTES
from steps.contracts.errors import BadInput
from steps.contracts.files import read_limited
from workflows.local.fields import MANIFEST, refuse_unknown
from workflows.local.references import check_references
from workflows.local.tags import plain, tags_in

Template = dict[str, Any]
"""A template as in the YAML: raw, but every field is one that `fields` knows."""

_POLICIES: Final = ("OnFailure", "OnError", "Always")
"""OnTransientError is left out: it asks for error messages of a cluster."""
_KINDS: Final = ("container", "containerSet", "dag")


@dataclass(frozen=True)
class Manifest:
    """name: of the WorkflowTemplate. spec: raw, checked. templates: by name."""

    name: str
    namespace: str
    spec: dict[str, Any]
    templates: Mapping[str, Template]

    def parameter_names(self) -> list[str]:
        return [one["name"] for one in self.spec.get("arguments", {}).get("parameters", [])]

    def parameters(self, given: Mapping[str, str]) -> dict[str, str]:
        """The workflow's parameters, with these values given. Raises BadInput: unknown, missing, not one of the enum, a tag."""
        declared = {one["name"]: one for one in self.spec.get("arguments", {}).get("parameters", [])}
        if unknown := sorted(set(given) - set(declared)):
            raise BadInput(f"{self.name} has no parameter {unknown[0]!r}; it has {', '.join(sorted(declared)) or 'none'}")
        values = {}
        for name, one in declared.items():
            value = given.get(name, one.get("value"))
            if value is None:
                raise BadInput(f"{self.name} needs a value for its parameter {name!r}; give it with -p {name}=VALUE")
            if "enum" in one and str(value) not in [str(allowed) for allowed in one["enum"]]:
                raise BadInput(f"parameter {name!r} is {value!r}; give one of {', '.join(str(allowed) for allowed in one['enum'])}")
            values[name] = plain(str(value), f"parameter {name!r}")
        return values


def load(path: Path) -> Manifest:
    """Read and check a manifest. Raises BadInput: unreadable, not YAML, or anything in it that the local runner does not honour."""
    try:
        content = yaml.safe_load(read_limited(path, MAX_DOCUMENT_BYTES))
    except yaml.YAMLError as error:
        raise BadInput(f"{path} is not YAML: {' '.join(str(error).split())}; give a rendered manifest") from error
    return checked(content, str(path))


def checked(content: Any, where: str) -> Manifest:
    """The manifest in parsed YAML, refused as a whole if one part of it is."""
    if not isinstance(content, dict) or content.get("kind") != "WorkflowTemplate":
        raise BadInput(f"{where} holds no WorkflowTemplate; give one of workflows/manifests")
    refuse_unknown(content, MANIFEST, where)
    metadata, spec = content.get("metadata", {}), content.get("spec", {})
    templates = {template["name"]: template for template in spec.get("templates", [])}
    manifest = Manifest(metadata.get("name", ""), metadata.get("namespace", "default"), spec, templates)
    if len(templates) != len(spec.get("templates", [])):
        raise BadInput(f"{where} has two templates of one name; give each its own")
    for template in templates.values():
        _check_template(template, f"{where}: template {template['name']}")
    _check_entries(manifest, where)
    check_references(spec, templates, where)
    return manifest


def _check_entries(manifest: Manifest, where: str) -> None:
    on_exit = manifest.spec.get("onExit")
    for role, name in (("entrypoint", manifest.spec.get("entrypoint")), ("onExit", on_exit)):
        if name not in manifest.templates and (role == "entrypoint" or name is not None):
            raise BadInput(f"{where}: {role} {name!r} is no template of it")
        for needed, default in inputs_of(manifest.templates[name]).items() if name is not None else ():
            if default is None and needed not in manifest.parameter_names():
                raise BadInput(f"{where}: {role} {name!r} needs the input {needed!r}, which is no parameter of the workflow")
    if on_exit is not None and "dag" in manifest.templates[on_exit]:
        raise BadInput(f"{where}: onExit {on_exit!r} is a DAG, which 4.0.5 may cut short and 4.1.2 completes; give a container")


def _check_template(template: Template, where: str) -> None:
    kinds = [kind for kind in _KINDS if kind in template]
    if len(kinds) != 1:
        raise BadInput(f"{where} must be exactly one of {', '.join(_KINDS)}")
    if kinds == ["dag"]:
        _check_dag(template, where)
    else:
        _check_leaf(template, where)


def _check_dag(template: Template, where: str) -> None:
    if template["dag"].get("failFast") is not False:
        raise BadInput(f"{where}: set failFast: false; without it the tasks that still run depend on timing")
    if {"timeout", "activeDeadlineSeconds", "retryStrategy", "volumes", "outputs"} & set(template):
        raise BadInput(f"{where}: a DAG has no deadline, retry, volume or output here; put them on its leaves")
    for task in template["dag"].get("tasks", []):
        if any(tag.startswith("item") for tag in tags_in(task.get("when", ""))):
            raise BadInput(f"{where}: task {task['name']} has {{{{item}}}} in its `when`, which 4.0.5 reads before there are items")
    names = [task["name"] for task in template["dag"].get("tasks", [])]
    if len({name.replace("-", "_") for name in names}) != len(names):
        raise BadInput(f"{where}: two tasks share a name, or differ only in '-' and '_', which `depends` cannot tell apart")


def _check_leaf(template: Template, where: str) -> None:
    retry = template.get("retryStrategy")
    if retry is not None and (retry.get("retryPolicy", "OnFailure") not in _POLICIES or "limit" not in retry):
        raise BadInput(f"{where}: a retry needs a limit, and a policy of {', '.join(_POLICIES)}")
    if retry is not None and "timeout" in template:
        raise BadInput(f"{where}: timeout beside retryStrategy never ends a Pending pod (4.0.5); use one of them")
    if "parallelism" in template:
        raise BadInput(f"{where}: parallelism belongs on a DAG")
    volumes = {volume["name"]: volume for volume in template.get("volumes", [])}
    shared = shared_mounts(template)
    for mount in [*shared, *(mount for one in containers_of(template) for mount in one.get("volumeMounts", []))]:
        if mount["name"] not in volumes:
            raise BadInput(f"{where} mounts {mount['name']!r}, which is no volume of it")
    scratch = tuple(mount["mountPath"].rstrip("/") + "/" for mount in shared if "emptyDir" in volumes[mount["name"]])
    for output in template.get("outputs", {}).get("parameters", []):
        path = output.get("valueFrom", {}).get("path")
        if path is None or not path.startswith(scratch):
            raise BadInput(f"{where}: output {output['name']!r} must be a file in an emptyDir, because the root is read-only")
    if "containerSet" in template:
        _check_set(template, scratch, where)


def _check_set(template: Template, scratch: tuple[str, ...], where: str) -> None:
    names = [one["name"] for one in containers_of(template)]
    if "main" not in names:
        raise BadInput(f"{where}: a containerSet needs a container called main; only that one saves outputs")
    for artifact in template.get("inputs", {}).get("artifacts", []):
        if not artifact["path"].startswith(scratch):
            raise BadInput(f"{where}: artifact {artifact['name']!r} lies outside the shared emptyDir, where only main sees it")
    for one in containers_of(template):
        if missing := set(one.get("dependencies", [])) - set(names):
            raise BadInput(f"{where}: container {one['name']!r} waits for {sorted(missing)[0]!r}, which is not in the set")


def containers_of(template: Template) -> list[dict[str, Any]]:
    """The containers of a leaf; that of a `container` template is called main."""
    if "containerSet" in template:
        return list(template["containerSet"]["containers"])
    return [{"name": "main", **template["container"]}]


def shared_mounts(template: Template) -> list[dict[str, Any]]:
    """The mounts that the executor sees when it saves outputs: the container's, or those of the whole set."""
    holder = template["containerSet"] if "containerSet" in template else template["container"]
    return list(holder.get("volumeMounts", []))


def inputs_of(template: Template) -> dict[str, str | None]:
    """The template's input parameters with their defaults."""
    parameters = template.get("inputs", {}).get("parameters", [])
    return {one["name"]: None if one.get("default") is None else str(one["default"]) for one in parameters}
