"""The allow-list of normal holders: drivers' daemons, exporters, display servers (facts/gpu-and-linux 4.3).

By executable path AND cgroup: a name is free to choose, and a tenant's container may hold any path.
"""

from pathlib import PurePosixPath
from typing import Final

from steps.contracts.node_facts import ProcessFacts
from steps.contracts.traced import Attribution
from steps.trace.attribution import Owner

_FOLDERS: Final = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/libexec", "/usr/lib/xorg", "/bin", "/sbin")
_DAEMONS: Final = frozenset(
    {
        "nvidia-persistenced",
        "nv-hostengine",
        "dcgm-exporter",
        "nvidia-device-plugin",
        "gpu-feature-discovery",
        "nv-fabricmanager",
        "gpud",
    }
)
_TOOLS: Final = frozenset({"nvitop"})
"""Which people start themselves, so in a session of theirs instead of a service."""
_DISPLAYS: Final = frozenset({"Xorg", "X", "Xwayland", "gnome-shell", "kwin_x11", "kwin_wayland"})
_MPS_SERVER: Final = "nvidia-cuda-mps-server"
_NAMESPACES: Final = frozenset(
    {"kube-system", "gpu-operator", "nvidia-gpu-operator", "nvidia-device-plugin", "nvidia-dcgm", "dcgm"}
)


def may_be_system_holder(process: ProcessFacts, owner: Owner) -> bool:
    """Executable, cgroup, namespace or container is not known, and what is known does not rule out the allow-list: then it may not
    be accused."""
    path = process.executable.known()
    doubt = owner.pod_uid is not None and (owner.namespace is None or owner.namespace in _NAMESPACES)
    if path is None:
        return doubt or owner.attribution in (Attribution.HOST, Attribution.UNKNOWN)
    if process.cgroup.known() is None:
        return PurePosixPath(path).name in _DAEMONS | _TOOLS | _DISPLAYS
    return doubt and _is_listed(path, _DAEMONS | _TOOLS)


def is_system_holder(process: ProcessFacts, owner: Owner) -> bool:
    """An executable of the list, started by the host's init or display, or in a pod of the operator's namespaces."""
    path = process.executable.known()
    if path is None:
        return False
    if owner.attribution is Attribution.HOST:
        service = any("/system.slice/" in line for line in process.cgroup.known() or ())
        return _is_listed(path, _DISPLAYS | _TOOLS | _DAEMONS if service else _DISPLAYS | _TOOLS)
    operator = owner.attribution is Attribution.CONTAINER and owner.container is not None and owner.namespace in _NAMESPACES
    return operator and _is_listed(path, _DAEMONS | _TOOLS)


def is_mps_server(process: ProcessFacts) -> bool:
    """By name: no accusation rests on it, only doubt about whose work a figure shows."""
    path = process.executable.known()
    return process.name.startswith(_MPS_SERVER[:15]) or (path is not None and PurePosixPath(path).name == _MPS_SERVER)


def _is_listed(path: str, names: frozenset[str]) -> bool:
    executable = PurePosixPath(path)
    return str(executable.parent) in _FOLDERS and executable.name in names
