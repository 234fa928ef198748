"""Every process that can be seen from here, with its parents, for a person who asks: `gpu-reclaim observe`."""

import signal
from pathlib import Path
from typing import Final

from steps.adapters.procfs.details import process_facts
from steps.adapters.procfs.files import numbers_in, read_if_there
from steps.adapters.procfs.reader import why_blind
from steps.adapters.procfs.stat import parse_signals
from steps.contracts.errors import SourceUnavailable
from steps.contracts.node_facts import Visibility, VisibilityLevel
from steps.contracts.ports import ProcessTree, SignalHandling

MAX_PROCESSES: Final = 4096
"""More are counted and not looked at: a tree of that size tells a person nothing."""


class TreeReader:
    """ProcessTreeReader over a /proc."""

    def __init__(self, root: Path = Path("/proc")) -> None:
        self._root = str(root)

    def read(self) -> ProcessTree:
        """Processes that end while we look are left out."""
        try:
            pids = numbers_in(self._root)
        except OSError as error:
            raise SourceUnavailable(f"{self._root} cannot be listed: {error.strerror}; run this where /proc is mounted") from error
        seen = (process_facts(self._root, pid, ()) for pid in pids[:MAX_PROCESSES])
        blind = why_blind(self._root)
        return ProcessTree(
            visibility=Visibility(
                level=VisibilityLevel.FULL if blind is None else VisibilityLevel.BLIND, reasons=() if blind is None else (blind,)
            ),
            processes=tuple(process for process in seen if process is not None),
            total=len(pids),
            pid1=self._signals_of_pid_1(),
        )

    def _signals_of_pid_1(self) -> SignalHandling | None:
        content = read_if_there(f"{self._root}/1/status")
        masks = None if content is None else parse_signals(content)
        if masks is None:
            return None
        caught, ignored = masks
        return SignalHandling(catches_term=_has(caught, signal.SIGTERM), ignores_child=_has(ignored, signal.SIGCHLD))


def _has(mask: int, number: int) -> bool:
    return bool(mask & 1 << (number - 1))
