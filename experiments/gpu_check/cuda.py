"""The little of CUDA's driver interface that a worker needs, by ctypes: no toolkit, no PyTorch (which needs this library, too)."""

import ctypes
from collections.abc import Sequence
from typing import Any, Final

from experiments.gpu_check import kernel
from experiments.gpu_check.record import CannotRun

LIBRARY: Final = "libcuda.so.1"
_MULTIPROCESSORS: Final = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
_BLOCKS_A_MULTIPROCESSOR: Final = 16
_THREADS: Final = 256


class Gpu:
    """The primary context of one GPU in this process."""

    def __init__(self, index: int) -> None:
        """Raises CannotRun: no library, or the driver refuses."""
        try:
            self._library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise CannotRun(f"{LIBRARY} cannot be loaded: {error}") from error
        self._device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuInit", ctypes.c_uint(0))
        self._call("cuDeviceGet", ctypes.byref(self._device), ctypes.c_int(index))
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self._call("cuCtxSetCurrent", context)

    def allocate(self, count: int) -> ctypes.c_uint64:
        """So many bytes of device memory, written once so that they are really there."""
        pointer = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(count))
        self._call("cuMemsetD8_v2", pointer, ctypes.c_ubyte(1), ctypes.c_size_t(count))
        self.wait()
        return pointer

    def load(self) -> ctypes.c_void_p:
        """The kernel, compiled by the driver."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        refused = ""
        for target in kernel.TARGETS:
            try:
                self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(kernel.source(target)))
                self._call("cuModuleGetFunction", ctypes.byref(function), module, ctypes.c_char_p(kernel.NAME.encode()))
                return function
            except CannotRun as error:
                refused = str(error)
        raise CannotRun(f"the driver takes the kernel for none of {', '.join(kernel.TARGETS)}: {refused}")

    def multiprocessors(self) -> int:
        count = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(count), ctypes.c_int(_MULTIPROCESSORS), self._device)
        return count.value

    def launch(self, function: ctypes.c_void_p, results: ctypes.c_uint64, rounds: int, *, blocks: int, threads: int) -> None:
        """One launch; `wait` waits for its end."""
        count = ctypes.c_uint(rounds)
        arguments: Sequence[Any] = (results, count)
        pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.cast(ctypes.byref(one), ctypes.c_void_p) for one in arguments))
        shape = [ctypes.c_uint(size) for size in (blocks, 1, 1, threads, 1, 1, 0)]
        self._call("cuLaunchKernel", function, *shape, None, pointers, None)

    def full_grid(self) -> tuple[int, int]:
        """Blocks and threads that keep every SM busy."""
        return self.multiprocessors() * _BLOCKS_A_MULTIPROCESSOR, _THREADS

    def wait(self) -> None:
        self._call("cuCtxSynchronize")

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            words = ctypes.c_char_p()
            self._library.cuGetErrorString(ctypes.c_int(code), ctypes.byref(words))
            said = "" if words.value is None else words.value.decode("ascii", "replace")
            raise CannotRun(f"{name} answered {code} ({said or 'no words for it'})")
