#!/usr/bin/env python3
"""The eight checks of the termination experiment, made inside the container with what a container has: /proc, /dev, libnvidia-ml.

Prints one JSON object. A check that could not be made says why; it is never an empty answer. Standard library only.
"""

import ctypes
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
MAX_PROCESSES = 256
NOT_KNOWN = 2**64 - 1
PID1 = 1


class Memory(ctypes.Structure):
    """nvmlMemory_t: v1 accounting, which every driver has."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class Process(ctypes.Structure):
    """nvmlProcessInfo_t of _v3: 24 bytes."""

    _fields_ = (("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gi", ctypes.c_uint), ("ci", ctypes.c_uint))


def main() -> int:
    tree = process_tree()
    ours = {os.getpid(), os.getppid()}
    devices = holders(tree)
    gpus = ask_nvml()
    print(
        json.dumps(
            {
                "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "pid1": next((one for one in tree if one["pid"] == PID1), None),
                "tree": tree,
                "zombies": [one["pid"] for one in tree if one["state"] == "Z"],
                "orphans": [one["pid"] for one in tree if one["ppid"] == PID1 and one["pid"] not in ours],
                "gpus": gpus,
                "holders": devices,
                "verdicts": [verdict(pid, tree, devices, gpus) for pid in sorted(suspects(tree, devices, gpus) - ours)],
            }
        )
    )
    return 0


def process_tree() -> list[dict[str, Any]]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                found.append(process(entry))
            except OSError:  # it ended while we looked
                continue
    return sorted(found, key=lambda one: one["pid"])


def process(entry: Path) -> dict[str, Any]:
    text = (entry / "stat").read_text(encoding="utf-8", errors="replace")
    after = text[text.rfind(")") + 1 :].split()  # the name may hold anything, so fields count from the LAST bracket
    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    return {
        "pid": int(entry.name),
        "ppid": int(after[1]),
        "state": after[0],
        "name": text[text.find("(") + 1 : text.rfind(")")],
        "command": words[:200],
        "threads": int(after[17]),
    }


def holders(tree: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Who has a GPU's device node open; unreadable is said, not left out."""
    found = []
    for one in tree:
        try:
            links = [str(fd.readlink()) for fd in Path(f"/proc/{one['pid']}/fd").iterdir()]
        except PermissionError:
            if one["state"] != "Z":
                found.append({"pid": one["pid"], "devices": None, "problem": "its descriptors may not be read from here"})
            continue
        except OSError:
            continue
        devices = sorted({link for link in links if link.startswith("/dev/nvidia")})
        if devices:
            found.append({"pid": one["pid"], "devices": devices, "problem": None})
    return found


def ask_nvml() -> dict[str, Any]:
    """Memory and compute processes of every visible GPU. problem: why there is nothing to say."""
    try:
        nvml = ctypes.CDLL(LIBRARY)
        check(nvml.nvmlInitWithFlags(0), "nvmlInit")
    except (OSError, AttributeError, RuntimeError) as error:
        return {"problem": str(error), "gpus": []}
    try:
        count = ctypes.c_uint()
        check(nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)), "count of GPUs")
        return {"problem": None, "gpus": [one_gpu(nvml, index) for index in range(count.value)]}
    except (AttributeError, RuntimeError) as error:
        return {"problem": str(error), "gpus": []}
    finally:
        nvml.nvmlShutdown()


def one_gpu(nvml: Any, index: int) -> dict[str, Any]:
    handle, uuid, memory = ctypes.c_void_p(), ctypes.create_string_buffer(96), Memory()
    check(nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)), "handle")
    check(nvml.nvmlDeviceGetUUID(handle, uuid, 96), "UUID")
    check(nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)), "memory")
    count, entries = ctypes.c_uint(MAX_PROCESSES), (Process * MAX_PROCESSES)()
    check(nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(count), entries), "compute processes")
    listed = [{"pid": one.pid, "used_bytes": None if one.used == NOT_KNOWN else one.used} for one in entries[: count.value]]
    return {"uuid": uuid.value.decode(), "used_bytes": memory.used, "total_bytes": memory.total, "processes": listed}


def check(code: int, what: str) -> None:
    if code != 0:
        raise RuntimeError(f"{what}: NVML error {code}")


def suspects(tree: list[dict[str, Any]], devices: list[dict[str, Any]], gpus: dict[str, Any]) -> set[int]:
    """Workers by their command, holders of a device, zombies, and whatever NVML lists under a PID of this container."""
    here = {one["pid"] for one in tree}
    named = {one["pid"] for one in tree if "gpu_worker" in one["command"] and "parent.py" not in one["command"]}
    listed = {one["pid"] for gpu in gpus["gpus"] for one in gpu["processes"]} & here
    return named | listed | {one["pid"] for one in devices if one["devices"]} | {one["pid"] for one in tree if one["state"] == "Z"}


def verdict(pid: int, tree: list[dict[str, Any]], devices: list[dict[str, Any]], gpus: dict[str, Any]) -> dict[str, Any]:
    """In NVML, holds a device, alive in /proc. in_nvml None: in a container an empty list proves nothing."""
    listed = {one["pid"] for gpu in gpus["gpus"] for one in gpu["processes"]}
    state = next((one["state"] for one in tree if one["pid"] == pid), None)
    return {
        "pid": pid,
        "in_nvml": True if pid in listed else None,
        "holds_device": any(one["pid"] == pid and one["devices"] for one in devices),
        "alive": state is not None and state not in "ZX",
        "state": state,
    }


if __name__ == "__main__":
    sys.exit(main())
