"""What the activity figures say of three workers whose work is known: memory only, one busy thread, every SM busy."""

import time
from collections.abc import Sequence
from typing import Final

from experiments.gpu_check.fields import collected
from experiments.gpu_check.record import Measure
from experiments.gpu_check.workers import Mode, Starter
from steps.contracts.document import Sample
from steps.contracts.node_facts import GpuFacts

WARM_UP_S: Final = 1.5
LOOKS: Final = 4
BETWEEN_S: Final = 0.5
LOADS: Final[dict[str, Mode]] = {"memory only": "idle", "one thread": "one-thread", "matrix": "matrix"}


def under_load(starter: Starter) -> tuple[Measure, ...]:
    """Utilisation, SM and graphics activity, the process's own share and power: smallest to largest over some looks."""
    measures: list[Measure] = []
    for name, mode in LOADS.items():
        with starter.running(mode) as worker:
            time.sleep(WARM_UP_S)
            looks = [_look(starter.index) for _ in range(LOOKS)]
        measures.extend(_figures(name, looks, worker.pid))
    return tuple(measures)


def _look(index: int) -> GpuFacts:
    gpu = collected(index)
    time.sleep(BETWEEN_S)
    return gpu


def _figures(name: str, looks: Sequence[GpuFacts], pid: int) -> list[Measure]:
    return [
        _range(f"{name}: utilisation", "ratio", [gpu.activity[-1].utilisation_ratio for gpu in looks]),
        _range(f"{name}: SM activity", "ratio", [gpu.activity[-1].sm_active_ratio for gpu in looks]),
        _range(f"{name}: graphics-engine activity", "ratio", [gpu.activity[-1].graphics_active_ratio for gpu in looks]),
        _range(f"{name}: SM share of the process", "ratio", [_share(gpu, pid) for gpu in looks]),
        _range(f"{name}: power", "W", [gpu.power_w for gpu in looks]),
        Measure(name=f"{name}: listed by NVML", value=_is_listed(looks[-1], pid), note=_memory(looks[-1], pid)),
    ]


def _share(gpu: GpuFacts, pid: int) -> Sample[float]:
    """The process's own; absent if the list has no sample of it, which an idle process never has."""
    known = gpu.process_activity.known()
    if known is None:
        return Sample.error(gpu.process_activity.reason or gpu.process_activity.state.value)
    mine = [one.sm_ratio for one in known if one.pid == pid]
    return Sample.measured(mine[0]) if mine else Sample.absent("no sample of this process")


def _range(name: str, unit: str, readings: Sequence[Sample[float]]) -> Measure:
    known = [value for one in readings if (value := one.known()) is not None]
    if not known:
        return Measure(name=name, value=None, unit=unit, note=readings[-1].reason or readings[-1].state.value)
    gaps = f", {len(readings) - len(known)} without" if len(known) < len(readings) else ""
    return Measure(name=name, value=max(known), unit=unit, note=f"{min(known)} to {max(known)} in {len(known)} looks{gaps}")


def _is_listed(gpu: GpuFacts, pid: int) -> bool | None:
    known = gpu.processes.known()
    return None if known is None else pid in {one.pid for one in known}


def _memory(gpu: GpuFacts, pid: int) -> str:
    known = gpu.processes.known()
    mine = [] if known is None else [one.used_memory_bytes for one in known if one.pid == pid]
    return f"its memory: {mine[0].known()} B" if mine else f"device used: {gpu.memory.used_bytes.known()} B"
