"""How many looks a step takes and how far apart: within its pod's time, or the node would read as silent."""

from steps.contracts.declaration import Inputs
from steps.contracts.errors import BadInput


def pace_of(inputs: Inputs, longest_s: float) -> tuple[int, float]:
    """(looks, seconds between two), from `samples` and `interval-s`. Raises BadInput if they last longer than longest_s."""
    samples, interval_s = inputs.count("samples"), inputs.seconds("interval-s")
    lasts_s = (samples - 1) * interval_s
    if lasts_s > longest_s:
        raise BadInput(
            f"--samples={samples} and --interval-s={interval_s:g} take {lasts_s:g} s, a node's pod has {longest_s:g} s for them; "
            "give fewer or closer looks, for example 3 looks 30 s apart"
        )
    return samples, interval_s
