"""Whether Argo CD or Flux would undo a stop. Argo CD says so by a tracking annotation or an instance label, and heals itself
only if its Application says selfHeal (facts/kubernetes section 4); an Application that cannot be read is a refusal too."""

from collections.abc import Iterator
from typing import Final

import msgspec

from steps.adapters.kubernetes.api import Json
from steps.adapters.kubernetes.fields import mapping_at, name_of, namespace_of, texts_at
from steps.adapters.kubernetes.guard_lists import APPLICATIONS, GuardLists
from steps.contracts.cluster_facts import Guard, GuardMet, OwnerRef

TRACKING: Final = "argocd.argoproj.io/tracking-id"
INSTANCE: Final = "argocd.argoproj.io/instance"
COMMON_INSTANCE: Final = "app.kubernetes.io/instance"
"""Argo CD's default label, and Helm's as well: it counts only if an Application of that name exists."""
FLUX: Final = ("kustomize.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/name")


class Mark(msgspec.Struct, frozen=True):
    """sure: nobody but Argo CD writes this mark."""

    where: str
    application: str
    sure: bool


def gitops_guards(owner: OwnerRef, raw: Json, lists: GuardLists) -> Iterator[GuardMet]:
    labels = texts_at(raw, "metadata", "labels")
    for label in FLUX:
        if label in labels:
            yield _guard(f"Flux owns {owner.kind} {owner.name} (label {label}: {labels[label]})")
    mark = _mark(raw)
    if mark is not None:
        yield from _argo_cd(owner, mark, lists)


def _mark(raw: Json) -> Mark | None:
    """tracking-id reads `<application>:<group>/<kind>:<namespace>/<name>`."""
    tracking = texts_at(raw, "metadata", "annotations").get(TRACKING)
    labels = texts_at(raw, "metadata", "labels")
    if tracking is not None:
        return Mark(f"annotation {TRACKING}", tracking.partition(":")[0], sure=True)
    if INSTANCE in labels:
        return Mark(f"label {INSTANCE}", labels[INSTANCE], sure=True)
    if COMMON_INSTANCE in labels:
        return Mark(f"label {COMMON_INSTANCE}", labels[COMMON_INSTANCE], sure=False)
    return None


def _argo_cd(owner: OwnerRef, mark: Mark, lists: GuardLists) -> Iterator[GuardMet]:
    listed = lists.of(APPLICATIONS, None)
    named = [application for application in listed.items if _names(application) & {mark.application}]
    said = f"the {mark.where} names the Argo CD application {mark.application!r:.120}"
    if listed.refused is not None:
        yield GuardMet(guard=Guard.NOT_READABLE, detail=f"{said}, which cannot be read: {listed.refused}")
    elif not named and mark.sure:
        yield _guard(f"{said}, which is not in this cluster: whether it heals itself cannot be read")
    for application in named:
        if _self_heals(application):
            yield _guard(f"the Argo CD application {name_of(application)} heals {owner.kind} {owner.name} itself (selfHeal)")


def _names(application: Json) -> set[str]:
    """An Application outside Argo CD's own namespace is called `<namespace>_<name>` in marks."""
    return {name_of(application), f"{namespace_of(application)}_{name_of(application)}"}


def _self_heals(application: Json) -> bool:
    automated = mapping_at(application, "spec", "syncPolicy", "automated")
    return automated.get("selfHeal") is True and automated.get("enabled") is not False


def _guard(detail: str) -> GuardMet:
    return GuardMet(guard=Guard.GITOPS_MANAGED, detail=detail)
