"""An outside in memory for the steps decide, publish and archive: fits ports.Outside as far as those ask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from steps.contracts.cluster_facts import OwnerRef, PodFacts, Session, Waiter
from steps.contracts.decision import Decisions, Memory
from steps.contracts.document import Origin, Sample
from steps.contracts.errors import SourceUnavailable
from steps.contracts.policy import Policy
from steps.contracts.ports import (
    AllocationReader,
    GpuNode,
    GpuReader,
    IntentStore,
    OwnerSwitch,
    PodFolderReader,
    ProcessReader,
    ProcessTreeReader,
    Rejected,
    Rejection,
)
from steps.contracts.run_record import RunRecord
from tests.unit.judging import NOON


@dataclass
class FakeClock:
    now_utc: datetime = NOON

    def now(self) -> datetime:
        return self.now_utc

    def sleep(self, seconds: float) -> None:
        self.now_utc += timedelta(seconds=seconds)


@dataclass
class FakeMemory:
    """kept: of shard `shard`. others: of other shards, which no test writes. broken: it is there and cannot be read."""

    kept: Memory | None = None
    version: int = 0
    moved_meanwhile: bool = False
    shard: int = 0
    others: Mapping[int, Memory] = field(default_factory=dict)
    broken: bool = False

    def load(self, shard: int) -> tuple[Memory | None, str]:
        if shard != self.shard:
            other = self.others.get(shard)
            return other, "" if other is None else "1"
        if self.broken:
            return None, str(self.version)
        loaded = self.kept, str(self.version) if self.kept is not None else ""
        self.version += self.moved_meanwhile
        return loaded

    def save(self, shard: int, memory: Memory, *, if_version: str) -> Rejected | None:
        if if_version != (str(self.version) if self.kept is not None or self.broken else ""):
            return Rejected(rejection=Rejection.CONFLICT, detail="the object has been modified")
        self.kept, self.version, self.broken = memory, self.version + 1, False
        return None


@dataclass
class FakeDecisions:
    kept: list[Decisions] = field(default_factory=list)

    def keep(self, decisions: Decisions, run_uid: str) -> None:
        self.kept.append(decisions)

    def load(self, run: str, shard: int) -> Decisions | None:
        return next((one for one in self.kept if (one.run, one.shard) == (run, shard)), None)


@dataclass
class FakeRuns:
    """logs: (pod, container) -> text; every other log is gone."""

    record: RunRecord | None = None
    logs: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def read(self, run: str) -> RunRecord:
        if self.record is None:
            raise SourceUnavailable("the API server did not answer within 10 s; run archive again")
        return self.record

    def log(self, pod: str, container: str, limit_bytes: int) -> Sample[str]:
        text = self.logs.get((pod, container))
        return Sample.absent(f"pod {pod} is gone") if text is None else Sample.measured(text[-limit_bytes:])


@dataclass
class FakeCluster:
    """later: pods that come to their node only after so many questions."""

    pods: Sequence[PodFacts] = ()
    waiting: Sequence[Waiter] = ()
    later: Mapping[int, Sequence[PodFacts]] = field(default_factory=dict)
    asked: int = 0
    down: bool = False

    def gpu_nodes(self) -> tuple[GpuNode, ...]:
        return ()

    def sessions(self, policy: Policy, pods: Sequence[PodFacts]) -> tuple[Session, ...]:
        return ()

    def absent_namespaces(self, policy: Policy) -> tuple[str, ...]:
        return ()

    def pods_on(self, nodes: Sequence[str]) -> tuple[PodFacts, ...]:
        if self.down:
            raise SourceUnavailable("the API server did not answer within 10 s")
        self.asked += 1
        come = [pod for since, pods in self.later.items() if self.asked > since for pod in pods]
        return tuple(pod for pod in (*self.pods, *come) if pod.node in nodes)

    def waiters(self, namespaces: Sequence[str] | None) -> tuple[Waiter, ...]:
        return tuple(self.waiting)


@dataclass
class FakeEvents:
    """recorded: (regarded name, reason, note, warning)."""

    refuses: Rejected | None = None
    recorded: list[tuple[str, str, str, bool]] = field(default_factory=list)

    def record(self, regarding: OwnerRef, reason: str, action: str, note: str, *, warning: bool = False) -> Rejected | None:
        self.recorded.append((regarding.name, reason, note, warning))
        return self.refuses


@dataclass
class FakeOutside:
    origin: Origin = Origin.SIMULATED
    environment: Mapping[str, str] = field(default_factory=dict)
    clock: FakeClock = field(default_factory=FakeClock)
    memory_store: FakeMemory = field(default_factory=FakeMemory)
    decision_store: FakeDecisions = field(default_factory=FakeDecisions)
    run_reader: FakeRuns = field(default_factory=FakeRuns)
    cluster_reader: FakeCluster = field(default_factory=FakeCluster)
    event_sink: FakeEvents = field(default_factory=FakeEvents)

    def memory(self) -> FakeMemory:
        return self.memory_store

    def decisions(self) -> FakeDecisions:
        return self.decision_store

    def runs(self) -> FakeRuns:
        return self.run_reader

    def cluster(self) -> FakeCluster:
        return self.cluster_reader

    def events(self) -> FakeEvents:
        return self.event_sink

    def gpus(self) -> GpuReader:
        raise AssertionError("this step has no business with GPUs")

    def processes(self) -> ProcessReader:
        raise AssertionError("this step has no business with processes")

    def allocations(self) -> AllocationReader:
        raise AssertionError("this step has no business with allocations")

    def pods_on_disk(self) -> PodFolderReader:
        raise AssertionError("this step has no business with the kubelet's folders")

    def process_tree(self) -> ProcessTreeReader:
        raise AssertionError("this step has no business with processes")

    def owners(self) -> OwnerSwitch:
        raise AssertionError("only stop may touch an owner")

    def intents(self) -> IntentStore:
        raise AssertionError("only stop may claim")
