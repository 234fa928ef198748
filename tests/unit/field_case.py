"""One field case (tests/cases/README.md) as the classifier's input, and its expectations as comparisons."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from steps.contracts.cluster_facts import ContainerFacts, Phase, PodFacts
from steps.contracts.document import Origin, Sample, Stamp
from steps.contracts.node_facts import (
    Activity,
    Allocation,
    Driver,
    GpuFacts,
    GpuMemory,
    GpuProcess,
    Health,
    Hold,
    HoldVia,
    Layout,
    MemoryAccounting,
    NodeFacts,
    ProcessFacts,
    ProcessKind,
    Scan,
    Visibility,
    VisibilityLevel,
)
from steps.trace.cgroup import parse_line

MIB: Final = 1024 * 1024
NOON: Final = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
NODE: Final = "node-a"
GPU: Final = "GPU-5d1c1a2e-0000-4000-8000-000000000000"
ENOUGH_SAMPLES: Final = 4
SECONDS_A_SAMPLE: Final = 30.0

CASE_KEYS: Final = frozenset(
    ("id", "source", "used_mib", "total_mib", "util", "sm_active", "power_w", "procs", "nvml_only", "api_pods", "expect", "extra")
)
PROCESS_KEYS: Final = frozenset(("pid", "state", "ppid", "fds", "maps", "threads", "exe", "cgroup", "nvml_mib", "nvml_type"))
POD_KEYS: Final = frozenset(("uid", "phase", "deletion_age_s", "grace_s", "config_hash"))
INPUT_KEYS: Final = frozenset(
    [
        "hostpid",
        "caps",
        "eacces",
        "samples",
        "api",
        "reserved_mib",
        "nvml_error",
        "util_error",
        "mig",
        "pstate",
        "gr_per_pod",
        "podresources_claims",
        "event",
        "parent_exe",
        "session_leader_dead",
        "ppid_is",
        "cgroup_is",
        "count",
    ]
)
EXPECTATION_KEYS: Final = frozenset(["also", "not", "holder", "residual_mib", "attribution", "note"])

KINDS: Final = {"C": ProcessKind.COMPUTE, "G": ProcessKind.GRAPHICS, "M": ProcessKind.MPS}
LOST: Final = {15: Health.LOST, 16: Health.RESET_REQUIRED}
NO_PERMISSION: Final = 4
NO_SUCH_FIGURE: Final = (3, 13)
OPERATORS: Final = ("gpu-operator", "kube-system")


class UnknownKey(Exception):
    """The case says something this adapter does not understand."""


@dataclass(frozen=True)
class Input:
    facts: NodeFacts
    pods: tuple[PodFacts, ...]


def input_of(case: Mapping[str, Any]) -> Input:
    """The case as node facts and the API's pods. Raises UnknownKey for any key the schema does not know; a reading that is
    left out is unknown, like null; an input in `extra` that is null is as good as absent."""
    _refuse_unknown("case", case, CASE_KEYS)
    _refuse_unknown("case's extra", case["extra"], INPUT_KEYS | EXPECTATION_KEYS)
    for process in case["procs"]:
        _refuse_unknown("process", process, PROCESS_KEYS)
    for pod in case["api_pods"]:
        _refuse_unknown("pod", pod, POD_KEYS)
    case = {**case, "extra": {key: value for key, value in case["extra"].items() if value is not None}}
    extra = case["extra"]
    samples = extra.get("samples", ENOUGH_SAMPLES)
    facts = NodeFacts(
        stamp=Stamp(made_by="field case", made_at=NOON, origin=Origin.SIMULATED),
        node=NODE,
        boot_id=Sample.measured("boot"),
        scan=Scan.FULL,
        samples=samples,
        span_s=(samples - 1) * SECONDS_A_SAMPLE,
        visibility=_visibility(extra),
        driver=Driver(driver_version=_none(), nvml_version=_none(), cuda_version=_none()),
        gpus=Sample.measured((_gpu(case, samples),)),
        pci_gpu_count=Sample.measured(1),
        allocations=_allocations(case),
        processes=tuple(_process(process, extra, samples) for process in case["procs"]),
        sockets=Sample.absent("no field case tells connections"),
    )
    return Input(facts, tuple(_pod(pod, case["procs"], extra.get("cgroup_is", "")) for pod in case["api_pods"]))


def _refuse_unknown(where: str, given: Mapping[str, Any], known: frozenset[str]) -> None:
    unknown = sorted(set(given) - known)
    if unknown:
        raise UnknownKey(f"the schema of the cases knows no {', '.join(unknown)} in a {where}")


def _none() -> Sample[Any]:
    return Sample.absent("not in the case")


def _visibility(extra: Mapping[str, Any]) -> Visibility:
    reasons = []
    if extra.get("eacces", 0) > 0:
        reasons.append(f"{extra['eacces']} processes could not be read")
    if extra.get("caps", "full") != "full":
        reasons.append(f"capabilities: {extra['caps']}")
    if extra.get("nvml_error", 0) == NO_PERMISSION:
        reasons.append("NVML refused a call: no permission")
    if not extra.get("hostpid", True):
        return Visibility(level=VisibilityLevel.BLIND, reasons=("not in the node's PID namespace",))
    level = VisibilityLevel.PARTIAL if reasons else VisibilityLevel.FULL
    return Visibility(level=level, reasons=tuple(reasons), unreadable_processes=extra.get("eacces", 0))


def _gpu(case: Mapping[str, Any], samples: int) -> GpuFacts:
    extra = case["extra"]
    error = extra.get("nvml_error", 0)
    used, total = _mib(case.get("used_mib"), error), _mib(case.get("total_mib"), 0)
    util_error = extra.get("util_error", 0) or error  # two error codes, no reading: 0 is "no error" in both
    utilisation = _reading(None if case.get("util") is None else case["util"] / 100, util_error)
    if util_error in NO_SUCH_FIGURE:
        utilisation = Sample.absent(f"NVML error {util_error}: the device has no such figure")
    moment = Activity(
        taken_at=NOON,
        used_bytes=used,
        utilisation_ratio=utilisation,
        sm_active_ratio=_reading(case.get("sm_active"), error),
        graphics_active_ratio=_reading(_copied(extra.get("gr_per_pod")), error),
    )
    accounting = MemoryAccounting(extra.get("api", "v2"))
    return GpuFacts(
        uuid=GPU,
        index=0,
        name=_none(),
        minor_number=Sample.measured(0),
        pci_bus_id=_none(),
        health=LOST.get(error, Health.OK if error == 0 else Health.UNKNOWN),
        health_reason=None if error == 0 else f"NVML error {error}",
        memory=GpuMemory(
            accounting=accounting,
            total_bytes=total,
            used_bytes=used,
            free_bytes=_none(),
            reserved_bytes=_mib(extra.get("reserved_mib"), 0),
        ),
        activity=(moment,) * samples,
        process_activity=Sample.absent("no field case tells activity per process"),
        processes=Sample.error(f"NVML error {error}") if error else Sample.measured(_listed(case)),
        process_layout=Layout.PLAUSIBLE,
        power_w=_reading(case.get("power_w"), error),
        energy_j=_none(),
        temperature_c=_none(),
        sm_clock_mhz=_none(),
        performance_state=_none() if "pstate" not in extra else Sample.measured(_pstate(extra["pstate"])),
        persistence_mode=_none(),
        mig_mode=Sample.measured(extra.get("mig", False)),
        mps_active=_none(),
        accounting_mode=_none(),
    )


def _copied(per_pod: list[float] | None) -> float | None:
    """The exporter copies the device's activity to each sharer: one equal figure is the device's, and no pod's own."""
    return per_pod[0] if per_pod and len(set(per_pod)) == 1 else None


