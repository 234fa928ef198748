"""What the pods of all workflows share: image, mounts, rights on the machine, and a template derived from a step's declaration.

Nothing here names an order of steps; that is each workflow's own file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hera.workflows import ConfigMapVolume, Container, ContainerNode, EmptyDirVolume, Env, ExistingVolume, HostPathVolume, Parameter
from hera.workflows import models as m
from hera.workflows.artifact import RawArtifact

from steps.contracts.declaration import Step

IMAGE: Final = "docker.io/gpureclaim/steps:0.1.0"
COMMAND: Final = ["gpu-reclaim"]
NAMESPACE: Final = "gpu-reclaim"
PART_OF: Final = {"app.kubernetes.io/part-of": "gpu-reclaim"}
UNPRIVILEGED_UID: Final = 65532
KUBELET_DEVICE_PLUGINS: Final = "/var/lib/kubelet/device-plugins"
POD_LOGS: Final = "/var/log/pods"
"""Only its folders' names are read: they name pods that the API server no longer knows."""
POLICY_FILE: Final = "/policy/policy.yaml"
EVIDENCE_FOLDER: Final = "/evidence"

NODE_POD_PATCH: Final = '{"hostPID":true,"runtimeClassName":"nvidia"}'
"""hostPID and the runtime class are no template fields. A constant: substitution escapes one JSON level only, so a
parameter inside it could rewrite the pod (facts/hera-and-argo 3.5)."""

WAIT_ON: Final = {"workflows.argoproj.io/kill-cmd-wait": '["/var/run/argo/argoexec", "version"]'}
"""What Argo runs in its `wait` container to stop it, instead of `kill 1`: nothing, so that it goes on until the step has ended, and
hands over what the step wrote. By itself it stops waiting at once and reports no outputs (4.0.5: executor Wait)."""
STOP_BY_FILE: Final = {
    **WAIT_ON,
    "workflows.argoproj.io/kill-cmd-main": '["/bin/sh", "-c", "printf %d > /var/run/argo/ctr/main/signal"]',
}
"""With the host's PIDs `kill 1` goes to the node's own init. The emissary looks at this file every 2 s and signals the step."""

OUT: Final = EmptyDirVolume(name="out", mount_path="/out", size_limit=m.Quantity("64Mi"))
IN: Final = EmptyDirVolume(name="in", mount_path="/in", size_limit=m.Quantity("64Mi"))
TMP: Final = EmptyDirVolume(name="tmp", mount_path="/tmp", size_limit=m.Quantity("64Mi"))
POLICY: Final = ConfigMapVolume(name="gpu-reclaim-policy", mount_path="/policy", read_only=True)
EVIDENCE: Final = ExistingVolume(name="evidence", claim_name="gpu-reclaim-evidence", mount_path=EVIDENCE_FOLDER)
KUBELET: Final = HostPathVolume(
    name="device-plugins", path=KUBELET_DEVICE_PLUGINS, type="Directory", mount_path=KUBELET_DEVICE_PLUGINS, read_only=True
)

POD_SECURITY: Final = m.PodSecurityContext(
    run_as_non_root=True,
    run_as_user=UNPRIVILEGED_UID,
    run_as_group=UNPRIVILEGED_UID,
    fs_group=UNPRIVILEGED_UID,
    seccomp_profile=m.SeccompProfile(type="RuntimeDefault"),
)
NODE_POD_SECURITY: Final = m.PodSecurityContext(
    run_as_non_root=False, run_as_user=0, run_as_group=0, seccomp_profile=m.SeccompProfile(type="RuntimeDefault")
)

LOGS: Final = HostPathVolume(name="pod-logs", path=POD_LOGS, type="DirectoryOrCreate", mount_path=POD_LOGS, read_only=True)


def mount_of(volume: Any) -> m.VolumeMount:
    """The mount of one of the volumes above, for a container of a containerSet or the set itself."""
    return m.VolumeMount(name=volume.name, mount_path=volume.mount_path, read_only=volume.read_only)


def container_security(*capabilities: str) -> m.SecurityContext:
    """No way to more rights than these capabilities, and a root file system that cannot be written."""
    return m.SecurityContext(
        allow_privilege_escalation=False,
        read_only_root_filesystem=True,
        capabilities=m.Capabilities(drop=["ALL"], add=list(capabilities) or None),
    )


def resources(memory_limit: str = "256Mi") -> m.ResourceRequirements:
    """Small requests, so that a full node still takes a probe; no request for a GPU, ever."""
    requests = {"cpu": m.Quantity("20m"), "memory": m.Quantity("64Mi")}
    limits = {"cpu": m.Quantity("1"), "memory": m.Quantity(memory_limit)}
    return m.ResourceRequirements(requests=requests, limits=limits)


def common_env() -> list[Any]:
    """Where gpu-reclaim's own objects live: the namespace of the pod, so that an overlay may choose another one."""
    field_ref = m.ObjectFieldSelector(field_path="metadata.namespace")
    return [m.EnvVar(name="GPU_RECLAIM_NAMESPACE", value_from=m.EnvVarSource(field_ref=field_ref))]


