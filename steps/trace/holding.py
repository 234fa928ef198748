"""Who holds one GPU: NVML's list joined with descriptors, mappings and threads of /proc (facts/gpu-and-linux 5 and 8.4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from steps.contracts.document import Sample, State
from steps.contracts.node_facts import GpuFacts, GpuProcess, Hold, HoldVia, Layout, NodeFacts, ProcessFacts
from steps.trace.activity import NOT_THERE
from steps.trace.attribution import Owner, PodIndex, attribute
from steps.trace.system_holders import is_system_holder

PID_LIMIT: Final = 4 * 1024 * 1024
"""The kernel's largest possible pid_max; a PID of NVML above it is no PID."""
STUCK_SAMPLES: Final = 3
STUCK_SPAN_S: Final = 60.0
DEAD_STATES: Final = frozenset("ZXx")


@dataclass(frozen=True, slots=True)
class Holding:
    """One live process on one GPU. listed: NVML's entry for it there, None if NVML does not list it or its list is unknown.
    nvml_usable: the list is known and every entry of it tested, so that who is not on it is not listed. holds: its device nodes of
    this GPU. in_d_s: seconds it was watched in uninterruptible sleep."""

    process: ProcessFacts
    owner: Owner
    listed: GpuProcess | None
    nvml_usable: bool
    holds: tuple[Hold, ...]
    system: bool
    in_d_s: float

    @property
    def memory(self) -> Sample[int]:
        """NVML's figure for this process, never a guess."""
        if self.listed is not None:
            return self.listed.used_memory_bytes
        return Sample.absent("NVML does not list this process" if self.nvml_usable else "NVML's process list is not usable")

    @property
    def uninterruptible(self) -> bool:
        """In D, itself, a thread through which it holds the device, or any thread of it: a kill waits for all of them."""
        return is_uninterruptible(self.process) or any(hold.thread_state == "D" for hold in self.holds)

    @property
    def samples_in_d(self) -> int:
        """In how many of the latest looks in a row."""
        return samples_in_d(self.process)

    @property
    def stuck(self) -> bool:
        """In D for 3 samples over 60 s: short D is normal (facts 4.5)."""
        return self.uninterruptible and lasts(self.samples_in_d, self.in_d_s)


@dataclass(frozen=True, slots=True)
class Held:
    """All that was found on one GPU. missing_pids: NVML's entries without a live process. zombies: plain ones that may be of
    this GPU's pods. listed: None if NVML's list could not be read or its layout cannot be trusted. clients: of the node, that have
    only nodes open which name no GPU (facts 4.3), the node's own services left out."""

    holdings: tuple[Holding, ...]
    zombies: tuple[tuple[ProcessFacts, Owner], ...]
    listed: tuple[GpuProcess, ...] | None
    missing_pids: tuple[GpuProcess, ...]
    clients: tuple[ProcessFacts, ...] = ()


def is_uninterruptible(process: ProcessFacts) -> bool:
    """Its leader or a thread of it is in D."""
    return process.state == "D" or bool(process.threads_in_d)


def samples_in_d(process: ProcessFacts) -> int:
    """Of the latest looks in a row: how many saw its leader, or one same thread, in D. A dead leader's threads count as long as it
    was seen dead, for their state is known of the last look alone."""
    return process.samples_in_d if process.threads_in_d and process.state != "D" else process.samples_in_state


def lasts(samples: int, seconds: float) -> bool:
    """3 samples over 60 s."""
    return samples >= STUCK_SAMPLES and seconds >= STUCK_SPAN_S


def is_stuck(process: ProcessFacts, facts: NodeFacts) -> bool:
    """In D for that long."""
    samples = samples_in_d(process)
    return is_uninterruptible(process) and lasts(samples, seconds_of(samples, facts))


def layout_mismatch(gpu: GpuFacts) -> str | None:
    """Why NVML's process list cannot be what the driver meant (facts 3.3), None if it can."""
    if gpu.process_layout is Layout.MISMATCH:
        return "driver and bindings disagree on the size of a process entry"
    total = gpu.memory.total_bytes.known()
    for process in gpu.processes.known() or ():
        if process.pid <= 0 or process.pid > PID_LIMIT:
            return f"NVML lists {process.pid}, which is no process id"
        memory = process.used_memory_bytes.known()
        if memory is not None and total is not None and memory > total:
            return f"NVML says PID {process.pid} uses {memory} of {total} bytes"
    return None


def held_on(gpu: GpuFacts, facts: NodeFacts, owners: Mapping[int, Owner], gpu_pods: frozenset[str] | None) -> Held:
    """Holders of `gpu`: alive in /proc and listed by NVML, or with the device open, mapped, or held by a live thread.

    A plain zombie is never a holder, even if NVML lists it. gpu_pods: uids given this device, None if that is not known.
    """
    listed = _entries(gpu, facts)
    by_pid = {entry.pid: entry for entry in listed or ()}
    usable = listed is not None and all(_is_tested(entry, gpu, facts) for entry in listed)
    holdings = tuple(
        Holding(
            process=process,
            owner=owners[process.pid],
            listed=by_pid.get(process.pid),
            nvml_usable=usable,
            holds=holds,
            system=is_system_holder(process, owners[process.pid]),
            in_d_s=seconds_of(samples_in_d(process), facts),
        )
        for process in facts.processes
        if _may_hold(process, process.pid in by_pid) and ((holds := _holds_on(process, gpu, facts)) or process.pid in by_pid)
    )
    alive = {process.pid for process in facts.processes}
    return Held(
        holdings=holdings,
        zombies=_zombies(facts, owners, by_pid, _pods_here(holdings, gpu_pods)),
        listed=listed,
        missing_pids=tuple(entry for pid, entry in sorted(by_pid.items()) if pid not in alive),
        clients=tuple(one for one in facts.processes if _is_client(one) and not is_system_holder(one, owners[one.pid])),
    )


