"""Fast looks at a real node: NVML opened once, and of /proc only what belongs to the pods that are watched.

The full look of `collect` starts a fresh process for NVML and reads every descriptor of the node: right for a verdict, too slow for
several looks a second. A driver that hangs makes this one hang, too; the pod's timeout then ends it.
"""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from experiments.zombie.ports import Glance
from experiments.zombie.recording import WatchedGpu, WatchedProcess
from steps.adapters.kubelet import CheckpointReader
from steps.adapters.nvml.bindings import Bindings, Device, Fault, call
from steps.adapters.nvml.device import read_memory
from steps.adapters.nvml.processes import read_processes
from steps.adapters.procfs.files import GONE, numbers_in, read_if_there
from steps.adapters.procfs.holds import by_descriptor, wanted_numbers
from steps.adapters.procfs.stat import Stat, parse_stat, parse_status
from steps.contracts.errors import SourceUnavailable
from steps.contracts.ports import DeviceNode
from steps.trace.cgroup import parse_line

MAX_DEVICES: Final = 64
YOUNG_TICKS: Final = 200
"""A younger process is asked for its cgroup again: a runtime moves a container's first process after it began."""
LARGEST_PID_MAX: Final = 4_194_304


class Known(NamedTuple):
    """What a process's cgroup said: nothing of a pod, or which pod and container."""

    start_time_ticks: int
    pod_uid: str | None
    container_id: str | None


