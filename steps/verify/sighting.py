"""What one look says about one device of a stopped session: still held, unexplained memory, free, taken, or unreadable."""

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from steps.contracts.document import Sample
from steps.contracts.node_facts import GpuFacts, NodeFacts, Scan, VisibilityLevel
from steps.contracts.traced import Attribution, GpuClass, TracedGpu, TracedHolder, TracedNode
from steps.trace.memory import Level, judge_rest, mib
from steps.verify.plan import Device, Identity, Plan


class Seen(enum.Enum):
    """held: a process that must go is alive on it. unexplained: memory without anyone. taken: a new tenant explains it."""

    HELD = "held"
    UNEXPLAINED = "unexplained"
    FREE = "free"
    TAKEN = "taken"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Sighting:
    """One look at one device. own: live holders that must go. taker: uid of the new tenant's pod. final: no further look
    can change it."""

    at: datetime
    used_bytes: Sample[int]
    gpu: TracedGpu | None
    seen: Seen
    sentence: str
    own: tuple[TracedHolder, ...] = ()
    taker: str | None = None
    final: bool = False

    @property
    def released(self) -> bool:
        return self.seen in (Seen.FREE, Seen.TAKEN)

    @property
    def stuck(self) -> bool:
        """Every holder that must go is in uninterruptible sleep: then the class rule of STUCK_D applies."""
        return self.seen is Seen.HELD and all(holder.uninterruptible for holder in self.own)


@dataclass(frozen=True, slots=True)
class Scene:
    """One look at one device: all there is to judge it by. gpu: as trace reads it; raw: as collected; None if not listed."""

    facts: NodeFacts
    plan: Plan
    device: Device
    gpu: TracedGpu | None
    raw: GpuFacts | None


def see(facts: NodeFacts, traced: TracedNode, device: Device, plan: Plan) -> Sighting:
    """The device as `facts` show it. traced: of the same facts, without the API's pod list."""
    gpu = next((one for one in traced.gpus if one.uuid == device.name), None)
    raw = next((one for one in facts.gpus.known() or () if one.uuid == device.name), None)
    used: Sample[int] = Sample.absent("NVML does not list the device") if gpu is None else gpu.used_bytes
    blank = Sighting(facts.stamp.made_at, used, gpu, Seen.UNREADABLE, traced.problem or "NVML does not list it")
    lasting = _never_readable(facts, plan)
    if lasting is not None:
        return replace(blank, sentence=lasting, final=True)
    return blank if gpu is None else _of_listed(blank, Scene(facts, plan, device, gpu, raw), gpu)


def _of_listed(blank: Sighting, scene: Scene, gpu: TracedGpu) -> Sighting:
    own = tuple(holder for holder in gpu.holders if _is_own(holder, scene.device, scene.plan))
    if own:
        return replace(blank, seen=Seen.HELD, sentence=f"still held by {_named(own)}", own=own)
    if scene.raw is None or gpu.headline is GpuClass.GPU_LOST:
        return replace(blank, sentence=gpu.reason)
    return _by_memory(blank, scene, gpu, scene.raw)


def _named(holders: Sequence[TracedHolder]) -> str:
    return ", ".join(f"PID {holder.pid} ({holder.gpu_class.value})" for holder in holders)


def _never_readable(facts: NodeFacts, plan: Plan) -> str | None:
    """Why nothing on this node can prove it any more: a blind reader, or a reboot since the capture."""
    if facts.visibility.level is VisibilityLevel.BLIND:
        return f"the reader does not see the host's processes: {'; '.join(facts.visibility.reasons)}"
    if plan.boot_id is None:
        return None
    before, now = plan.boot_id.known(), facts.boot_id.known()
    if before is not None and now is not None and before != now:
        return "the node has rebooted since the capture (another boot id): its processes are gone, but not by this stop"
    return None


def _is_own(holder: TracedHolder, device: Device, plan: Plan) -> bool:
    if device.before is not None and Identity(holder.pid, holder.start_time_ticks) in device.before.own:
        return True
    return holder.pod_uid in plan.pod_uids


