"""From the steps' outside to the experiment's: real parts or the simulator's, as `gpu-reclaim` was told."""

from experiments.zombie.ports import ZombieOutside
from steps.contracts.document import Origin
from steps.contracts.errors import BadInput
from steps.contracts.ports import Outside


def zombie_outside(base: Outside) -> ZombieOutside:
    """Raises BadInput where the base is none that the experiments know."""
    if base.origin is Origin.SIMULATED:
        from sim.zombie.outside import simulated_outside  # noqa: PLC0415 - the shipped image holds no simulator

        return simulated_outside(base)
    from experiments.adapters.real import RealZombieOutside  # noqa: PLC0415
    from steps.adapters.outside import RealOutside  # noqa: PLC0415

    if not isinstance(base, RealOutside):
        raise BadInput(f"the experiments know no outside of type {type(base).__name__}")
    return RealZombieOutside(base)
