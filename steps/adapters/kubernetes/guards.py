"""Why a session must not be stopped, whatever its GPUs do (facts/kubernetes section 4). The same code for survey and stop.

Rights this needs in every opted-in namespace: list pods, horizontalpodautoscalers, poddisruptionbudgets, scaledobjects; get the
namespace; and list applications in all namespaces. What may not be read guards the session (GuardNotReadable).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from steps.adapters.kubernetes.api import Json
from steps.adapters.kubernetes.fields import mapping_at, name_of, namespace_of, text_at, texts_at
from steps.adapters.kubernetes.gitops import gitops_guards
from steps.adapters.kubernetes.guard_lists import AUTOSCALERS, BUDGETS, SCALED_OBJECTS, GuardLists, Listed
from steps.adapters.kubernetes.kinds import SWITCHES, group_of, switch_of
from steps.adapters.kubernetes.selectors import matches
from steps.contracts.cluster_facts import Guard, GuardMet, OwnerRef
from steps.contracts.policy import OptOut

DEFAULT_TARGET_KIND: Final = "Deployment"
"""What a ScaledObject means when its target names no kind (KEDA's documentation)."""


def guards_of(owner: OwnerRef, raw: Json, pods: Sequence[Json], opt_out: OptOut, lists: GuardLists) -> tuple[GuardMet, ...]:
    """All guards met, in a fixed order. pods: those of the session. Raises SourceUnavailable if the API fails otherwise."""
    return (
        *unsupported(owner),
        *_opted_out(owner, raw, opt_out, lists),
        *_autoscaled(owner, lists),
        *gitops_guards(owner, raw, lists),
        *_volumes_deleted(owner, raw),
        *_budgets(owner, raw, pods, lists),
        *_finalizers(pods),
    )


def unsupported(owner: OwnerRef) -> Iterator[GuardMet]:
    if switch_of(owner) is None:
        known = ", ".join(SWITCHES)
        yield GuardMet(
            guard=Guard.OWNER_UNSUPPORTED,
            detail=f"the top owner is {owner.kind} {owner.name} ({owner.api_version}); so far only {known} can be stopped",
        )


def _opted_out(owner: OwnerRef, raw: Json, opt_out: OptOut, lists: GuardLists) -> Iterator[GuardMet]:
    namespace = lists.namespace(owner.namespace)
    yield from _opt_out_on(f"{owner.kind} {owner.name}", raw, opt_out)
    if namespace.ok:
        yield from _opt_out_on(f"namespace {owner.namespace}", namespace.body, opt_out)
    else:
        yield _not_readable(f"namespace {owner.namespace}", namespace.words)


def _opt_out_on(where: str, raw: Json, opt_out: OptOut) -> Iterator[GuardMet]:
    """Parsed strictly: `true` is out, `false` is in, a value that is neither is out with a remark, never ignored."""
    annotations = mapping_at(raw, "metadata", "annotations")
    if opt_out.annotation not in annotations or annotations[opt_out.annotation] == "false":
        return
    value = annotations[opt_out.annotation]
    remark = "" if value == "true" else f"; {value!r:.80} is neither true nor false and counts as true"
    yield GuardMet(guard=Guard.OPTED_OUT, detail=f"{where} carries the annotation {opt_out.annotation}{remark}")


def _autoscaled(owner: OwnerRef, lists: GuardLists) -> Iterator[GuardMet]:
    for kind, title in ((AUTOSCALERS, "HorizontalPodAutoscaler"), (SCALED_OBJECTS, "ScaledObject")):
        listed = lists.of(kind, owner.namespace)
        yield from _unreadable(title, owner.namespace, listed)
        for scaler in listed.items:
            if _targets(scaler, owner):
                yield GuardMet(
                    guard=Guard.AUTOSCALED, detail=f"{title} {name_of(scaler)} owns the count of {owner.kind} {owner.name}"
                )


def _targets(scaler: Json, owner: OwnerRef) -> bool:
    target = mapping_at(scaler, "spec", "scaleTargetRef")
    written = text_at(target, "apiVersion")
    same_group = written is None or group_of(written) == group_of(owner.api_version)
    return same_group and (text_at(target, "kind") or DEFAULT_TARGET_KIND, text_at(target, "name")) == (owner.kind, owner.name)


def _volumes_deleted(owner: OwnerRef, raw: Json) -> Iterator[GuardMet]:
    if text_at(raw, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled") == "Delete":
        yield GuardMet(
            guard=Guard.VOLUMES_DELETED,
            detail=f"{owner.kind} {owner.name} deletes its volume claims when it is scaled down (whenScaled: Delete)",
        )


def _budgets(owner: OwnerRef, raw: Json, pods: Sequence[Json], lists: GuardLists) -> Iterator[GuardMet]:
    """Scaling does not ask a budget, only eviction does; so whoever scales must look himself (facts/kubernetes section 1)."""
    listed = lists.of(BUDGETS, owner.namespace)
    yield from _unreadable("PodDisruptionBudget", owner.namespace, listed)
    labels = [texts_at(raw, "spec", "template", "metadata", "labels"), *(texts_at(pod, "metadata", "labels") for pod in pods)]
    for budget in listed.items:
        selector = mapping_at(budget, "spec").get("selector")
        if any(matches(selector, these) for these in labels):
            yield GuardMet(guard=Guard.DISRUPTION_BUDGET, detail=f"PodDisruptionBudget {name_of(budget)} covers its pods")


def _finalizers(pods: Sequence[Json]) -> Iterator[GuardMet]:
    for pod in pods:
        finalizers = mapping_at(pod, "metadata").get("finalizers")
        if isinstance(finalizers, list) and finalizers:
            yield GuardMet(
                guard=Guard.FINALIZER,
                detail=f"pod {namespace_of(pod)}/{name_of(pod)} carries the finalizer {finalizers[0]!s:.120}",
            )


def _unreadable(title: str, namespace: str, listed: Listed) -> Iterator[GuardMet]:
    if listed.refused is not None:
        yield _not_readable(f"{title} objects in {namespace}", listed.refused)


def _not_readable(what: str, words: str) -> GuardMet:
    return GuardMet(guard=Guard.NOT_READABLE, detail=f"{what} cannot be read, so a guard may be missed: {words}")
