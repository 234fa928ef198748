"""How many NVIDIA GPUs hang on the PCI bus: a GPU that fell off NVML's list may still be there, or not (facts 3.8)."""

from pathlib import Path
from typing import Final

from steps.contracts.document import Sample

_NVIDIA: Final = "0x10de"
_DISPLAY_CLASS: Final = "0x03"


def pci_gpu_count(devices: Path = Path("/sys/bus/pci/devices")) -> Sample[int]:
    """Devices of NVIDIA's vendor id and display class. Absent if the bus, or one device on it, cannot be read."""
    source = str(devices)
    try:
        found = [path for path in devices.iterdir() if _is_gpu(path)]
    except OSError as error:
        return Sample.absent(f"{source} cannot be read: {error.strerror}", source)
    return Sample.measured(len(found), source)


def _is_gpu(device: Path) -> bool:
    """Raises OSError."""
    if (device / "vendor").read_text(encoding="ascii").strip() != _NVIDIA:
        return False
    return (device / "class").read_text(encoding="ascii").startswith(_DISPLAY_CLASS)
