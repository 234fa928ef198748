"""What one line, or one file, of /proc/<pid>/cgroup names: pod, container, quality of service.

The grammar is facts/gpu-and-linux section 1; every rule here carries its number there. Pure text in, names out: whether such
a pod exists, and whether it really has that container, is asked in `attribution`. No text raises.
"""

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from steps.contracts.traced import Qos


class Role(enum.Enum):
    """What kind of cgroup it is. monitor: the runtime's own process beside the container. none: neither pod nor container."""

    CONTAINER = "container"
    SANDBOX = "sandbox"
    MONITOR = "monitor"
    POD = "pod"
    NONE = "none"


class Runtime(enum.Enum):
    CONTAINERD = "containerd"
    CRI_O = "cri-o"
    DOCKER = "docker"
    PODMAN = "podman"
    KATA = "kata"
    ECS = "ecs"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CgroupName:
    """What one line names.

    pod_uid: with dashes, or 32 hex for a static pod. container_id: a sandbox's id only where the line has no pod segment.
    sandbox_id: of a sandbox or monitor below a pod. inner_container_id: of a runtime nested in the container.
    outer_pod_uid: another pod's segment further out; kubelets never nest their own pods (facts 2.2).
    deleted: the cgroup is removed. relative: written relative to the reader's cgroup, leading parts may be missing.
    bare: a plain `/`, which a dying process on v1 reads as well. damaged: not a cgroup line at all.
    """

    pod_uid: str | None = None
    container_id: str | None = None
    runtime: Runtime = Runtime.UNKNOWN
    qos: Qos = Qos.NONE
    role: Role = Role.NONE
    sandbox_id: str | None = None
    inner_container_id: str | None = None
    outer_pod_uid: str | None = None
    unified: bool = False
    deleted: bool = False
    relative: bool = False
    bare: bool = False
    damaged: bool = False


_ID = r"[0-9a-f]{64}"
_HEX_GROUPS = r"[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}"
_POD: Final = re.compile(rf"(?P<prefix>(?:.*-)?)pod(?P<uid>{_HEX_GROUPS}|[0-9a-f]{{32}})(?P<slice>\.slice)?", re.DOTALL)
_COLON_FORM: Final = re.compile(rf"(?P<slice>.+\.slice):(?P<prefix>[^:]+):(?P<id>{_ID})", re.DOTALL)
_SCOPE: Final = re.compile(rf"(?P<prefix>cri-containerd|crio|docker|libpod)-(?P<id>{_ID})\.scope")
_CRIO_BARE: Final = re.compile(rf"crio-(?P<id>{_ID})")
_CONMON: Final = re.compile(rf"crio-conmon-(?P<id>{_ID})(?:\.scope)?")
_KATA: Final = re.compile(rf"kata_(?P<id>{_ID})")
_BARE_ID: Final = re.compile(_ID)
_DELETED: Final = " (deleted)"
_LEVELS: Final = {"burstable": Qos.BURSTABLE, "besteffort": Qos.BESTEFFORT}
_RUNTIME_OF: Final = {
    "cri-containerd": Runtime.CONTAINERD,
    "crio": Runtime.CRI_O,
    "docker": Runtime.DOCKER,
    "libpod": Runtime.PODMAN,
}


@lru_cache(maxsize=1024)
def parse_line(line: str) -> CgroupName:
    """The name in one line, `ID:controllers:path`, as read. Anything else comes back with role none and `damaged`.

    Remembered, because collect and trace ask for the same line half a dozen times.
    """
    parts = line.rstrip("\n").split(":", 2)  # rule 1: the path may hold colons
    if len(parts) < 3:
        return CgroupName(damaged=True)
    path = parts[2]
    deleted = path.endswith(_DELETED)
    pieces = path.removesuffix(_DELETED).split("/")
    relative = ".." in pieces
    segments = [s for piece in pieces if piece not in ("", ".", "..") for s in _expanded(piece)]
    found = _with_pod(segments) or _without_pod(segments, relative=relative)
    return replace(
        found,
        unified=parts[0] == "0" and parts[1] == "",
        deleted=deleted,
        relative=relative,
        bare=not segments and not relative,
    )


