"""Puts looks together: those in a row that saw the same become one stretch, so that minutes of looking fit into a parcel. Pure."""

from collections.abc import Mapping
from typing import Final

import msgspec

from experiments.zombie.ports import Glance
from experiments.zombie.recording import Given, Stretch

ALLOWANCE_BYTES: Final = 64 << 20
"""Used memory this close to what it was before counts as free: drivers keep a little."""


class History:
    """What was seen so far. interval_s is only hoped for; longest_gap_s is what was kept."""

    def __init__(self) -> None:
        self._stretches: list[Stretch] = []
        self._before: dict[tuple[str, str, str], Given] = {}
        self._last: Glance | None = None
        self._given: list[Given] = []
        self.looks = 0
        self.longest_gap_s = 0.0

    def add(self, glance: Glance) -> bool:
        """One look more. True if it saw something material that the look before did not: memory, a holder, a zombie."""
        last, self._last = self._last, glance
        self.looks += 1
        if last is None:
            self._before = {one: Given(at=glance.at, pod_uid=one[0], container=one[1], device=one[2]) for one in glance.given}
        else:
            self.longest_gap_s = max(self.longest_gap_s, (glance.at - last.at).total_seconds())
        self._note_given(glance)
        if last is not None and (last.gpus, last.processes) == (glance.gpus, glance.processes):
            self._prolong(glance)
            return False
        self._stretches.append(
            Stretch(
                first_at=glance.at,
                first_done_at=glance.done_at,
                last_at=glance.at,
                looks=1,
                gpus=glance.gpus,
                processes=glance.processes,
            )
        )
        return last is None or _material(last) != _material(glance)

    @property
    def pods(self) -> tuple[str, ...]:
        """Pods that were given a device since we watch."""
        return tuple(dict.fromkeys(one.pod_uid for one in self._given))

    @property
    def left_over(self) -> bool:
        """More memory is used in the last look than in the first; what cannot be read counts as that."""
        if not self._stretches:
            return False
        first, last = ({gpu.uuid: gpu.used_bytes.known() for gpu in self._stretches[place].gpus} for place in (0, -1))
        return any(used is None or before is None or used > before + ALLOWANCE_BYTES for used, before in _paired(last, first))

    @property
    def given(self) -> tuple[Given, ...]:
        return tuple(self._given)

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        return tuple(self._stretches)

    def _prolong(self, glance: Glance) -> None:
        last = self._stretches[-1]
        self._stretches[-1] = msgspec.structs.replace(last, last_at=glance.at, looks=last.looks + 1)

    def _note_given(self, glance: Glance) -> None:
        """The checkpoint keeps entries of pods that are gone (facts 2.1), so only what is new counts."""
        known = {(one.pod_uid, one.container, one.device) for one in self._given} | set(self._before)
        for one in glance.given:
            if one not in known:
                self._given.append(Given(at=glance.at, pod_uid=one[0], container=one[1], device=one[2]))


def _paired(last: Mapping[str, int | None], first: Mapping[str, int | None]) -> list[tuple[int | None, int | None]]:
    return [(used, first.get(uuid)) for uuid, used in last.items()]


def _material(glance: Glance) -> object:
    held = frozenset(
        (one.pid, one.state) for one in glance.processes if one.in_nvml is not False or one.holds is not False or one.state == "Z"
    )
    return (tuple((gpu.uuid, gpu.used_bytes.value) for gpu in glance.gpus), held)