def _is_client(process: ProcessFacts) -> bool:
    """It has the driver open, and no GPU of it: `nvidiactl`, `nvidia-uvm`, capabilities alone."""
    return bool(process.holds) and not any(hold.device.removeprefix("nvidia").isdecimal() for hold in process.holds)


def owners_of(facts: NodeFacts, pods: PodIndex) -> dict[int, Owner]:
    """The owner of every process of the node, by PID."""
    return {process.pid: attribute(process.cgroup, pods) for process in facts.processes}


def _entries(gpu: GpuFacts, facts: NodeFacts) -> tuple[GpuProcess, ...] | None:
    """NVML's entries for a GPU; a MIG parent's own list has gaps, so those of its instances count for it as well. None where it
    could not be read whether there are instances. Without the device's total no figure can be tested (facts 3.3): none is believed,
    and being unlisted proves nothing."""
    own = gpu.processes.known()
    if own is None or layout_mismatch(gpu) is not None or gpu.mig_mode.state is State.ERROR:
        return None
    instances = [other for other in facts.gpus.known() or () if other.parent_uuid == gpu.uuid]
    if any(other.processes.known() is None for other in instances):
        return None
    merged = {entry.pid: entry for other in instances for entry in other.processes.known() or ()}
    merged.update({entry.pid: entry for entry in own})
    if gpu.memory.total_bytes.known() is None:
        return tuple(_untested(entry) for entry in merged.values())
    return tuple(merged.values())


def _untested(entry: GpuProcess) -> GpuProcess:
    if entry.used_memory_bytes.known() is None:
        return entry
    words = "the device's total memory is not known, so the figure cannot be tested"
    return msgspec.structs.replace(entry, used_memory_bytes=Sample[int].error(words))


def _is_tested(entry: GpuProcess, gpu: GpuFacts, facts: NodeFacts) -> bool:
    """Its layout can be told to be right, as far as the driver gives what tells it: by a figure that the device can hold, or
    because the PID is seen on the device. A figure that the driver does not have tests nothing; one that is lost might have."""
    if entry.used_memory_bytes.known() is not None or entry.used_memory_bytes.state in NOT_THERE:
        return True
    return any(process.pid == entry.pid and _holds_on(process, gpu, facts) for process in facts.processes)


def _holds_on(process: ProcessFacts, gpu: GpuFacts, facts: NodeFacts) -> tuple[Hold, ...]:
    """Nodes of this GPU. A MIG instance has none of its own: the parent's count, unless NVML lists the process elsewhere."""
    own = tuple(hold for hold in process.holds if hold.gpu_uuid == gpu.uuid)
    if own or gpu.parent_uuid is None:
        return own
    siblings = (other for other in facts.gpus.known() or () if other.parent_uuid == gpu.parent_uuid)
    if any(entry.pid == process.pid for other in siblings for entry in other.processes.known() or ()):
        return ()
    return tuple(hold for hold in process.holds if hold.gpu_uuid == gpu.parent_uuid)


def _may_hold(process: ProcessFacts, listed: bool) -> bool:
    """A dead leader holds only through a live thread: one that was found, or one that must exist because NVML lists it."""
    if process.state not in DEAD_STATES:
        return True
    return any(hold.via is HoldVia.THREAD for hold in process.holds) or (listed and process.threads >= 2)


def seconds_of(samples: int, facts: NodeFacts) -> float:
    """Seconds from the first to the last of so many looks in a row."""
    if facts.samples < 2:
        return 0.0
    return facts.span_s * (samples - 1) / (facts.samples - 1)


def _pods_here(holdings: Sequence[Holding], gpu_pods: frozenset[str] | None) -> frozenset[str] | None:
    if gpu_pods is None:
        return None
    return gpu_pods | {holding.owner.pod_uid for holding in holdings if holding.owner.pod_uid is not None}


def _zombies(
    facts: NodeFacts, owners: Mapping[int, Owner], by_pid: Mapping[int, GpuProcess], pods_here: frozenset[str] | None
) -> tuple[tuple[ProcessFacts, Owner], ...]:
    """Plain zombies of this GPU's pods. Where nobody knows whose device it is, or whose zombie, the doubt counts them in."""
    found = []
    for process in facts.processes:
        if process.state not in DEAD_STATES or _may_hold(process, process.pid in by_pid):
            continue
        owner = owners[process.pid]
        lost = owner.pod_uid is None
        mine = pods_here is None or (bool(pods_here) if lost else owner.pod_uid in pods_here)
        if mine or process.pid in by_pid:
            found.append((process, owner))
    return tuple(found)