def _expanded(segment: str) -> tuple[str, ...]:
    """Rule 3: kubelet with the systemd driver over a runtime without it writes two segments as one with colons."""
    match = _COLON_FORM.fullmatch(segment)
    return (segment,) if match is None else (match["slice"], f"{match['prefix']}-{match['id']}.scope")


def _with_pod(segments: Sequence[str]) -> CgroupName | None:
    pods = [(place, match) for place, segment in enumerate(segments) if (match := _POD.fullmatch(segment)) is not None]
    if not pods:
        return None
    place, match = pods[-1]  # rule 4: the innermost
    uid = _canonical(match["uid"])
    outer = [other for _, found in pods[:-1] if (other := _canonical(found["uid"])) != uid]
    scope = segments[pods[-2][0] + 1 : place + 1] if len(pods) > 1 else segments[: place + 1]
    if not any("kubepods" in segment for segment in scope):
        scope = segments[: place + 1]
    below = _below_pod(segments[place + 1 :], in_slice=match["slice"] is not None)
    return replace(below, pod_uid=uid, qos=_qos(match["prefix"], scope), outer_pod_uid=outer[-1] if outer else None)


def _canonical(uid: str) -> str:
    return uid.replace("_", "-")


def _qos(prefix: str, scope: Sequence[str]) -> Qos:
    """Rule 5. scope: the segments up to and including the pod's, from the last outer pod's on if `kubepods` occurs there."""
    for word, level in _LEVELS.items():
        if prefix == f"{word}-" or prefix.endswith(f"-{word}-"):
            return level
    for segment in reversed(scope[:-1]):
        for word, level in _LEVELS.items():
            name = segment.removesuffix(".slice")
            if name == word or name.endswith(f"kubepods-{word}"):  # a host's own `system-burstable.slice` is no level
                return level
    return Qos.GUARANTEED if any("kubepods" in segment for segment in scope) else Qos.UNKNOWN


def _below_pod(below: Sequence[str], *, in_slice: bool) -> CgroupName:  # noqa: PLR0911 - one return a row of table 1.3
    """Rules 6 and 7: only the one segment directly below the pod's counts; the rest belongs to that container."""
    if not below:
        return CgroupName(role=Role.POD)
    head = below[0]
    inner = _inner_id(below[1:])
    if (match := _CONMON.fullmatch(head)) is not None:
        return CgroupName(role=Role.MONITOR, runtime=Runtime.CRI_O, sandbox_id=match["id"])
    if (match := _SCOPE.fullmatch(head)) is not None and match["prefix"] != "libpod":
        runtime = _RUNTIME_OF[match["prefix"]]
        return CgroupName(role=Role.CONTAINER, runtime=runtime, container_id=match["id"], inner_container_id=inner)
    if (match := _CRIO_BARE.fullmatch(head)) is not None:
        if in_slice:
            return CgroupName(role=Role.SANDBOX, runtime=Runtime.CRI_O, sandbox_id=match["id"])
        return CgroupName(role=Role.CONTAINER, runtime=Runtime.CRI_O, container_id=match["id"], inner_container_id=inner)
    if (match := _KATA.fullmatch(head)) is not None:
        return CgroupName(role=Role.SANDBOX, runtime=Runtime.KATA, sandbox_id=match["id"])
    if _BARE_ID.fullmatch(head) is not None:
        return CgroupName(role=Role.CONTAINER, container_id=head, inner_container_id=inner)
    return CgroupName(role=Role.POD)


def _inner_id(deeper: Sequence[str]) -> str | None:
    """The innermost id below the container's own segment: reported apart, never as the container's."""
    for segment in reversed(deeper):
        if (match := _SCOPE.fullmatch(segment)) is not None:
            return match["id"]
        if _BARE_ID.fullmatch(segment) is not None:
            return segment
    return None


