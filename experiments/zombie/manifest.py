"""The session of a scenario as a Kubernetes object. Pure. Never a pod of Argo: there, emissary is an init."""

from typing import Any, Final

from experiments.zombie.recording import Ending, Kind, Settings
from experiments.zombie.scenarios import Scenario

CONTAINER: Final = "session"
EXPERIMENT: Final = "gpu-reclaim.dev/experiment"
RUN: Final = "gpu-reclaim.dev/run"
SESSION: Final = "gpu-reclaim.dev/session"
OURS: Final = "zombie"
LONGEST_LIFE_S: Final = 1800
"""The kubelet ends the session after so long, whatever became of drive: the GPU comes back even if nobody cleans up."""
UID: Final = 65532
IGNORES_TERM: Final = ("/bin/bash", "-c", "trap '' TERM; while true; do sleep 1; done")
PRESTOP: Final = ("/opt/scenario/prestop.sh",)


def session_name(scenario: Scenario, number: int) -> str:
    """Label of one session, unique within a run."""
    return f"{scenario.id.value}-{number}"


def manifest(scenario: Scenario, settings: Settings, run: str, number: int) -> dict[str, Any]:
    """The object that drive creates."""
    labels = {"app": scenario.pod, EXPERIMENT: OURS, RUN: run, SESSION: session_name(scenario, number)}
    spec = _pod_spec(scenario, settings)
    if settings.kind is Kind.POD:
        metadata = {"name": scenario.pod, "namespace": settings.namespace, "labels": labels}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**spec, "restartPolicy": "Never"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": scenario.pod, "namespace": settings.namespace, "labels": labels},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"app": scenario.pod}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _pod_spec(scenario: Scenario, settings: Settings) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "nodeSelector": {"kubernetes.io/hostname": settings.node},
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": settings.grace_s,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": UID,
            "runAsGroup": UID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(scenario, settings)],
    }
    if settings.kind is Kind.POD:  # a Deployment's template may not have it; there, cleaning up is drive's alone
        spec["activeDeadlineSeconds"] = LONGEST_LIFE_S
    return spec


def _container(scenario: Scenario, settings: Settings) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": f"{settings.image}:{scenario.image}",
        "imagePullPolicy": settings.pull,
        "env": [
            {"name": "GPU_BACKEND", "value": settings.backend},
            {"name": "PRESTOP_WAIT_S", "value": str(settings.prestop_wait_s)},
        ],
        "resources": {
            "requests": {"cpu": "20m", "memory": "64Mi"},
            "limits": {"nvidia.com/gpu": "1", "memory": "2Gi" if settings.backend == "simulated" else "8Gi"},
        },
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    if settings.ending is Ending.SIGKILL:
        container["args" if scenario.pid1 == "tini" else "command"] = list(IGNORES_TERM)
    elif scenario.command:
        container["command"] = list(scenario.command)
    if scenario.prestop:
        container["lifecycle"] = {"preStop": {"exec": {"command": list(PRESTOP)}}}
    return container
