"""A cluster in which everything moves: pods come and go, nodes fall silent or leave the sweep, shards are cut anew each time,
judges run side by side or in turn, and some run twice. No pod is ever lost, told twice, or called returned while it lives."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

import pytest

from steps.archive.since import departed_of
from steps.contracts.continuity import Continuity, DepartedPod
from steps.contracts.decision import Memory
from steps.contracts.release import ReleaseVerdict
from tests.unit.continuing import Shard, free_node, looked
from tests.unit.judging import NOON, node, pod

NODES = [f"node-{number}" for number in range(8)]
SWEEPS = 14


class Story:
    """alive: node by name of each pod. missing: those that a sweep saw and none has given a last word on. told: last words."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.alive: dict[str, str] = {}
        self.missing: set[str] = set()
        self.told: Counter[str] = Counter()
        self.memories: dict[int, Memory] = {}
        self.born = 0

    def sweep(self, number: int) -> tuple[Sequence[DepartedPod], frozenset[str]]:
        """(what it says of departed pods, who it says is there)."""
        self._move()
        asked = [name for name in NODES if self.dice.random() > 0.1] or NODES
        size = -(-len(asked) // self.dice.choice([1, 1, 2, 5, 8]))
        parts = [asked[start : start + size] for start in range(0, len(asked), size)]
        accounts = list(self._judged(number, parts))
        self.missing |= {uid for uid, where in self.alive.items() if where in asked}
        return departed_of(accounts), frozenset(uid for one in accounts for uid in one.still_there)

    def _move(self) -> None:
        self.alive = {uid: where for uid, where in self.alive.items() if self.dice.random() > 0.25}
        for _ in range(self.dice.randrange(4)):
            self.born += 1
            self.alive[f"pod-{self.born}"] = self.dice.choice(NODES)

    def _judged(self, number: int, parts: Sequence[Sequence[str]]) -> Iterator[Continuity]:
        at_once = dict(self.memories) if self.dice.random() < 0.5 else None
        for shard in self.dice.sample(range(len(parts)), len(parts)):
            made = self._shard(number, shard, parts, self.memories if at_once is None else at_once)
            memory = made.memory()
            if self.dice.random() < 0.2:
                again = made.but(memories={**made.memories, shard: memory})
                assert again.account().continuity == made.account().continuity
                memory = again.memory()
            self.memories[shard] = memory
            yield made.account().continuity

    def _shard(self, number: int, shard: int, parts: Sequence[Sequence[str]], memories: Mapping[int, Memory]) -> Shard:
        now = NOON + number * timedelta(minutes=10)
        silent = {name for name in parts[shard] if self.dice.random() < 0.1}
        return Shard(
            memories=dict(memories),
            nodes=[node(name=name, problem="silent") if name in silent else free_node(name) for name in parts[shard]],
            facts=[looked(name, at=now) for name in parts[shard] if name not in silent],
            pods=[pod(uid.removeprefix("pod-"), where) for uid, where in self.alive.items() if where in parts[shard]],
            shard=shard,
            shards=len(parts),
            run=f"sweep-{number}",
            now=now + timedelta(seconds=shard),
        )


@pytest.mark.parametrize("seed", range(10))
def test_no_pod_is_lost_told_twice_or_called_returned_while_it_lives(seed: int) -> None:
    story = Story(seed)
    for number in range(SWEEPS):
        expected = set(story.missing)
        departed, there = story.sweep(number)
        answered = {one.uid for one in departed}
        assert not answered & there
        assert expected <= answered | there
        for one in departed:
            assert one.answer is not ReleaseVerdict.RETURNED or one.uid not in story.alive, one.sentence
            if not one.remembered:
                story.told[one.uid] += 1
                story.missing.discard(one.uid)
    assert set(story.told.values()) == {1}
