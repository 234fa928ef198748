"""The containers of one pod as subprocesses: folders for its mounts, a log each, a time limit, nothing left running.

Container paths stand in the arguments; an argument that is such a path, or `--flag=` and such a path, gets the real folder
of the mount instead. Volumes are empty folders of this pod, folders of claims, or copies of ConfigMap files.
"""

import asyncio
import os
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steps.contracts.errors import BadInput
from steps.contracts.files import read_limited, write_atomically
from steps.contracts.parcel import MAX_ARGUMENT_BYTES
from workflows.local.manifest import Template, shared_mounts
from workflows.local.setting import Setting
from workflows.local.tags import fill

KILLED: Final = "Pod was active on the node longer than the specified deadline"
HOSTNAME: Final = "kubernetes.io/hostname"
NODE_VARIABLE: Final = "GPU_RECLAIM_NODE"
_GRACE_S: Final = 2.0
_MAX_CONFIG_BYTES: Final = 1024 * 1024


@dataclass(frozen=True)
class Pod:
    """name: of the pod. folder: holds its volumes. values: of the tags in its template. namespace: of the manifest."""

    name: str
    template: Template
    values: Mapping[str, str]
    namespace: str
    folder: Path
    log_folder: Path
    setting: Setting

    def prepare(self) -> None:
        """Make the volumes and lay down the raw artifacts. Raises BadInput for a volume that the setting does not name."""
        for volume in self.template.get("volumes", []):
            source = self._volume(volume["name"])
            if source is not None:
                source.mkdir(parents=True, exist_ok=True)
        for volume in self.template.get("volumes", []):
            if "configMap" in volume:
                for key, path in self._config_map(volume["configMap"]["name"]).items():
                    write_atomically(self.folder / volume["name"] / key, read_limited(path, _MAX_CONFIG_BYTES))
        for artifact in self.template.get("inputs", {}).get("artifacts", []):
            where = f"artifact {artifact['name']} of {self.template['name']}"
            data = fill(artifact["raw"]["data"], self.values, where).encode()
            if len(data) > MAX_ARGUMENT_BYTES:
                raise BadInput(
                    f"{where} has {len(data)} bytes, more than the {MAX_ARGUMENT_BYTES} of an argument; use smaller shards"
                )
            write_atomically(self.real_path(artifact["path"], shared_mounts(self.template)), data)

    def real_path(self, path: str, mounts: list[dict[str, Any]]) -> Path:
        """Where a container path lies on this machine; outside of all mounts it is private to the pod."""
        for mount in sorted(mounts, key=lambda one: -len(one["mountPath"])):
            inside = path.removeprefix(mount["mountPath"].rstrip("/"))
            source = self._volume(mount["name"])
            if inside != path and inside[:1] in ("", "/") and source is not None:
                return source / inside.lstrip("/")
        return self.folder / "_root" / path.lstrip("/")

    def argv(self, container: Mapping[str, Any]) -> list[str]:
        """The command line on this machine, with paths and tags replaced. Raises BadInput for a command that is not here."""
        command, *rest = [*container.get("command", []), *container.get("args", [])] or [""]
        if command not in self.setting.commands:
            raise BadInput(f"{command!r} cannot run here; a container's command is one of {', '.join(self.setting.commands)}")
        mounts = [*container.get("volumeMounts", []), *shared_mounts(self.template)]
        where = f"arguments of {self.template['name']}"
        return [*self.setting.commands[command], *(fill(self._localised(one, mounts), self.values, where) for one in rest)]

    def environment(self, container: Mapping[str, Any]) -> dict[str, str]:
        own = {"metadata.namespace": self.namespace, "metadata.name": self.name}
        given = {}
        for one in container.get("env", []):
            field = one.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            if field is not None and field not in own:
                raise BadInput(f"environment {one['name']} asks for {field}, which the local runner does not know")
            value = own[field] if field is not None else str(one.get("value", ""))
            given[one["name"]] = fill(value, self.values, f"environment of {self.template['name']}")
        return {**self.setting.environment, **self._node(), **given}

    def _node(self) -> dict[str, str]:
        """The node that the template selects, for a simulator: here nothing else tells a container where it runs."""
        selected = self.template.get("nodeSelector", {}).get(HOSTNAME)
        where = f"nodeSelector of {self.template['name']}"
        return {} if selected is None else {NODE_VARIABLE: fill(selected, self.values, where)}

    async def run(self, container: Mapping[str, Any], limit_s: float | None) -> int | None:
        """Run one container to its end. Returns its exit code, or None if it was killed at its time limit."""
        log_path = self.log_folder / f"{self.name}.{container['name']}.log"
        log_path.parent.mkdir(parents=True, exist_ok=True)
        with log_path.open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *self.argv(container),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment(container),
                cwd=self.folder,
                start_new_session=True,
            )
            try:
                return await asyncio.wait_for(process.wait(), limit_s)
            except TimeoutError:
                return None
            finally:
                await _end(process)

    def _localised(self, argument: str, mounts: list[dict[str, Any]]) -> str:
        flag, path = re.fullmatch(r"(--[a-z0-9-]+=)?(.*)", argument, re.DOTALL).groups()  # type: ignore[union-attr]  # matches any text
        artifacts = [artifact["path"] for artifact in self.template.get("inputs", {}).get("artifacts", [])]
        inside = any(path == one["mountPath"] or path.startswith(one["mountPath"].rstrip("/") + "/") for one in mounts)
        return f"{flag or ''}{self.real_path(path, mounts)}" if inside or path in artifacts else argument

    def _volume(self, name: str) -> Path | None:
        """The real folder of a volume; None for a hostPath, which is the node's and not ours."""
        volume = next(one for one in self.template.get("volumes", []) if one["name"] == name)
        if "hostPath" in volume:
            return None
        if "persistentVolumeClaim" not in volume:
            return self.folder / name
        claim = volume["persistentVolumeClaim"]["claimName"]
        if claim not in self.setting.claims:
            raise BadInput(f"template {self.template['name']} mounts the claim {claim!r}; say which folder stands for it")
        return self.setting.claims[claim]

    def _config_map(self, name: str) -> Mapping[str, Path]:
        if name not in self.setting.config_maps:
            raise BadInput(f"template {self.template['name']} mounts the ConfigMap {name!r}; say which files stand for it")
        return self.setting.config_maps[name]


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process and all it started, kindly and then for certain."""
    for sent, wait_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _GRACE_S)):
        try:
            os.killpg(process.pid, sent)
        except ProcessLookupError:
            return
        if process.returncode is None:
            try:
                await asyncio.wait_for(process.wait(), wait_s)
            except TimeoutError:
                continue
