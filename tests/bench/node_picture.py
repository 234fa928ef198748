"""One full node picture as a process of its own, as a person would ask for it: what `collect` sees, joined as `trace` does.

usage: python -m tests.bench.node_picture DEV PODS. Prints a line for each holder on each GPU: PID, class, pod, container.
"""

import os
import sys
from pathlib import Path

import msgspec

from steps.adapters.outside import RealOutside
from steps.adapters.procfs import ProcfsReader
from steps.collect.look import look
from steps.contracts.cluster_facts import PodFacts
from steps.trace.node import trace_node


class Here(RealOutside):
    """The real outside, its device nodes in another folder than /dev."""

    def __init__(self, dev: Path) -> None:
        super().__init__(os.environ)
        self._dev = dev

    def processes(self) -> ProcfsReader:
        return ProcfsReader(dev=self._dev)


def main(dev: str, pods: str) -> int:
    outside = Here(Path(dev))
    facts = look("bench", outside, 1, 0.0)
    node = trace_node(facts, msgspec.json.decode(Path(pods).read_bytes(), type=list[PodFacts]), now=outside.clock.now())
    for gpu in node.gpus:
        for holder in gpu.holders:
            print(holder.pid, holder.gpu_class.value, f"{holder.namespace}/{holder.pod}", holder.container)
    return 0 if node.problem is None else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
