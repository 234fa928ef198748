"""Who may do what in one namespace, from the server's roles and bindings. Pure over raw objects."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from steps.adapters.kubernetes.api import Json
from steps.adapters.kubernetes.fields import list_at, name_of, namespace_of, text_at
from steps.contracts.installation import Grant

POD_MAKERS: Final[Mapping[tuple[str, str], Sequence[str]]] = {
    ("", "pods"): ("create",),
    ("", "pods/exec"): ("create",),
    ("", "pods/ephemeralcontainers"): ("patch", "update"),
    ("", "replicationcontrollers"): ("create",),
    **{("apps", kind): ("create", "patch", "update") for kind in ("deployments", "statefulsets", "daemonsets", "replicasets")},
    **{("batch", kind): ("create", "patch", "update") for kind in ("jobs", "cronjobs")},
    **{
        ("argoproj.io", kind): ("create", "patch", "update")
        for kind in ("workflowtemplates", "eventsources", "sensors", "eventbus")
    },
}
"""Whatever ends in a pod of the caller's own making. Workflows are not among them: the admission policy is about those."""
EVERYBODY: Final = ("system:authenticated", "system:unauthenticated", "system:serviceaccounts")
CLUSTERS_OWN: Final = "kube-system"


@dataclass(frozen=True, slots=True)
class Rbac:
    """The raw objects: roles and bindings of the namespace, and those of the cluster."""

    roles: Sequence[Json]
    bindings: Sequence[Json]
    cluster_roles: Sequence[Json]
    cluster_bindings: Sequence[Json]

    def pod_makers(self) -> tuple[Grant, ...]:
        """Who may bring a pod into the namespace; the cluster's own controllers and masters are left out."""

        def rights(rules: Iterable[Json]) -> Iterator[str]:
            for (group, kind), verbs in POD_MAKERS.items():
                allowed = [verb for verb in verbs if any(_allows(rule, group, kind, verb) for rule in rules)]
                if allowed:
                    yield f"{'/'.join(allowed)} {kind}"

        return tuple(self._grants(lambda subject: not _is_clusters_own(subject), rights))

    def bound_to(self, account: str, namespace: str) -> tuple[Grant, ...]:
        """Everything that is bound to one service account by name."""

        def is_it(subject: Json) -> bool:
            place = (text_at(subject, "namespace") or namespace, text_at(subject, "name"))
            return text_at(subject, "kind") == "ServiceAccount" and place == (namespace, account)

        return tuple(self._grants(is_it, lambda rules: ["anything"] if list(rules) else []))

    def _grants(self, wanted: Callable[[Json], bool], rights: Callable[[Sequence[Json]], Iterable[str]]) -> Iterator[Grant]:
        roles = {("Role", name_of(role)): role for role in self.roles}
        roles |= {("ClusterRole", name_of(role)): role for role in self.cluster_roles}
        for binding in (*self.bindings, *self.cluster_bindings):
            key = (text_at(binding, "roleRef", "kind") or "", text_at(binding, "roleRef", "name") or "")
            found = list(rights(list_at(roles.get(key, {}), "rules")))
            for subject in list_at(binding, "subjects") if found else ():
                if wanted(subject):
                    through = f"{name_of(binding)} -> {key[0]} {key[1]}"
                    yield Grant(subject=_words(subject, namespace_of(binding)), right=", ".join(found), through=through)


def _allows(rule: Mapping[str, Any], group: str, kind: str, verb: str) -> bool:
    """Names in the rule narrow patch and update to some objects, and that is enough to be a way; they never allow create."""
    named = bool(rule.get("resourceNames"))
    return (
        _holds(rule.get("apiGroups"), group)
        and (_holds(rule.get("resources"), kind) or _holds(rule.get("resources"), f"*/{kind.partition('/')[2]}"))
        and _holds(rule.get("verbs"), verb)
        and not (named and verb == "create" and "/" not in kind)
    )


def _holds(listed: object, wanted: str) -> bool:
    return isinstance(listed, list) and (wanted in listed or "*" in listed)


def _is_clusters_own(subject: Json) -> bool:
    kind, name = text_at(subject, "kind"), text_at(subject, "name") or ""
    if kind == "ServiceAccount":
        return text_at(subject, "namespace") == CLUSTERS_OWN
    return name.startswith("system:") and not name.startswith(EVERYBODY)


def _words(subject: Json, namespace: str) -> str:
    name = text_at(subject, "name") or ""
    if text_at(subject, "kind") == "ServiceAccount":
        return f"ServiceAccount {text_at(subject, 'namespace') or namespace}/{name}"
    return f"{text_at(subject, 'kind')} {name}"
