"""What a worker holds of its GPU: by PyTorch and CUDA, or by the simulated driver's locks. GPU_BACKEND says which."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

MIB = 1 << 20


class Memory(Protocol):
    def allocate(self, mib: int) -> None: ...
    def clean_up(self) -> None:
        """Drop the tensors, empty the cache, synchronise."""


class CudaMemory:
    def __init__(self) -> None:
        import torch  # noqa: PLC0415  # only real GPUs need it, and it takes seconds

        self._torch: Any = torch
        self._tensors: list[Any] = []

    def allocate(self, mib: int) -> None:
        self._tensors.append(self._torch.ones(mib * MIB, dtype=self._torch.uint8, device="cuda"))
        self._torch.cuda.synchronize()

    def clean_up(self) -> None:
        self._tensors.clear()
        self._torch.cuda.empty_cache()
        self._torch.cuda.synchronize()


class SimulatedMemory:
    """The protocol of docs/simulated-gpu.md: a lock on an open file, and the device nodes open as CUDA has them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        from workload import Session, open_devices  # noqa: PLC0415  # lies beside this file in the image

        folder = Path(environ.get("GPU_SIM_DIR") or "/var/lib/gpu-sim")
        uuids = [one for one in environ.get("NVIDIA_VISIBLE_DEVICES", "").split(",") if one]
        self._devices = open_devices(Path("/dev"))
        self._session = Session(folder, uuids, utilisation=0, sm=0)

    def allocate(self, mib: int) -> None:
        self._session.allocate(mib)

    def clean_up(self) -> None:
        self._session.free()


def memory_from(environ: Mapping[str, str] = os.environ) -> Memory:
    """Raises ValueError for a backend that is none, OSError or RuntimeError where the chosen one is not there."""
    backend = environ.get("GPU_BACKEND", "")
    if backend == "cuda":
        return CudaMemory()
    if backend == "simulated":
        return SimulatedMemory(environ)
    raise ValueError(f"GPU_BACKEND is {backend!r}; set it to cuda or simulated")
