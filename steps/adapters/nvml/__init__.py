"""What the NVIDIA driver says of its GPUs, through NVML."""

from steps.adapters.nvml.reader import NvmlReader

__all__ = ["NvmlReader"]
