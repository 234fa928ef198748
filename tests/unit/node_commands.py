"""`gpu-reclaim trace` and `observe` called as the command line calls them, over a node that is not there."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from steps.commands import observe, trace
from steps.contracts.cluster_facts import PodFacts
from steps.contracts.errors import Exit
from steps.contracts.node_facts import ProcessFacts, Visibility
from steps.contracts.ports import GpuNode, Outside, ProcessTree, SignalHandling
from tests.unit.fake_nvml import FakeClock
from tests.unit.node_world import FULL, World


@dataclass
class ImpatientClock(FakeClock):
    """Ctrl-C comes in the sleep after so many looks."""

    looks: int = 1
    sleeps: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.sleeps.append(seconds)
        if len(self.sleeps) >= self.looks:
            raise KeyboardInterrupt


@dataclass
class Cluster:
    """first: pods that only the first list has."""

    nodes: Sequence[str]
    pods: Sequence[PodFacts]
    first: Sequence[PodFacts] = ()
    lists: int = 0

    def gpu_nodes(self) -> tuple[GpuNode, ...]:
        return tuple(GpuNode(name=name, gpus=1, ready=True) for name in self.nodes)

    def pods_on(self, nodes: Sequence[str]) -> tuple[PodFacts, ...]:
        self.lists += 1
        return tuple(pod for pod in (*self.pods, *(self.first if self.lists == 1 else ())) if pod.node in nodes)


@dataclass
class NodeWorld(World):
    tree: Sequence[ProcessFacts] = ()
    seen: Visibility = FULL
    pid1: SignalHandling | None = None
    api: Cluster | None = None

    def cluster(self) -> Cluster:
        assert self.api is not None, "nobody asked for the API"
        return self.api

    def process_tree(self) -> "Tree":
        return Tree(self)


@dataclass
class Tree:
    world: NodeWorld

    def read(self) -> ProcessTree:
        everyone = tuple(self.world.tree)
        return ProcessTree(visibility=self.world.seen, processes=everyone, total=len(everyone), pid1=self.world.pid1)


def run(world: World, *words: str) -> Exit:
    """Parse the words as the CLI does and run the command."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    commands = parser.add_subparsers(required=True)
    for module in (trace, observe):
        module.add(commands, lambda: cast("Outside", world))
    arguments = parser.parse_args(words)
    code: Exit = arguments.handler(arguments)
    return code