def _without_pod(segments: Sequence[str], *, relative: bool) -> CgroupName:
    """Rule 8: the innermost recognisable container, else nothing."""
    for place in range(len(segments) - 1, -1, -1):
        found = _container_at(segments, place)
        if found is not None:
            hidden = relative or found.runtime is Runtime.KATA
            return replace(found, qos=Qos.UNKNOWN if hidden else Qos.NONE)
    return CgroupName(qos=Qos.UNKNOWN if relative else Qos.NONE)


def _container_at(segments: Sequence[str], place: int) -> CgroupName | None:
    segment = segments[place]
    above = segments[place - 1] if place >= 1 else ""
    if (match := _SCOPE.fullmatch(segment)) is not None:
        return CgroupName(role=Role.CONTAINER, runtime=_RUNTIME_OF[match["prefix"]], container_id=match["id"])
    if (match := _KATA.fullmatch(segment)) is not None:
        return CgroupName(role=Role.SANDBOX, runtime=Runtime.KATA, container_id=match["id"])
    if _BARE_ID.fullmatch(segment) is not None and above == "kata_overhead":
        return CgroupName(role=Role.SANDBOX, runtime=Runtime.KATA, container_id=segment)
    if _BARE_ID.fullmatch(segment) is not None and above == "docker":
        return CgroupName(role=Role.CONTAINER, runtime=Runtime.DOCKER, container_id=segment)
    task, dash, number = segment.rpartition("-")
    if place >= 2 and segments[place - 2] == "ecs" and dash and task == above and number.isdecimal():
        return CgroupName(role=Role.CONTAINER, runtime=Runtime.ECS, container_id=segment)
    return None


@dataclass(frozen=True, slots=True)
class CgroupFile:
    """What the lines of one process agree on. conflict: why they do not, in words; then nothing may be attributed.

    host: surely no pod and no container. lost: all that was read is what a dying process on v1 reads (facts 1.7).
    """

    name: CgroupName
    conflict: str | None = None
    host: bool = False
    lost: bool = False


_ORDER: Final = (Role.CONTAINER, Role.SANDBOX, Role.MONITOR, Role.POD, Role.NONE)


def parse_file(lines: Sequence[str]) -> CgroupFile:
    """Rule 9: all lines are parsed; those with role none are no veto; a pod outranks a bare container; two answers conflict."""
    names = [parse_line(line) for line in lines if line.strip()]
    speaking = [name for name in names if name.role is not Role.NONE]
    candidates = [name for name in speaking if name.pod_uid is not None] or speaking
    if not candidates:
        return _nothing_named(names)
    conflict = _disagreement(candidates)
    best = min(candidates, key=lambda name: (_ORDER.index(name.role), not name.unified))
    merged = replace(
        best,
        qos=next((n.qos for n in (best, *candidates) if n.qos is not Qos.UNKNOWN), best.qos),
        runtime=next((n.runtime for n in (best, *candidates) if n.runtime is not Runtime.UNKNOWN), best.runtime),
        outer_pod_uid=next((n.outer_pod_uid for n in candidates if n.outer_pod_uid is not None), None),
        deleted=any(n.deleted for n in candidates),
        relative=any(n.relative for n in candidates),
    )
    return CgroupFile(merged, conflict=conflict)


def _nothing_named(names: Sequence[CgroupName]) -> CgroupFile:
    """No pod, no container. A host process only if a line says where it is; hybrid v1 lines beside a relative one prove nothing."""
    relative = any(name.relative for name in names)
    placed = any(not (name.bare or name.relative or name.damaged) for name in names)
    bare_v1 = any(name.bare and not name.unified for name in names)
    best = next((name for name in names if not name.damaged), CgroupName(damaged=True))
    if relative:
        best = replace(best, relative=True, qos=Qos.UNKNOWN)
    return CgroupFile(best, host=placed and not relative, lost=bare_v1 and not placed and not relative)


def _disagreement(names: Sequence[CgroupName]) -> str | None:
    for what, values in (("pods", {n.pod_uid for n in names}), ("containers", {n.container_id for n in names})):
        named = sorted(value for value in values if value is not None)
        if len(named) > 1:
            return f"the cgroup lines name {len(named)} different {what}: {', '.join(named)}"
    return None
