"""An installation as it stands, read with the person's rights. What may not be read is unknown, with the server's words."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from steps.adapters.kubernetes.admission import POLICY_NAME, admission_of
from steps.adapters.kubernetes.api import Answer, Api, Json
from steps.adapters.kubernetes.cluster import KubernetesCluster
from steps.adapters.kubernetes.fields import list_at, mapping_at, name_of, path_of, text_at, texts_at
from steps.adapters.kubernetes.hooks import hooks
from steps.adapters.kubernetes.rbac import Rbac
from steps.contracts.document import Origin, Sample, Stamp
from steps.contracts.errors import SourceUnavailable
from steps.contracts.installation import Admission, Installation
from steps.contracts.ports import Clock

T = TypeVar("T")

ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
ARGO: Final = "/apis/argoproj.io/v1alpha1"
CONTROLLERS: Final = ("workflow-controller", "argo-events")
ENFORCE: Final = "pod-security.kubernetes.io/enforce"
EXECUTOR_TOKEN: Final = "executor.service-account-token"
EVIDENCE_CLAIM: Final = "gpu-reclaim-evidence"
POLICY_MAP: Final = "gpu-reclaim-policy"


class KubernetesInstallation:
    """Reads once, when asked. Raises SourceUnavailable if the API server does not answer at all."""

    def __init__(self, api: Api, namespace: str, clock: Clock) -> None:
        self._api: Final = api
        self._namespace: Final = namespace
        self._clock: Final = clock

    def read(self) -> Installation:
        rbac = self._rbac()
        return Installation(
            stamp=Stamp(made_by="doctor", made_at=self._clock.now(), origin=Origin.REAL),
            namespace=self._namespace,
            kubernetes=self._of(self._api.get("/version"), lambda raw: text_at(raw, "gitVersion") or "unknown"),
            kinds=self._of(self._api.get(ARGO), lambda raw: tuple(str(one.get("name")) for one in list_at(raw, "resources"))),
            controllers=self._of(self._api.list("/apis/apps/v1/deployments"), _controllers),
            admission=self._admission(),
            enforced=self._of(
                self._api.get(f"/api/v1/namespaces/{self._namespace}"),
                lambda raw: texts_at(raw, "metadata", "labels").get(ENFORCE, ""),
            ),
            accounts=self._names("/api/v1", "serviceaccounts"),
            executor_token=self._there("/api/v1", "secrets", EXECUTOR_TOKEN, lambda raw: "token" in mapping_at(raw, "data")),
            pod_makers=_with(rbac, Rbac.pod_makers),
            probe_grants=_with(rbac, lambda one: one.bound_to("probe", self._namespace)),
            nodes=self._nodes(),
            runtime_class=self._found(self._api.get("/apis/node.k8s.io/v1/runtimeclasses/nvidia")),
            templates=self._names(ARGO, "workflowtemplates"),
            clocks=self._clocks(),
            hooks=hooks(self._api, self._namespace),
            claim=self._there(
                "/api/v1", "persistentvolumeclaims", EVIDENCE_CLAIM, lambda raw: text_at(raw, "status", "phase") or "unknown"
            ),
            policy=self._there("/api/v1", "configmaps", POLICY_MAP, lambda raw: texts_at(raw, "data").get("policy.yaml", "")),
            namespaces=self._names_at("/api/v1/namespaces"),
        )

    def _of(self, answer: Answer, read: Callable[[Json], T]) -> Sample[T]:
        return Sample.measured(read(answer.body)) if answer.ok else Sample.error(answer.words)

    def _found(self, answer: Answer) -> Sample[bool]:
        return Sample.measured(False) if answer.status == 404 else self._of(answer, lambda _: True)

    def _there(self, prefix: str, plural: str, name: str, read: Callable[[Json], T]) -> Sample[T]:
        """Absent, with that as reason, where there is no such object."""
        answer = self._api.get(path_of(prefix, self._namespace, plural, name))
        if answer.status == 404:
            return Sample.absent(f"there is no {plural}/{name} in namespace {self._namespace}")
        return self._of(answer, read)

    def _names(self, prefix: str, plural: str) -> Sample[tuple[str, ...]]:
        return self._names_at(path_of(prefix, self._namespace, plural))

    def _names_at(self, path: str) -> Sample[tuple[str, ...]]:
        answer = self._api.list(path)
        return self._of(answer, lambda raw: tuple(sorted(name_of(one) for one in list_at(raw, "items"))))

    def _nodes(self) -> Sample[Any]:
        try:
            return Sample.measured(KubernetesCluster(self._api, self._clock).gpu_nodes())
        except SourceUnavailable as error:
            return Sample.error(str(error))

    def _admission(self) -> Sample[Admission]:
        policy = self._api.get(f"{ADMISSION}/validatingadmissionpolicies/{POLICY_NAME}")
        bindings = self._api.list(f"{ADMISSION}/validatingadmissionpolicybindings")
        if not policy.ok and policy.status != 404:
            return Sample.error(policy.words)
        shipped = policy.body if policy.ok else None
        return self._of(bindings, lambda raw: admission_of(shipped, list_at(raw, "items"), self._namespace))

    def _clocks(self) -> Sample[tuple[str, ...]]:
        """Sensors that wait for a calendar source, and CronWorkflows that are not suspended, of the template sweep."""
        sensors = self._api.list(path_of(ARGO, self._namespace, "sensors"))
        crons = self._api.list(path_of(ARGO, self._namespace, "cronworkflows"))
        for answer in (sensors, crons):
            if not answer.ok and answer.status != 404:
                return Sample.error(answer.words)
        found = [f"Sensor {name_of(one)}" for one in list_at(sensors.body, "items") if _starts_sweeps(one)]
        found += [f"CronWorkflow {name_of(one)}" for one in list_at(crons.body, "items") if _is_active(one)]
        return Sample.measured(tuple(sorted(found)))

    def _rbac(self) -> Sample[Rbac]:
        lists = [
            self._api.list(path)
            for path in (
                path_of(RBAC, self._namespace, "roles"),
                path_of(RBAC, self._namespace, "rolebindings"),
                f"{RBAC}/clusterroles",
                f"{RBAC}/clusterrolebindings",
            )
        ]
        for answer in lists:
            if not answer.ok:
                return Sample.error(answer.words)
        return Sample.measured(Rbac(*(list_at(answer.body, "items") for answer in lists)))


def _with(rbac: Sample[Rbac], read: Callable[[Rbac], T]) -> Sample[T]:
    known = rbac.known()
    return Sample.error(rbac.reason or "not readable") if known is None else Sample.measured(read(known))


def _controllers(raw: Json) -> tuple[str, ...]:
    """Images of Argo's controllers; sources and sensors, which Argo Events deploys itself, have an owner."""
    images = {
        text_at(container, "image") or ""
        for one in list_at(raw, "items")
        if not list_at(one, "metadata", "ownerReferences")
        for container in list_at(one, "spec", "template", "spec", "containers")
    }
    return tuple(sorted(image for image in images if image.rpartition("/")[2].startswith(CONTROLLERS)))


def _starts_sweeps(sensor: Json) -> bool:
    for trigger in list_at(sensor, "spec", "triggers"):
        made = mapping_at(trigger, "template", "k8s", "source", "resource")
        if text_at(made, "spec", "workflowTemplateRef", "name") == "sweep":
            return True
    return False


def _is_active(cron: Json) -> bool:
    spec = mapping_at(cron, "spec")
    return text_at(spec, "workflowSpec", "workflowTemplateRef", "name") == "sweep" and spec.get("suspend") is not True
