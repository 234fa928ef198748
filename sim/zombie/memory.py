"""How much of a simulated GPU is used: baseline, ghost, and what its processes hold."""

from sim.world.state import SimGpu, SimNode


def used_bytes(node: SimNode, gpu: SimGpu) -> int:
    """Bytes, as NVML's v2 accounting says it."""
    held = sum(one.memory_bytes for one in node.processes if one.gpu_uuid == gpu.uuid)
    return gpu.baseline_bytes + gpu.ghost_bytes + held