@dataclass(frozen=True)
class Wiring:
    """How a step's declared inputs and outputs are met in a pod.

    given: inputs that are no parameters of the template (a fixed path, `{{workflow.name}}`). in_folder, out_folder: where
    artifacts lie and outputs are written.
    """

    step: Step
    given: Mapping[str, str] = field(default_factory=dict)
    in_folder: str = "/in"
    out_folder: str = "/out"
    out_suffix: str = ""

    def out_path(self, output: str) -> str:
        return f"{self.out_folder}/{output}{self.out_suffix}"

    def args(self) -> list[str]:
        artifacts = {i.name: f"{self.in_folder}/{i.name}.json" for i in self.step.inputs if i.artifact}
        parameters = {i.name: f"{{{{inputs.parameters.{i.name}}}}}" for i in self.step.inputs if not i.artifact}
        return self.step.argv(
            {**parameters, **artifacts, **self.given}, {output.name: self.out_path(output.name) for output in self.step.outputs}
        )

    def inputs(self) -> list[Any]:
        """Template inputs: a parameter for each input that is not given, and a raw artifact beside each that is a file.

        A raw artifact needs no repository. Its text is substituted into the template, where a double brace would be
        evaluated by the controller (facts/hera-and-argo 3.12): parcels are base64, and every other document is written
        with its double braces escaped (Inputs.put), so neither can hold one.
        """
        open_inputs = [i for i in self.step.inputs if i.name not in self.given]
        parameters = [
            Parameter(name=i.name) if i.default is None else Parameter(name=i.name, default=i.default) for i in open_inputs
        ]
        artifacts = [
            RawArtifact(name=i.name, path=f"{self.in_folder}/{i.name}.json", data=f"{{{{inputs.parameters.{i.name}}}}}")
            for i in open_inputs
            if i.artifact
        ]
        return [*parameters, *artifacts]

    def outputs(self) -> list[Parameter]:
        return [Parameter(name=o.name, value_from=m.ValueFrom(path=self.out_path(o.name))) for o in self.step.outputs]

    def container(
        self, *, reads_api: bool, account: str, volumes: Sequence[Any] = (), memory_limit: str = "256Mi", **more: Any
    ) -> Container:
        """A template that runs the step in a pod of its own, without any right on the machine."""
        return Container(
            name=self.step.name,
            labels={**PART_OF, "gpu-reclaim.dev/step": self.step.name},
            service_account_name=account,
            automount_service_account_token=True if reads_api else None,
            **pod_shape(self, volumes),
            resources=resources(memory_limit),
            security_context=container_security(),
            **more,
        )

    def node_container(self, *, timeout_s: int) -> Container:
        """A template that runs the step on the node named by its input `node`, with the host's PIDs and the GPUs in sight.

        `timeout` also covers Pending, so a dead node ends it. There must be no retryStrategy beside it: the controller
        (4.0.5, checkTemplateTimeout) asks the retry node, which is never Pending, and a dead node would hold the run.
        """
        shape = pod_shape(self, (KUBELET, LOGS))
        nvidia = [Env(name="NVIDIA_VISIBLE_DEVICES", value="all"), Env(name="NVIDIA_DRIVER_CAPABILITIES", value="utility")]
        return Container(
            name=self.step.name,
            labels={**PART_OF, "gpu-reclaim.dev/step": self.step.name},
            annotations=STOP_BY_FILE,
            service_account_name="probe",
            timeout=f"{timeout_s}s",
            node_selector={"kubernetes.io/hostname": "{{inputs.parameters.node}}"},
            tolerations=[m.Toleration(operator="Exists")],
            pod_spec_patch=NODE_POD_PATCH,
            pod_security_context=NODE_POD_SECURITY,
            **{**shape, "env": [*shape["env"], *nvidia]},
            resources=resources(),
            security_context=container_security("SYS_PTRACE", "DAC_READ_SEARCH"),
        )

    def set_node(self, *volumes: Any, memory_limit: str = "512Mi", name: str | None = None) -> ContainerNode:
        """One container of a containerSet; volumes that all of them share are the set's."""
        return ContainerNode(
            name=name or self.step.name,
            image=IMAGE,
            image_pull_policy="IfNotPresent",
            command=COMMAND,
            args=self.args(),
            env=common_env(),
            volume_mounts=[mount_of(v) for v in volumes] or None,
            resources=resources(memory_limit),
            security_context=container_security(),
        )


def pod_shape(wiring: Wiring, volumes: Sequence[Any]) -> dict[str, Any]:
    """What every single-container template has."""
    needs_in = any(i.artifact for i in wiring.step.inputs)
    return {
        "image": IMAGE,
        "image_pull_policy": "IfNotPresent",
        "command": COMMAND,
        "args": wiring.args(),
        "inputs": wiring.inputs(),
        "outputs": wiring.outputs(),
        "volumes": [OUT, TMP, *([IN] if needs_in else []), *volumes],
        "env": common_env(),
    }
