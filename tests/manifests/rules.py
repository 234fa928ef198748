"""What no schema sees: our own rules for a WorkflowTemplate (facts/hera-and-argo 6). Each returns what breaks it, in words."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from steps.contracts.errors import BadInput
from steps.contracts.parcel import MAX_ARGUMENT_BYTES, MAX_PARCEL_BYTES
from workflows.local.manifest import checked

NEWER_THAN_4_0: Final = ("pendingTimeout", "podResources", "resourceClaims")
ACCOUNTS: Final = {
    "nodes": "reader",
    "judge": "reader",
    "collect": "probe",
    "capture": "probe",
    "verify": "probe",
    "stop": "stopper",
    "archive": "archivist",
}
TEMPLATE_ALLOWANCE_BYTES: Final = 8 * 1024
"""Room for the rest of a template beside the facts in it: both together cross as one environment value."""

Content = Mapping[str, Any]


def references_resolve(content: Content) -> list[str]:
    """References, entrypoints, outputs in an emptyDir, a main container, outputs surely there: the local runner's own check."""
    try:
        checked(content, "manifest")
    except BadInput as refusal:
        return [str(refusal)]
    return []


def no_script(content: Content) -> list[str]:
    """A script template pastes values into source: remote code execution (facts 2.3)."""
    return [f"{one['name']} is a script" for one in templates(content) if "script" in one]


def nothing_newer_than_4_0(content: Content) -> list[str]:
    return [f"{path} is new in 4.1" for path, key, _ in fields(content) if key in NEWER_THAN_4_0]


def patches_are_constant(content: Content) -> list[str]:
    """A parameter inside a patch can rewrite the pod (facts 3.5)."""
    return [f"{path} holds a tag" for path, key, value in fields(content) if key == "podSpecPatch" and "{{" in str(value)]


def only_depends(content: Content) -> list[str]:
    """`dependencies` and continueOn do not mix with depends, and hooks are not seen by the local runner."""
    return [
        f"task {task['name']} uses {key}"
        for one in templates(content)
        for task in one.get("dag", {}).get("tasks", [])
        for key in ("dependencies", "continueOn", "hooks", "onExit")
        if key in task
    ]


def node_pods_end(content: Content) -> list[str]:
    """A pod on a dead node stays Pending for ever, unless the template has a timeout and no retryStrategy."""
    found = []
    for one in templates(content):
        if is_node_pod(one) and ("timeout" not in one or "retryStrategy" in one):
            found.append(f"{one['name']} needs a timeout and no retryStrategy")
    return found


def node_pods_reach_their_node(content: Content) -> list[str]:
    """By hostname and past every taint, so that the scheduler still rules."""
    return [
        f"{one['name']} is not bound to its node"
        for one in templates(content)
        if is_node_pod(one)
        and (
            one.get("nodeSelector") != {"kubernetes.io/hostname": "{{inputs.parameters.node}}"}
            or {"operator": "Exists"} not in one.get("tolerations", [])
        )
    ]


def deadlines_on_leaves(content: Content) -> list[str]:
    """Every leaf ends some day; CEL refuses a deadline on a DAG."""
    found = [] if content["spec"].get("activeDeadlineSeconds") else ["the workflow has no deadline"]
    for one in templates(content):
        has = "timeout" in one or "activeDeadlineSeconds" in one
        if has is ("dag" in one):
            found.append(f"{one['name']}: deadline on a DAG, or none on a leaf")
    return found


def tokens_are_mounted_by_exception(content: Content) -> list[str]:
    """No API token unless a template asks for it, never for the probe; Argo's own containers use the executor's account."""
    spec = content["spec"]
    found = [] if spec.get("automountServiceAccountToken") is False else ["the token is mounted by default"]
    if spec.get("executor", {}).get("serviceAccountName") != "executor":
        found.append("Argo's own containers do not use the executor's account")
    for one in templates(content):
        if one.get("serviceAccountName") == "probe" and one.get("automountServiceAccountToken"):
            found.append(f"{one['name']} gets a token of the API")
        if "dag" not in one and "serviceAccountName" not in one:
            found.append(f"{one['name']} runs as whoever the workflow does")
    return found


def accounts_are_those_of_the_design(content: Content) -> list[str]:
    leaves = [one for one in templates(content) if "dag" not in one]
    found = {one["name"]: one.get("serviceAccountName") for one in leaves}
    return [] if found == ACCOUNTS else [f"the accounts are {found}"]


