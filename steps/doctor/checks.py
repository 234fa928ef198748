"""What an installation must have, and must not. Pure; every sentence says what to do."""

from collections.abc import Callable, Sequence
from typing import Final

from steps.contracts.document import Sample
from steps.contracts.errors import BadInput
from steps.contracts.installation import Admission, Grant, Hook, Installation
from steps.contracts.policy import Mode
from steps.contracts.ports import GpuNode
from steps.decide.policy import parse_policy
from steps.doctor import versions
from steps.doctor.finding import Finding, good, note, of_list, of_object, of_reading, problem

WORKFLOW_KINDS: Final = ("workflows", "workflowtemplates", "cronworkflows", "workflowtaskresults")
EVENT_KINDS: Final = ("eventbus", "eventsources", "sensors")
OWN_ACCOUNTS: Final = ("reader", "probe", "stopper", "archivist", "submitter", "executor")
EVENT_ACCOUNTS: Final = ("eventsource", "trigger")
TEMPLATES: Final = ("sweep", "release-check")
SECRET_BYTES: Final = 16
"""As deploy/tags/secret-policy.yaml wants it."""
MAKERS: Final = "who may make pods"
APPLY: Final = "apply an overlay of deploy/overlays again"
BROAD: Final = ("Group system:authenticated", "Group system:unauthenticated", "Group system:serviceaccounts")


def examine(seen: Installation) -> tuple[Finding, ...]:
    """Every finding, in the order in which one would set it up."""
    told = seen.kubernetes.known()
    server = None if told is None else versions.parse(told)
    return (
        of_reading("Kubernetes", seen.kubernetes, versions.kubernetes),
        *of_list("Argo's controllers", seen.controllers, lambda images: versions.controllers(images, server)),
        of_reading("Argo's kinds", seen.kinds, _kinds),
        of_reading("admission policy", seen.admission, _admission),
        *of_list(MAKERS, seen.pod_makers, lambda makers: _pod_makers(makers, seen.namespace)),
        of_reading("pod security", seen.enforced, _enforced),
        of_reading("accounts", seen.accounts, _accounts),
        of_object("executor's token", seen.executor_token, _executor_token, APPLY),
        of_reading("probe's rights", seen.probe_grants, _probe),
        of_reading("runtime class", seen.runtime_class, _runtime_class),
        of_reading("GPU nodes", seen.nodes, _nodes),
        of_reading("templates", seen.templates, _all_there("templates", TEMPLATES)),
        of_reading("clock", seen.clocks, _clocks),
        *of_list("git hooks", seen.hooks, lambda found: [_hook(one) for one in found]),
        of_object("evidence", seen.claim, _claim, APPLY),
        of_object("policy", seen.policy, _policy, "apply deploy/policy, or write the ConfigMap gpu-reclaim-policy"),
        *of_list("policy's namespaces", seen.namespaces, lambda there: _absent(seen.policy, there)),
    )


def _all_there(subject: str, wanted: Sequence[str]) -> Callable[[Sequence[str]], Finding]:
    def judge(found: Sequence[str]) -> Finding:
        missing = [name for name in wanted if name not in found]
        return problem(subject, f"missing: {', '.join(missing)}", APPLY) if missing else good(subject, ", ".join(wanted))

    return judge


def _kinds(served: Sequence[str]) -> Finding:
    lacking = [kind for kind in WORKFLOW_KINDS if kind not in served]
    if lacking:
        return problem("Argo's kinds", f"the API serves no {', '.join(lacking)}", "install Argo Workflows with its full CRDs")
    lacking = [kind for kind in EVENT_KINDS if kind not in served]
    if lacking:
        words = f"the API serves no {', '.join(lacking)}: nothing starts when a pod is deleted"
        return problem("Argo's kinds", words, "install Argo Events 1.9.11")
    return good("Argo's kinds", "Argo Workflows and Argo Events")


def _admission(found: Admission) -> Finding:
    subject = "admission policy"
    if not found.present:
        words = "gpu-reclaim-workflows is missing: whoever may create a Workflow here is as good as root on the GPU nodes"
        return problem(subject, words, "apply deploy/admission")
    if not found.denies:
        return problem(subject, "no binding of gpu-reclaim-workflows denies anything", "apply deploy/admission")
    if not found.chosen:
        words = "its binding selects another namespace than gpu-reclaim's"
        return problem(subject, words, "set the namespace in the binding of deploy/admission")
    if found.gaps:
        words = f"gpu-reclaim-workflows admits more than the one that is shipped: {'; '.join(found.gaps)}"
        return problem(subject, words, "apply deploy/admission")
    return good(subject, "Workflows by template reference and plain arguments only")


def _pod_makers(makers: Sequence[Grant], namespace: str) -> list[Finding]:
    if not makers:
        return [
            problem(MAKERS, "nobody, so the workflow controller cannot either", "give the controller its Role in the namespace")
        ]
    return [_pod_maker(grant, namespace) for grant in makers]


