#!/usr/bin/env python3
"""OCI runtime of RuntimeClass `nvidia`: gives a container its simulated GPU, then becomes runc.

Started by containerd's shim instead of runc (`BinaryName`), through the launcher that `gpusim install` writes. Only `create`
and `run` change anything, and only for a container with NVIDIA_VISIBLE_DEVICES: `all` is a probe and gets every GPU,
read-only; a list of UUIDs or indices is a session. That the tenant can set this variable is true of NVIDIA's own runtime, too.
"""

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

VARIABLE: Final = "NVIDIA_VISIBLE_DEVICES"
NONE: Final = frozenset({"", "void", "none"})
PLACES_OF_RUNC: Final = "/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin"
EVERYONE: Final = 0o666
COULD_NOT: Final = 1

Config = dict[str, Any]
"""config.json as it is: its layout is the OCI runtime specification's, and what is not ours passes through untouched."""


def bundle_of(arguments: Sequence[str]) -> Path | None:
    """The bundle of a `create` or `run`, None for every other command."""
    verb = next((place for place, word in enumerate(arguments) if word in ("create", "run")), None)
    if verb is None:
        return None
    rest = arguments[verb + 1 :]
    for place, word in enumerate(rest):
        flag, equals, value = word.partition("=")
        if flag in ("--bundle", "-b"):
            return Path(value if equals else rest[place + 1])
    return Path.cwd()


def visible_devices(config: Config) -> str:
    """NVIDIA_VISIBLE_DEVICES of the container's process, empty if it is not set; the last one counts."""
    value = ""
    for entry in config.get("process", {}).get("env", []):
        name, _, text = entry.partition("=")
        if name == VARIABLE:
            value = text
    return value


def with_gpus(config: Config, folder: Path) -> Config:
    """The configuration with library, folder and device nodes added, where the device plugin has not already.

    Raises StateError: no simulator in `folder`, or a GPU that is not in it.
    """
    from sim.node.devices import number_of  # noqa: PLC0415  # every other runc command must start fast

    injection = _injection(visible_devices(config), folder)
    mounts = config.setdefault("mounts", [])
    there = {mount["destination"] for mount in mounts}
    for mount in injection.mounts:
        if str(mount.container) not in there:
            access = "ro" if mount.read_only else "rw"
            mounts.append(
                {
                    "destination": str(mount.container),
                    "type": "bind",
                    "source": str(mount.host),
                    "options": ["bind", access, "nosuid", "nodev"],
                }
            )
    linux = config.setdefault("linux", {})
    devices = linux.setdefault("devices", [])
    rules = linux.setdefault("resources", {}).setdefault("devices", [])
    known = {device["path"] for device in devices}
    for node in injection.devices:
        major, minor = number_of(node.host)
        if str(node.container) not in known:
            devices.append(
                {"path": str(node.container), "type": "c", "major": major, "minor": minor, "fileMode": EVERYONE, "uid": 0, "gid": 0}
            )
        rules.append({"allow": True, "type": "c", "major": major, "minor": minor, "access": "rw"})
    return config


def _injection(wanted: str, folder: Path) -> Any:
    from sim.node.injection import for_probe, for_session  # noqa: PLC0415
    from sim.node.state_file import read_state  # noqa: PLC0415

    state = read_state(folder)
    if wanted == "all":
        return for_probe(folder, state)
    by_index = {str(index): gpu.uuid for index, gpu in enumerate(state.gpus)}
    return for_session(folder, state, [by_index.get(word, word) for word in wanted.split(",")])


def edit(bundle: Path, folder: Path) -> None:
    """Edit the bundle's config.json if its container wants GPUs."""
    path = bundle / "config.json"
    config: Config = json.loads(path.read_text(encoding="utf-8"))
    if visible_devices(config) in NONE:
        return
    fresh = path.with_suffix(".json.gpu-sim")
    fresh.write_text(json.dumps(with_gpus(config, folder)), encoding="utf-8")
    fresh.replace(path)


def runc(environment: Mapping[str, str]) -> str | None:
    return environment.get("GPU_SIM_RUNC") or shutil.which("runc", path=f"{environment.get('PATH', '')}:{PLACES_OF_RUNC}")


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:  # noqa: RET503  # execv does not return
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    real = runc(environment)
    if real is None:
        print("nvidia-container-runtime: runc is not installed", file=sys.stderr)
        return COULD_NOT
    bundle = bundle_of(arguments)
    if bundle is not None:
        from sim.node.state import StateError  # noqa: PLC0415
        from sim.node.state_file import folder_from  # noqa: PLC0415

        try:
            edit(bundle, folder_from(environment))
        except (OSError, ValueError, StateError) as error:
            print(f"nvidia-container-runtime: {bundle}/config.json: {error}", file=sys.stderr)
            return COULD_NOT
    os.execv(real, [real, *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