def _pstate(value: Any) -> int:
    return int(str(value).removeprefix("P"))


def _mib(value: float | None, error: int) -> Sample[int]:
    return _reading(None if value is None else round(value * MIB), error)


def _reading(value: Any, error: int) -> Sample[Any]:
    if error:
        return Sample.error(f"NVML error {error}")
    return Sample.absent("not available") if value is None else Sample.measured(value)


def _listed(case: Mapping[str, Any]) -> tuple[GpuProcess, ...]:
    own = [(p["pid"], p["nvml_mib"], p.get("nvml_type", "C")) for p in case["procs"] if p.get("nvml_mib") is not None]
    alone = [(p["pid"], p.get("mib"), "C") for p in case.get("nvml_only", ())]
    return tuple(GpuProcess(pid=pid, used_memory_bytes=_mib(mib, 0), kinds=(KINDS[kind],)) for pid, mib, kind in (*own, *alone))


def _allocations(case: Mapping[str, Any]) -> Sample[tuple[Allocation, ...]]:
    """What PodResources names, if the case says so; and the pods of its zombies, which are of this GPU by the schema."""
    shown = case["extra"].get("gr_per_pod", ())
    sharing = [pod["uid"] for pod in case["api_pods"][: len(shown)]] if len(shown) > 1 else None  # a figure each: all have the GPU
    claim = case["extra"].get("podresources_claims", sharing)
    if claim is None:
        return Sample.absent("the case names no allocation")
    zombies = [parse_line(process["cgroup"]).pod_uid for process in case["procs"] if process["state"] == "Z"]
    claims = claim if isinstance(claim, list) else [claim]
    uids = dict.fromkeys([*claims, *(uid for uid in zombies if uid is not None)])
    return Sample.measured(
        tuple(Allocation(device_id=GPU, resource="nvidia.com/gpu", pod_uid=str(uid), container="main") for uid in uids)
    )


