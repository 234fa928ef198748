"""The cheapest remedy that can work, in words (facts/gpu-and-linux section 7). People carry it out; gpu-reclaim never does."""

from typing import Final

from steps.contracts.traced import GpuClass

_ONLY_THESE: Final = "never `fuser -k` on the device: it hits the driver's daemons and every tenant"
_BEFORE_RESET: Final = (
    "before a reset no client may be left on that GPU: stop the device plugin, DCGM, its exporter and gpu-reclaim's own collector,"
    " and switch persistence mode off"
)

REMEDY: Final[dict[GpuClass, str]] = {
    GpuClass.IN_GRACE: "wait until the pod's deadline has passed",
    GpuClass.POD_GONE_LIVE: (
        "SIGTERM, then SIGKILL, to exactly the named processes by pidfd, their pod being gone;"
        f" then remove left-over containers and sandboxes through the runtime; {_ONLY_THESE}"
    ),
    GpuClass.ZOMBIE_THREADED: "SIGKILL to the thread group of the named leader: its live threads still take it, the zombie cannot",
    GpuClass.HIDDEN_HOLDER: f"let the owner end exactly the named processes; {_ONLY_THESE}",
    GpuClass.ORPHAN_LIVE: f"let the owner end exactly the named processes, or stop the session; {_ONLY_THESE}",
    GpuClass.STUCK_D: "no more kills, they stay pending: cordon and drain the node, repair or reset that device, else reboot",
    GpuClass.GHOST_CONTEXT: (
        "cordon and drain the node, then reset that GPU; if memory is pinned by an importer of CUDA IPC or dma-buf, also on another"
        f" node, restart that peer first; {_BEFORE_RESET}"
    ),
    GpuClass.STALE_NVML_PID: "none of its own: the process is gone; see the memory it left",
    GpuClass.PHANTOM_UTIL: "no reset: open and close a CUDA context on that GPU; it is free",
    GpuClass.GPU_LOST: "cordon the node, no more kills; reset that GPU if the driver still answers, else reboot",
    GpuClass.ZOMBIE_BENIGN: "restart the container with an init that reaps (tini) or shareProcessNamespace: zombies use up PIDs",
    GpuClass.BLIND: "run the collector with hostPID",
    GpuClass.ABI_MISMATCH: "use bindings that fit the driver, or update the driver (535.54.03 wrote longer entries)",
    GpuClass.LOW_EFFICIENCY: "tell the owner: kernels run, few SMs work; nothing to reclaim",
    GpuClass.IDLE_HOLDER: "stop the session through its owner's own switch, if policy says so",
    GpuClass.ACTIVITY_UNKNOWN: "get a figure: SM activity per MIG instance, or a driver that reports utilisation",
    GpuClass.ACTIVITY_UNKNOWN_SHARED: "get figures per process: the device's figure is copied to every sharer",
}
"""A class that needs none is not in here."""
