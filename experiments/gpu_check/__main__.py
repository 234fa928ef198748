"""`make gpu-check`: run every section, print what was found, write one record. Exit 3 if a field differs from the driver's answer.

usage: python -m experiments.gpu_check [--simulated] [--gpu INDEX] [--out FILE]
Without a driver, or with --simulated, the simulated library is built and asked instead, and the record says so.
"""

import argparse
import ctypes
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from experiments.gpu_check import fields, idle, loads, namespaces, release
from experiments.gpu_check.nvml import ask
from experiments.gpu_check.record import CannotRun, GpuCheck, Measure, Section
from experiments.gpu_check.workers import ROOT, Starter
from steps.contracts.document import Origin, encode
from steps.contracts.errors import Exit
from steps.contracts.files import write_atomically

TIME_S: Final = 220.0
"""No section is begun after this; all together stay below four minutes."""
DEFAULT_OUT: Final = ROOT / "build" / "gpu-check.json"
SIMULATOR: Final = "GPU_SIM_DIR"
SIMULATED_GPUS: Final = 2
KILLS: Final = 20
BUILD_S: Final = 120.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="gpu-check", description=str(__doc__).splitlines()[0], allow_abbrev=False)
    parser.add_argument("--simulated", action="store_true", help="ask the simulated library, also beside a real driver")
    parser.add_argument("--gpu", type=int, default=0, metavar="INDEX", help="the GPU to check, as NVML counts; default 0")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help=f"the record; default {DEFAULT_OUT.relative_to(ROOT)}")
    options = parser.parse_args()
    if SIMULATOR not in os.environ and (options.simulated or not _has_driver()):
        return _rehearse(options)
    record = check(options.gpu, simulator=Path(os.environ[SIMULATOR]) if SIMULATOR in os.environ else None)
    write_atomically(options.out, msgspec.json.format(encode(record), indent=2))
    _show(record)
    print(f"written to {options.out}")
    differ = any(measure.note.startswith("DIFFERS") for section in record.sections for measure in section.measures)
    return int(Exit.FOUND_PROBLEMS if differ else Exit.DONE)


def _has_driver() -> bool:
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


def _rehearse(options: argparse.Namespace) -> int:
    """The same check in a process that finds the simulated library: its path counts only at a process's start."""
    print("no figure below is one of a GPU: the simulated library answers", flush=True)
    library = ROOT / "build" / "sim" / "libnvidia-ml.so.1"
    subprocess.run([str(ROOT / "sim" / "nvml" / "build.sh"), str(library)], check=True, timeout=BUILD_S)
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        again = [sys.executable, "-m", "experiments.gpu_check", f"--gpu={options.gpu}", f"--out={options.out}"]
        environment = {**os.environ, SIMULATOR: folder, "LD_LIBRARY_PATH": str(library.parent)}
        state = "from sim.node.state import ordinary_node; from sim.node.state_file import write_state"
        script = f"{state}; import pathlib; write_state(pathlib.Path({folder!r}), ordinary_node({SIMULATED_GPUS}))"
        subprocess.run([sys.executable, "-c", script], check=True, timeout=BUILD_S, cwd=ROOT)
        return subprocess.run(again, env=environment, cwd=ROOT, timeout=2 * TIME_S, check=False).returncode


def check(index: int, *, simulator: Path | None, kills: int = KILLS) -> GpuCheck:
    """All sections, each on its own: one that cannot run says why and ends no other."""
    began = time.monotonic()
    system: dict[str, Any] = _system(index)
    starter = Starter(index=index, uuid=str(system.get("uuid")), simulator=simulator)
    sections: dict[str, Callable[[], tuple[Measure, ...]]] = {
        "collector against driver": lambda: fields.compare(index),
        "idle baseline": lambda: idle.baseline(index),
        "call costs": lambda: idle.costs(index),
        "activity under three loads": lambda: loads.under_load(starter),
        "a forked child that keeps memory": lambda: release.forked_child(starter),
        "process list and PID namespaces": lambda: namespaces.from_both_sides(starter),
        "time from SIGKILL to memory free": lambda: release.after_sigkill(starter, kills),
    }
    return GpuCheck(
        origin=Origin.REAL if simulator is None else Origin.SIMULATED,
        made_at=datetime.now(UTC),
        driver=system.get("driver"),
        nvml=system.get("nvml"),
        cuda=system.get("cuda"),
        model=system.get("model"),
        gpus=system.get("gpus"),
        kernel=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        sections=tuple(_section(name, run, began) for name, run in sections.items()),
        took_s=round(time.monotonic() - began, 1),
    )


def _system(index: int) -> dict[str, Any]:
    """Empty if NVML cannot even be initialised: the sections then say so."""

    def question(nvml: Any) -> dict[str, Any]:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        cuda = nvml.nvmlSystemGetCudaDriverVersion_v2()
        return {
            "driver": nvml.nvmlSystemGetDriverVersion(),
            "nvml": nvml.nvmlSystemGetNVMLVersion(),
            "cuda": f"{cuda // 1000}.{cuda % 1000 // 10}",
            "model": nvml.nvmlDeviceGetName(handle),
            "uuid": nvml.nvmlDeviceGetUUID(handle),
            "gpus": nvml.nvmlDeviceGetCount(),
        }

    try:
        return dict(ask(question))
    except CannotRun:
        return {}


def _section(name: str, run: Callable[[], tuple[Measure, ...]], began: float) -> Section:
    started = time.monotonic()
    reason, measures = None, tuple[Measure, ...]()
    if started - began > TIME_S:
        reason = "the time was up"
    else:
        try:
            measures = run()
        except (CannotRun, subprocess.SubprocessError, OSError) as error:
            reason = str(error)
    return Section(name=name, reason=reason, took_s=round(time.monotonic() - started, 2), measures=measures)


def _show(record: GpuCheck) -> None:
    print(f"{record.model}, driver {record.driver}, {record.kernel}: {record.origin.value}, {record.took_s:g} s")
    for section in record.sections:
        print(f"\n{section.name} ({section.took_s:g} s)" + ("" if section.reason is None else f"\n  NOT RUN: {section.reason}"))
        for one in section.measures:
            value = "-" if one.value is None else f"{one.value} {one.unit}".rstrip()
            print(f"  {one.name}: {value}" + (f"   [{one.note}]" if one.note else ""))


if __name__ == "__main__":
    sys.exit(main())