class NodeGlances:
    """Fits ports.Glances."""

    def __init__(self, nvml: Bindings, checkpoint: Path, devices: Sequence[DeviceNode], proc: Path = Path("/proc")) -> None:
        """nvml: open; close() closes it. devices: the driver's nodes, as the full look found them. Raises SourceUnavailable."""
        self._proc, self._checkpoint = str(proc), checkpoint
        self._nvml = nvml
        self._handles = _handles(self._nvml)
        self._known: dict[int, Known] = {}
        self._seen_at: tuple[int, int] | None = None
        self._given: tuple[tuple[str, str, str], ...] = ()
        self._wanted = wanted_numbers(tuple(one for one in devices if one.gpu_uuid is not None))

    def look(self, pods: Sequence[str]) -> Glance:
        at = datetime.now(UTC)
        gpus: list[WatchedGpu] = []
        listed: dict[int, int | None] = {}
        for uuid, handle in self._handles:
            device = Device(self._nvml, handle)
            memory = read_memory(device)
            lists = read_processes(device, total_bytes=memory.total_bytes.known(), pid_max=LARGEST_PID_MAX)
            known = lists.processes.known()
            problem = None if known is not None else lists.processes.reason or "no reason was given"
            gpus.append(WatchedGpu(uuid=uuid, used_bytes=memory.used_bytes, list_problem=problem))
            listed |= {one.pid: one.used_memory_bytes.known() for one in known or ()}
        unlisted = None if any(gpu.list_problem is not None for gpu in gpus) else False
        processes, given = self._processes(frozenset(pods), listed, unlisted), self._allocations()
        return Glance(at=at, done_at=datetime.now(UTC), gpus=tuple(gpus), processes=processes, given=given)

    def close(self) -> None:
        self._nvml.nvmlShutdown()

    def _processes(self, pods: frozenset[str], listed: dict[int, int | None], unlisted: bool | None) -> tuple[WatchedProcess, ...]:
        """unlisted: what it says of a process that it is in no list that was read."""
        try:
            pids = numbers_in(self._proc)
        except OSError as error:
            raise SourceUnavailable(f"{self._proc} cannot be listed: {error.strerror}; run this where /proc is mounted") from error
        now_ticks = int(float(Path(self._proc, "uptime").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_CLK_TCK"))
        self._known = {pid: known for pid, known in self._known.items() if pid in set(pids)}
        found = (self._process(pid, pods, listed, now_ticks) for pid in pids)
        seen = (one for one in found if one is not None)
        return tuple(one if one.in_nvml else msgspec.structs.replace(one, in_nvml=unlisted) for one in seen)

    def _process(self, pid: int, pods: frozenset[str], listed: dict[int, int | None], now_ticks: int) -> WatchedProcess | None:
        known = self._known.get(pid)
        if known is not None and known.pod_uid is None and pid not in listed:
            return None  # belongs to no pod, as seen when it was no longer young
        stat = self._stat(pid)
        if stat is None:
            return None
        if known is None or known.start_time_ticks != stat.start_time_ticks:
            known = self._asked(pid, stat, now_ticks)
        if known.pod_uid not in pods and pid not in listed:
            return None
        return WatchedProcess(
            pid=pid,
            start_time_ticks=stat.start_time_ticks,
            parent_pid=stat.parent_pid,
            state=stat.state if stat.state in "DZXT" else "S",  # running or sleeping flickers, and both mean alive
            name=stat.name,
            pid_in_container=self._inner_pid(pid),
            pod_uid=known.pod_uid,
            container_id=known.container_id,
            holds=False if stat.is_zombie and stat.threads <= 1 else self._holds(pid),
            in_nvml=pid in listed,
            nvml_bytes=listed.get(pid),
        )

    def _asked(self, pid: int, stat: Stat, now_ticks: int) -> Known:
        """What its cgroup says; a dying process on v1 says `/`, so what is known of a pod's process is kept."""
        content = read_if_there(f"{self._proc}/{pid}/cgroup") or b""
        names = [parse_line(line) for line in content.decode("utf-8", "replace").splitlines()]
        named = next((one for one in names if one.pod_uid is not None), None)
        known = Known(stat.start_time_ticks, named.pod_uid if named else None, named.container_id if named else None)
        if known.pod_uid is not None or now_ticks - stat.start_time_ticks > YOUNG_TICKS:
            self._known[pid] = known
        return known

    def _stat(self, pid: int) -> Stat | None:
        content = read_if_there(f"{self._proc}/{pid}/stat")
        return None if content is None else parse_stat(content)

    def _inner_pid(self, pid: int) -> int | None:
        content = read_if_there(f"{self._proc}/{pid}/status")
        pids = () if content is None else parse_status(content).namespace_pids
        return pids[-1] if len(pids) > 1 else None

    def _holds(self, pid: int) -> bool | None:
        try:
            return bool(by_descriptor(f"{self._proc}/{pid}", self._wanted).numbers)
        except GONE:
            return False
        except OSError:
            return None

    def _allocations(self) -> tuple[tuple[str, str, str], ...]:
        """Read again only when the kubelet has written."""
        try:
            status = self._checkpoint.stat()
        except OSError:
            return self._given
        seen_at = (status.st_ino, status.st_mtime_ns)
        if seen_at != self._seen_at:
            given: Any = CheckpointReader(self._checkpoint).read().known()
            if given is not None:
                self._given = tuple((one.pod_uid, one.container, one.device_id) for one in given)
                self._seen_at = seen_at
        return self._given


def opened_nvml() -> Bindings:
    """The driver's library, open. Raises SourceUnavailable."""
    try:
        import pynvml  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SourceUnavailable("the Python module pynvml is missing: install the package nvidia-ml-py") from error
    nvml: Bindings = pynvml
    try:
        call(nvml, nvml.nvmlInit)
    except Fault as fault:
        raise SourceUnavailable(f"NVML does not open: {fault}; run this on a GPU node, with the nvidia runtime") from fault
    return nvml


def _handles(nvml: Bindings) -> tuple[tuple[str, Any], ...]:
    try:
        count = min(call(nvml, nvml.nvmlDeviceGetCount), MAX_DEVICES)
        handles = [call(nvml, lambda index=index: nvml.nvmlDeviceGetHandleByIndex(index)) for index in range(count)]  # type: ignore[misc]
        return tuple((call(nvml, lambda handle=handle: nvml.nvmlDeviceGetUUID(handle)), handle) for handle in handles)  # type: ignore[misc]
    except Fault as fault:
        raise SourceUnavailable(f"NVML does not name its GPUs: {fault}; look at the node's driver") from fault
