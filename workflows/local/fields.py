"""Which fields a manifest may have. Everything else is refused: a runner that skips what it does not know is green for nothing.

A shape is a dict of fields, a list of one shape, TEXT for a scalar that is used, or IGNORED for what cannot matter on one
machine and therefore cannot be shown here: images, pod specs, rights, quotas, locks, garbage collection.
"""

from typing import Any, Final

from steps.contracts.errors import BadInput

TEXT: Final = "text"
IGNORED: Final = "ignored"

_ARGUMENTS: Final = {"parameters": [{"name": TEXT, "value": TEXT}]}
_MOUNT: Final = {"name": TEXT, "mountPath": TEXT, "readOnly": IGNORED}
_CONTAINER: Final = {
    "command": [TEXT],
    "args": [TEXT],
    "env": [{"name": TEXT, "value": TEXT, "valueFrom": {"fieldRef": {"fieldPath": TEXT}}}],
    "volumeMounts": [_MOUNT],
    "image": IGNORED,
    "imagePullPolicy": IGNORED,
    "readinessProbe": IGNORED,
    "resources": IGNORED,
    "securityContext": IGNORED,
}
_TASK: Final = {
    "name": TEXT,
    "template": TEXT,
    "depends": TEXT,
    "when": TEXT,
    "withParam": TEXT,
    "withItems": [IGNORED],  # items may be anything that JSON knows; fanout.py checks them
    "arguments": _ARGUMENTS,
}
_TEMPLATE: Final = {
    "name": TEXT,
    "inputs": {
        "parameters": [{"name": TEXT, "default": TEXT, "description": IGNORED}],
        "artifacts": [{"name": TEXT, "path": TEXT, "raw": {"data": TEXT}}],
    },
    "outputs": {"parameters": [{"name": TEXT, "valueFrom": {"path": TEXT, "default": TEXT}}]},
    "container": _CONTAINER,
    "containerSet": {"containers": [{**_CONTAINER, "name": TEXT, "dependencies": [TEXT]}], "volumeMounts": [_MOUNT]},
    "dag": {"failFast": TEXT, "tasks": [_TASK]},
    "volumes": [
        {
            "name": TEXT,
            "emptyDir": IGNORED,
            "hostPath": IGNORED,
            "configMap": {"name": TEXT},
            "persistentVolumeClaim": {"claimName": TEXT},
        }
    ],
    "failFast": TEXT,
    "parallelism": TEXT,
    "timeout": TEXT,
    "activeDeadlineSeconds": TEXT,
    "retryStrategy": {"limit": TEXT, "retryPolicy": TEXT},
    "synchronization": IGNORED,
    "metadata": IGNORED,
    "nodeSelector": IGNORED,
    "tolerations": IGNORED,
    "podSpecPatch": IGNORED,
    "securityContext": IGNORED,
    "serviceAccountName": IGNORED,
    "automountServiceAccountToken": IGNORED,
}
MANIFEST: Final = {
    "apiVersion": TEXT,
    "kind": TEXT,
    "metadata": {"name": TEXT, "namespace": TEXT, "labels": IGNORED, "annotations": IGNORED},
    "spec": {
        "entrypoint": TEXT,
        "onExit": TEXT,
        "arguments": {"parameters": [{"name": TEXT, "value": TEXT, "enum": [TEXT], "description": IGNORED}]},
        "templates": [_TEMPLATE],
        "activeDeadlineSeconds": TEXT,
        "parallelism": TEXT,
        "serviceAccountName": IGNORED,
        "automountServiceAccountToken": IGNORED,
        "executor": IGNORED,
        "securityContext": IGNORED,
        "podMetadata": IGNORED,
        "podGC": IGNORED,
        "ttlStrategy": IGNORED,
        "synchronization": IGNORED,
    },
}


def refuse_unknown(value: Any, shape: Any, path: str) -> None:
    """Raise BadInput that names the first field of `value` that `shape` does not know, or whose kind is another one."""
    if shape == IGNORED:
        return
    if isinstance(shape, dict) and isinstance(value, dict):
        for name, inner in value.items():
            if name not in shape:
                raise BadInput(
                    f"{path}.{name} is a field that the local runner does not know; run it on a cluster, or leave it out"
                )
            refuse_unknown(inner, shape[name], f"{path}.{name}")
    elif isinstance(shape, list) and isinstance(value, list):
        for number, inner in enumerate(value):
            refuse_unknown(inner, shape[0], f"{path}[{number}]")
    elif not (shape == TEXT and isinstance(value, str | int | bool)):
        raise BadInput(f"{path} is of another kind than the local runner knows; see the Argo Workflows field reference")
