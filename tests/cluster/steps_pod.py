"""One step as a pod of the steps' image under a shipped account, outside any workflow: what an intruder could try."""

from typing import Final

from steps.contracts.document import decode
from steps.contracts.stop_receipt import StopReceipt
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab
from tests.cluster.scene import STEPS_IMAGE

ENDED: Final = ("Succeeded", "Failed")


def run_step(lab: Lab, account: str, run: str, decision: str) -> StopReceipt:
    """`gpu-reclaim step stop` for a decision id of the caller's invention, not a dry run. Returns its receipt."""
    command = (
        f"gpu-reclaim step stop --run={run} --shard=0 --decision={decision} --dry-run=false --policy=/policy/policy.yaml "
        "--captures=/tmp/captures --receipt-to=/tmp/receipt --acted-to=/tmp/acted 2>/dev/null && cat /tmp/receipt"
    )
    return decode(output(lab, account, f"echo '[]' > /tmp/captures; {command}"), StopReceipt, "the receipt of a made-up decision")


def output(lab: Lab, account: str, script: str, *, within_s: float = 40) -> str:
    """What a shell script wrote to stdout in a pod of the steps' image under an account; the pod is removed."""
    pod = lab.kubectl.create(_pod(account, script) | {"metadata": {"generateName": "by-hand-", "namespace": lab.namespace}})
    name = str(pod["metadata"]["name"])
    try:
        lab.kubectl.wait(f"pod {name} ends", lambda: _phase(lab, name) in ENDED, within_s=within_s)
        return lab.kubectl.logs(name, lab.namespace)
    finally:
        lab.kubectl.delete("pod", name, lab.namespace, wait=False)


def _phase(lab: Lab, name: str) -> str:
    pod = lab.kubectl.get("pod", name, lab.namespace)
    return "" if pod is None else str(pod["status"].get("phase", ""))


def _pod(account: str, script: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {
            "serviceAccountName": account,
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "main",
                    "image": STEPS_IMAGE,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["sh", "-c", script],
                    "securityContext": {"readOnlyRootFilesystem": True, "runAsNonRoot": True, "allowPrivilegeEscalation": False},
                    "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, {"name": "policy", "mountPath": "/policy"}],
                }
            ],
            "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "policy", "configMap": {"name": "gpu-reclaim-policy"}}],
        },
    }