def _process(process: Mapping[str, Any], extra: Mapping[str, Any], samples: int) -> ProcessFacts:
    threads: Mapping[str, Mapping[str, Any]] = process.get("threads") or {}
    adopted = bool(extra.get("session_leader_dead", False)) or "ppid_is" in extra
    exe = process.get("exe", "")
    path = exe if exe.startswith("/") else f"/usr/bin/{exe}"
    dead = process["state"] in "ZX"
    in_d = () if dead else tuple(int(number) for number, thread in threads.items() if thread["state"] == "D")
    return ProcessFacts(
        pid=process["pid"],
        start_time_ticks=1000 + process["pid"],
        parent_pid=process.get("ppid", 1),
        process_group=process["pid"],
        session_id=process["pid"],
        state=process["state"],
        name=exe,
        executable=Sample.absent("gone with the process") if dead or not exe else Sample.measured(path),
        command=_none(),
        threads=1 + len(threads),
        cgroup=Sample.measured((process["cgroup"],)),
        holds=_holds(process, threads),
        parent_executable=extra.get("parent_exe"),
        adopted=Sample.measured(True) if adopted else Sample.absent("PPid 1 alone says nothing"),
        samples_in_state=samples,
        threads_in_d=in_d,
        samples_in_d=samples if in_d else 0,
    )


def _holds(process: Mapping[str, Any], threads: Mapping[str, Mapping[str, Any]]) -> tuple[Hold, ...]:
    own = [Hold(device=name, gpu_uuid=_uuid(name), via=HoldVia.DESCRIPTOR) for name in process.get("fds", ())]
    mapped = [Hold(device=name, gpu_uuid=_uuid(name), via=HoldVia.MAPPING) for name in process.get("maps", ())]
    of_threads = [
        Hold(device=name, gpu_uuid=_uuid(name), via=HoldVia.THREAD, thread_id=int(number), thread_state=thread["state"])
        for number, thread in threads.items()
        for name in thread.get("fds", ())
    ]
    return (*own, *mapped, *of_threads)


def _uuid(device: str) -> str | None:
    """The case's GPU for a node that names a GPU; nvidiactl, nvidia-uvm and caps name none."""
    return GPU if device.removeprefix("nvidia").isdecimal() else None


def _pod(pod: Mapping[str, Any], processes: list[Mapping[str, Any]], cgroup_is: str) -> PodFacts:
    """A pod of the API; its statuses list the containers that the case's processes of this pod run in.

    cgroup_is: the case's words for the cgroup; they may call the id in it a sandbox's, or place the pod with the operator's.
    """
    uids = {pod["uid"], pod.get("config_hash")}
    names = [parse_line(process["cgroup"]) for process in processes]
    ids = dict.fromkeys(name.container_id for name in names if name.pod_uid in uids and name.container_id is not None)
    sandbox = "sandbox" in cgroup_is
    age = pod.get("deletion_age_s")
    return PodFacts(
        uid=pod["uid"],
        name=f"pod-{pod['uid'][-4:]}",
        namespace=next((word for word in OPERATORS if word in cgroup_is), "team"),
        node=NODE,
        phase=Phase(pod["phase"]),
        created_at=NOON - timedelta(days=1),
        started_at=NOON - timedelta(days=1),
        deletion_requested_at=None if age is None else NOON - timedelta(seconds=age),
        grace_s=pod.get("grace_s", 30),
        gpus_requested=1,
        containers=() if sandbox else tuple(ContainerFacts(name=f"c{n}", container_ids=(one,)) for n, one in enumerate(ids)),
        sandbox_ids=tuple(ids) if sandbox else (),
        config_hash=pod.get("config_hash"),
    )
