"""One row of the bench: a ratio, its target, and the setting it holds for."""

import msgspec


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """ratio, holds: None if it could not be measured here; `setting` then says why. Unknown is never zero."""

    name: str
    ratio: float | None
    target: float
    holds: bool | None
    setting: str


def measured(name: str, ratio: float, target: float, setting: str) -> Row:
    """A row with its figure: it holds if the ratio is at most the target."""
    return Row(name=name, ratio=round(ratio, 3), target=target, holds=ratio <= target, setting=setting)


def not_measured(name: str, target: float, why: str) -> Row:
    return Row(name=name, ratio=None, target=target, holds=None, setting=f"not measured: {why}")
