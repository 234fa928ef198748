"""What the child does that asks NVML: one GpuReading, as JSON.

It is a process of its own because a call into the driver can hang for ever, and because the bindings cache the library
handle: only a fresh process sees a driver that came later (facts 3.1, 3.8). So nothing else may load the library.
"""

from pathlib import Path
from typing import Final

from steps.adapters.clock import SystemClock
from steps.adapters.nvml.pci import pci_gpu_count
from steps.adapters.nvml.scan import failed_reading, read_nvml
from steps.contracts.document import encode
from steps.contracts.ports import GpuReading

LARGEST_PID_MAX: Final = 4_194_304
"""PID_MAX_LIMIT of a 64-bit kernel."""


def ask_nvml() -> bytes:
    """One reading. What NVML refuses is part of it."""
    return encode(_reading())


def _reading() -> GpuReading:
    on_bus = pci_gpu_count()
    try:
        import pynvml  # noqa: PLC0415 - 7,000 lines that only this process needs
    except ModuleNotFoundError:
        return failed_reading("the Python module pynvml is missing: install the package nvidia-ml-py", on_bus)
    return read_nvml(pynvml, SystemClock(), pid_max=_pid_max(), pci_gpu_count=on_bus)


def _pid_max() -> int:
    try:
        return int(Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return LARGEST_PID_MAX
