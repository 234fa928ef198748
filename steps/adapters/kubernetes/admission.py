"""Whether the policy for Workflows is in force as shipped: by its name alone an older or an edited one would pass. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from steps.adapters.kubernetes.api import Json
from steps.adapters.kubernetes.fields import list_at, mapping_at, text_at
from steps.contracts.installation import Admission

POLICY_NAME: Final = "gpu-reclaim-workflows"
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
REFUSED: Final = (
    "workflowTemplateRef",
    "spec.entrypoint",
    "spec.templates",
    "spec.serviceAccountName",
    "spec.podSpecPatch",
    "spec.volumes",
    "spec.synchronization",
    "arguments.artifacts",
    "valueFrom",
    "'{{'",
)
"""What the rules of deploy/admission must speak of, each of another one."""
NARROWING: Final = ("objectSelector", "excludeResourceRules")
"""Of a policy's or a binding's match; the API server fills an empty selector in."""


def admission_of(policy: Json | None, bindings: Sequence[Json], namespace: str) -> Admission:
    """policy: None if there is none of its name. bindings: all of the cluster."""
    mine = [one for one in bindings if text_at(one, "spec", "policyName") == POLICY_NAME]
    denying = [one for one in mine if "Deny" in (mapping_at(one, "spec").get("validationActions") or ())]
    return Admission(
        present=policy is not None,
        denies=bool(denying),
        chosen=any(_selects(one, namespace) for one in denying),
        gaps=() if policy is None else tuple(_gaps(mapping_at(policy, "spec"))),
    )


def _selects(binding: Json, namespace: str) -> bool:
    """As shipped, by the name label; a binding without a selector means every namespace."""
    match = mapping_at(binding, "spec", "matchResources")
    selector = mapping_at(match, "namespaceSelector")
    chosen = not selector or selector == {"matchLabels": {NAMESPACE_NAME: namespace}}
    return chosen and not any(match.get(field) for field in (*NARROWING, "resourceRules"))


def _gaps(spec: Json) -> Iterator[str]:
    rules = [text_at(one, "expression") or "" for one in list_at(spec, "validations")]
    yield from (f"no rule speaks of {word}" for word in REFUSED if not any(word in rule for rule in rules))
    if text_at(spec, "failurePolicy") == "Ignore":
        yield "what it fails on is let through (failurePolicy Ignore)"
    match = mapping_at(spec, "matchConstraints")
    narrowed = [field for field in (*NARROWING, "namespaceSelector") if match.get(field)]
    if spec.get("matchConditions"):
        narrowed.append("matchConditions")
    if narrowed:
        yield f"{', '.join(narrowed)} takes Workflows out of it"
    for operation in ("CREATE", "UPDATE"):
        if not any(_covers(rule, operation) for rule in list_at(match, "resourceRules")):
            yield f"it does not see {operation} of workflows"


def _covers(rule: Json, operation: str) -> bool:
    def has(field: str, word: str) -> bool:
        listed = rule.get(field)
        return isinstance(listed, list) and bool({word, "*"} & {one for one in listed if isinstance(one, str)})

    return has("resources", "workflows") and has("operations", operation) and has("apiGroups", "argoproj.io")