def containers_are_confined(content: Content) -> list[str]:
    """Read-only root, no escalation, all capabilities dropped, two added on node pods alone, limits on everything."""
    found = []
    for one, container in containers(content):
        security = container.get("securityContext", {})
        capabilities = security.get("capabilities", {})
        added = ["SYS_PTRACE", "DAC_READ_SEARCH"] if is_node_pod(one) else []
        confined = (
            security.get("readOnlyRootFilesystem") is True
            and security.get("allowPrivilegeEscalation") is False
            and not security.get("privileged")
            and capabilities.get("drop") == ["ALL"]
            and capabilities.get("add", []) == added
        )
        if not confined:
            found.append(f"{one['name']}: a container has more rights than it needs")
        if set(container.get("resources", {})) != {"requests", "limits"} or "nvidia.com/gpu" in json.dumps(container):
            found.append(f"{one['name']}: a container lacks requests or limits, or asks for a GPU")
    return found


def only_node_pods_are_root(content: Content) -> list[str]:
    found = []
    for one in templates(content):
        security = one.get("securityContext", content["spec"].get("securityContext", {}))
        profile = security.get("seccompProfile", {}).get("type")
        if "dag" not in one and ((security.get("runAsUser") == 0) is not is_node_pod(one) or profile != "RuntimeDefault"):
            found.append(f"{one['name']} has the wrong uid or no seccomp profile")
    return found


def node_pods_are_not_stopped_by_kill_1(content: Content) -> list[str]:
    """With the host's PIDs, Argo's own way to stop a container signals the node's init."""
    unsafe = (one for one in templates(content) if is_node_pod(one))
    wanted = ("workflows.argoproj.io/kill-cmd-main", "workflows.argoproj.io/kill-cmd-wait")
    return [
        f"{one['name']} has no {key}"
        for one in unsafe
        for key in wanted
        if key not in one.get("metadata", {}).get("annotations", {})
    ]


def one_lock_deep(content: Content) -> list[str]:
    """Nested locks can deadlock: at most one place of a workflow has one."""
    holders = [one["name"] for one in templates(content) if "synchronization" in one]
    holders += ["the workflow"] if "synchronization" in content["spec"] else []
    return [] if len(holders) <= 1 else [f"locks in {', '.join(holders)}"]


def the_lock_is_the_sessions(content: Content) -> list[str]:
    names = {one["name"]: one["synchronization"] for one in templates(content) if "synchronization" in one}
    wanted = {"reclaim": {"mutexes": [{"name": "session-{{inputs.parameters.session-uid}}"}]}}
    return [] if names == wanted else [f"locks: {names}"]


def pods_outlive_the_archive(content: Content) -> list[str]:
    """The archive reads the logs of all pods, so none may be removed before the workflow is over."""
    strategy = content["spec"].get("podGC", {}).get("strategy")
    return [] if strategy in (None, "OnWorkflowCompletion") else [f"podGC {strategy} removes logs before the archive reads them"]


def dry_run_unless_told_otherwise(content: Content) -> list[str]:
    parameters = {one["name"]: one for one in content["spec"]["arguments"]["parameters"]}
    dry_run = parameters.get("dry-run", {})
    return [] if dry_run.get("value") == "true" and dry_run.get("enum") == ["true", "false"] else ["dry-run is not the default"]


def a_shard_fits_into_an_argument(content: Content) -> list[str]:
    size = next(int(one["value"]) for one in content["spec"]["arguments"]["parameters"] if one["name"] == "shard-size")
    return (
        [] if size * MAX_PARCEL_BYTES + TEMPLATE_ALLOWANCE_BYTES <= MAX_ARGUMENT_BYTES else [f"{size} nodes a shard are too many"]
    )


EVERY: Final[tuple[Callable[[Content], list[str]], ...]] = (
    references_resolve,
    no_script,
    nothing_newer_than_4_0,
    patches_are_constant,
    only_depends,
    node_pods_end,
    node_pods_reach_their_node,
    deadlines_on_leaves,
    tokens_are_mounted_by_exception,
    containers_are_confined,
    only_node_pods_are_root,
    node_pods_are_not_stopped_by_kill_1,
    one_lock_deep,
    pods_outlive_the_archive,
)
"""Rules for every workflow."""

SWEEP: Final[tuple[Callable[[Content], list[str]], ...]] = (
    accounts_are_those_of_the_design,
    the_lock_is_the_sessions,
    dry_run_unless_told_otherwise,
    a_shard_fits_into_an_argument,
)
"""Rules for the sweep alone."""


def templates(content: Content) -> list[dict[str, Any]]:
    return list(content["spec"]["templates"])


def is_node_pod(template: Content) -> bool:
    return "hostPID" in template.get("podSpecPatch", "")


def containers(content: Content) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each container with its template."""
    for one in templates(content):
        if "container" in one:
            yield one, one["container"]
        for container in one.get("containerSet", {}).get("containers", []):
            yield one, container


def fields(value: Any, path: str = "$") -> Iterator[tuple[str, str, Any]]:
    """(path, key, value) of every field, at every depth."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield f"{path}.{key}", key, inner
            yield from fields(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from fields(inner, f"{path}[{number}]")