def _by_memory(blank: Sighting, scene: Scene, gpu: TracedGpu, raw: GpuFacts) -> Sighting:
    """Nobody who must go is seen: does the memory say so as well?"""
    rest = judge_rest(raw.memory, raw.memory.used_bytes, _explained(gpu))
    if rest.level is Level.UNKNOWN:
        return replace(blank, sentence=rest.sentence)
    above = rest.level is Level.ABOVE
    doubt = _doubt(scene) or (_doubt_of_leak(scene, gpu, raw) if above else _doubt_of_release(scene, gpu))
    if doubt is not None:
        return replace(blank, sentence=f"{rest.sentence}; {doubt}")
    if above:
        return replace(blank, seen=Seen.UNEXPLAINED, sentence=rest.sentence)
    remark = f" (drift: {rest.sentence})" if rest.level is Level.DRIFT else ""
    taker = _taker(gpu, scene.device, scene.plan)
    if taker is not None:
        words = f"taken by pod {taker}, which explains what is used{remark}"
        return replace(blank, seen=Seen.TAKEN, sentence=words, taker=taker)
    return replace(blank, seen=Seen.FREE, sentence=f"nobody of the session holds it, {_used_words(gpu)}{remark}")


def _used_words(gpu: TracedGpu) -> str:
    used = gpu.used_bytes.known()
    return "used memory is not known" if used is None else f"{mib(used)} used"


def _explained(gpu: TracedGpu) -> Sample[int]:
    """What attributable holders hold: other pods, the host, the node's own services. Strangers explain nothing."""
    total = 0
    for holder in gpu.holders:
        if not holder.known_to_nvml or _is_stranger(holder):
            continue
        memory = holder.gpu_memory_bytes.known()
        if memory is None:
            return Sample.absent(f"NVML gives no memory figure for PID {holder.pid}")
        total += memory
    return Sample.measured(total)


def _is_stranger(holder: TracedHolder) -> bool:
    return holder.attribution in (Attribution.UNKNOWN, Attribution.CONFLICT)


def _strangers(holders: Iterable[TracedHolder]) -> str:
    return ", ".join(str(holder.pid) for holder in holders if _is_stranger(holder))


def _doubt(scene: Scene) -> str | None:
    """Why this look proves nothing either way."""
    if scene.facts.scan is Scan.QUICK:
        return "a quick scan looked for no holders"
    boot_id = scene.plan.boot_id
    if boot_id is not None and (boot_id.known() is None or scene.facts.boot_id.known() is None):
        return "the boot id could not be read, so the captured processes cannot be recognised"
    return None


def _doubt_of_release(scene: Scene, gpu: TracedGpu) -> str | None:
    """Partial visibility alone is no doubt, PID 1 is unreadable on many nodes; more unreadable processes than before are, and so is
    a holder that may be anybody's."""
    strangers = _strangers(holder for holder in gpu.holders if holder.gpu_class is not GpuClass.SYSTEM_HOLDER)
    if strangers:
        return f"PID {strangers} holds it and cannot be attributed"
    now, before = scene.facts.visibility.unreadable_processes, scene.plan.unreadable_before
    if scene.facts.visibility.level is not VisibilityLevel.PARTIAL or before is None or now <= before:
        return None
    return f"{now} processes cannot be read, {before} in the capture: a captured one may be among them"


def _doubt_of_leak(scene: Scene, gpu: TracedGpu, raw: GpuFacts) -> str | None:
    """Memory without a holder is an accusation: every input must be known."""
    strangers = _strangers(gpu.holders)
    if strangers:
        return f"PID {strangers} holds it and cannot be attributed"
    if scene.facts.visibility.level is VisibilityLevel.PARTIAL:
        return f"a holder may be hidden: {'; '.join(scene.facts.visibility.reasons)}"
    listed = raw.processes.known()
    if listed is None or gpu.headline is GpuClass.ABI_MISMATCH:
        return "NVML's process list is not usable"
    nameless = [str(entry.pid) for entry in listed if entry.used_memory_bytes.known() is None]
    return f"NVML gives no memory figure for PID {', '.join(nameless)}" if nameless else None


def _taker(gpu: TracedGpu, device: Device, plan: Plan) -> str | None:
    """The new tenant: a pod that was given the device, or holds memory on it, and did not share it before.

    Descriptors alone make no tenant: an exporter that restarted holds every device.
    """
    before = frozenset[str]() if device.before is None else device.before.tenants
    holding = [holder.pod_uid for holder in gpu.holders if holder.known_to_nvml and not _is_stranger(holder)]
    given = [one.pod_uid for one in gpu.allocated_to.known() or ()]
    for uid in (*holding, *given):
        if uid is not None and uid not in plan.pod_uids and uid not in before:
            return uid
    return None