def _pod_maker(grant: Grant, namespace: str) -> Finding:
    words = f"{grant.subject} may {grant.right} (by {grant.through})"
    own = [f"ServiceAccount {namespace}/{name}" for name in (*OWN_ACCOUNTS, *EVENT_ACCOUNTS, "default")]
    if grant.subject in own or grant.subject.startswith(BROAD):
        return problem(MAKERS, f"{words}: that is root on the GPU nodes", "take that binding away")
    return note(MAKERS, f"{words}: that is root on the GPU nodes; right for Argo's controllers and administrators alone")


def _enforced(level: str) -> Finding:
    if level in ("baseline", "restricted"):
        return problem("pod security", f"the namespace enforces {level}, so node pods are refused", APPLY)
    if not level:
        return note("pod security", "the namespace names no level; the cluster's default may refuse node pods")
    return good("pod security", f"the namespace enforces {level}, as node pods need")


def _accounts(found: Sequence[str]) -> Finding:
    missing = [name for name in OWN_ACCOUNTS if name not in found]
    if missing:
        return problem("accounts", f"missing: {', '.join(missing)}", APPLY)
    missing = [name for name in EVENT_ACCOUNTS if name not in found]
    if missing:
        return problem("accounts", f"missing: {', '.join(missing)}: events start nothing", "apply deploy/events")
    return good("accounts", "all there")


def _executor_token(filled: bool) -> Finding:
    if filled:
        return good("executor's token", "its Secret is filled")
    return problem(
        "executor's token", "its Secret holds no token, so no step can report", "delete the Secret and apply deploy/base"
    )


def _probe(grants: Sequence[Grant]) -> Finding:
    if grants:
        words = f"the probe's account is bound: {', '.join(grant.through for grant in grants)}"
        return problem("probe's rights", words, "take those bindings away; the probe needs nothing of the API")
    return good("probe's rights", "none in the API")


def _runtime_class(there: bool) -> Finding:
    if there:
        return good("runtime class", "nvidia")
    words = "there is no RuntimeClass nvidia, so node pods cannot see the GPUs"
    return problem("runtime class", words, "install the NVIDIA container toolkit and its RuntimeClass")


def _nodes(nodes: Sequence[GpuNode]) -> Finding:
    if not nodes:
        return problem("GPU nodes", "no node offers a GPU", "see the device plugin's pods")
    silent = [node.name for node in nodes if not node.ready]
    if silent:
        return note("GPU nodes", f"{len(nodes)}, of which not ready: {', '.join(silent)}; their GPUs are unknown until they are")
    return good("GPU nodes", f"{len(nodes)} with {sum(node.gpus for node in nodes)} GPUs")


def _clocks(found: Sequence[str]) -> Finding:
    if not found:
        return problem("clock", "nothing starts sweeps by itself", "choose one: sensors/manifests/ticks or sensors/manifests/cron")
    if len(found) > 1:
        return problem("clock", f"more than one starts sweeps: {', '.join(found)}", "keep one and delete the other")
    return good("clock", found[0])


def _hook(hook: Hook) -> Finding:
    if hook.secret_bytes == 0:
        words = (
            f"event source {hook.source} has an empty secret or none: whoever reaches it may start experiments, or it cannot start"
        )
        return problem("git hooks", words, "write a secret of 16 bytes or more into its Secret, and the same into the forge's hook")
    if hook.secret_bytes < SECRET_BYTES:
        words = f"the secret of event source {hook.source} has {hook.secret_bytes} bytes and can be guessed"
        return problem("git hooks", words, f"give it {SECRET_BYTES} bytes or more, here and in the forge's hook")
    return good("git hooks", f"event source {hook.source} verifies signatures")


def _claim(phase: str) -> Finding:
    if phase == "Bound":
        return good("evidence", "its volume claim is bound")
    return note("evidence", f"its volume claim is {phase}; a storage class may wait for the first run")


def _policy(text: str) -> Finding:
    try:
        policy = parse_policy(text.encode(), "the ConfigMap gpu-reclaim-policy")
    except BadInput as error:
        return problem("policy", str(error), "correct it; until then every run fails")
    if policy.mode is Mode.OBSERVE or not policy.namespaces:
        return note("policy", f"mode {policy.mode.value}, {len(policy.namespaces)} namespaces: nothing will be stopped")
    return note("policy", f"mode {policy.mode.value}: idle sessions of {', '.join(policy.namespaces)} may be stopped")


def _absent(told: Sample[str], there: Sequence[str]) -> list[Finding]:
    """Sweeps go on without such a namespace, so here is where a misspelt one is found."""
    text = told.known()
    try:
        named = () if text is None else parse_policy(text.encode(), "").namespaces
    except BadInput:
        return []  # told by the finding about the policy itself
    absent = [name for name in named if name not in there]
    if not absent:
        return [good("policy's namespaces", f"all {len(named)} exist")] if named else []
    words = f"the cluster has no {', '.join(absent)}: nobody in there is judged"
    return [problem("policy's namespaces", words, "correct `namespaces` in the policy, or create what is missing")]
