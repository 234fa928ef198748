"""Builders for the tests of archive: one run that stopped an idle session, whose GPU came back and went to a waiting pod."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from steps.archive.declaration import STEP
from steps.archive.step import run
from steps.contracts.cluster_facts import ClusterFacts, PodFacts, Waiter
from steps.contracts.decision import Decision, Decisions
from steps.contracts.declaration import Inputs
from steps.contracts.document import Document, Sample, encode
from steps.contracts.errors import Exit
from steps.contracts.node_facts import Driver, NodeFacts, Scan, Visibility, VisibilityLevel
from steps.contracts.parcel import pack
from steps.contracts.release import DeviceRelease, Release, ReleaseVerdict
from steps.contracts.run_record import EvidenceSummary, NodeRecord, RunRecord
from steps.contracts.stop_receipt import Refusal, StopReceipt
from steps.contracts.traced import GpuClass, Traced
from steps.decide.judge import orders_of
from tests.unit.continuing import continuity
from tests.unit.judging import GIB, NOON, Sweep, holder, owner, pod, stamp
from tests.unit.outside_double import FakeCluster, FakeOutside, FakeRuns

STOPPED_AT = NOON + timedelta(seconds=30)
GPU = "GPU-node-a-0"
SHARD = 'sweep-2.shard(0:nodes:["node-a"],shard:0)'
RECLAIM = f'{SHARD}.reclaim(0:decision:d-1,nodes:["node-a"],session_uid:uid-a,shard:0)'


def facts(node: str = "node-a") -> NodeFacts:
    absent = Sample[str].absent("not asked by this test")
    return NodeFacts(
        stamp=stamp("capture"),
        node=node,
        boot_id=Sample.measured("boot"),
        scan=Scan.FULL,
        samples=1,
        span_s=0.0,
        visibility=Visibility(level=VisibilityLevel.FULL),
        driver=Driver(driver_version=absent, nvml_version=absent, cuda_version=absent),
        gpus=Sample.measured(()),
        pci_gpu_count=Sample.measured(0),
        allocations=Sample.measured(()),
        processes=(),
        sockets=Sample.measured(()),
    )


def receipt(*, acted: bool = True, decision: Decision | None = None) -> StopReceipt:
    judged = Sweep().decision() if decision is None else decision
    return StopReceipt(
        stamp=stamp("stop"),
        decision_id=judged.decision_id,
        owner=owner(),
        acted=acted,
        refusal=None if acted else Refusal.SIGN_OF_LIFE,
        sentence="Deployment team/a was scaled from 1 to 0." if acted else "not stopped: pod a-1 has 1 open connection",
        switch="scale",
        replicas_before=1,
        replicas_after=0 if acted else 1,
        acted_at=STOPPED_AT if acted else None,
        pods=judged.pods,
    )


def device(verdict: ReleaseVerdict = ReleaseVerdict.RETURNED, **changes: object) -> DeviceRelease:
    leaked = verdict is ReleaseVerdict.LEAKED
    made = DeviceRelease(
        device=GPU,
        verdict=verdict,
        gpu_class=GpuClass.POD_GONE_LIVE if leaked else GpuClass.BASELINE,
        sentence="pid 4001 outlived its pod and holds 2.0 GiB" if leaked else "all captured processes are gone, 4 MiB used",
        used_before_bytes=Sample.measured(2 * GIB),
        used_after_bytes=Sample.measured(2 * GIB if leaked else 4 * 1024**2),
        last_seen_held=STOPPED_AT + timedelta(seconds=2),
        first_seen_free=None if leaked else STOPPED_AT + timedelta(seconds=3),
        taken_over_by=None,
        holders=(holder(gpu_class=GpuClass.POD_GONE_LIVE),) if leaked else (),
        remedy="SIGTERM, then SIGKILL, to exactly this process" if leaked else None,
    )
    return msgspec.structs.replace(made, **changes)


def release(*devices: DeviceRelease) -> Release:
    found = devices or (device(),)
    return Release(
        stamp=stamp("verify"),
        node="node-a",
        decision_id=Sweep().decision().decision_id,
        pod_uids=("pod-a-1",),
        verdict=found[0].verdict,
        sentence=found[0].sentence,
        devices=found,
        watched_from=STOPPED_AT,
        watched_until=STOPPED_AT + timedelta(seconds=4),
    )


def record_node(
    name: str, template: str, outputs: dict[str, str] | None = None, *, phase: str = "Succeeded", message: str | None = None
) -> NodeRecord:
    return NodeRecord(
        name=name,
        template=template,
        kind="Pod",
        phase=phase,
        message=message,
        started_at=NOON,
        finished_at=NOON + timedelta(seconds=4),
        inputs={},
        outputs=outputs or {},
        pod=f"pod-of-{template}",
    )


def as_text(document: Document) -> str:
    return encode(document).decode()


def as_parcel(document: Document) -> str:
    return pack(document).decode()


def running(
    *extra: NodeRecord, without: Sequence[str] = (), stopped: StopReceipt | None = None, released: Release | None = None
) -> RunRecord:
    """The record of the whole run while onExit writes; `without`: templates that are not in it."""
    nodes = (
        msgspec.structs.replace(record_node("sweep-2", "sweep"), kind="DAG", pod=None),
        record_node("sweep-2.nodes", "nodes", {"shards": '[{"shard":0,"nodes":["node-a"]}]'}),
        record_node(f"{SHARD}.collect(0:node-a)", "collect", {"facts": as_parcel(facts())}),
        record_node(f"{SHARD}.judge", "judge", {"stops": "[]"}),
        msgspec.structs.replace(record_node(f"{SHARD}.judge.decide", "judge"), kind="Container", pod=None),
        msgspec.structs.replace(record_node(f"{SHARD}.judge.main", "judge"), kind="Container", pod=None),
        record_node(f"{RECLAIM}.capture(0:node-a)", "capture", {"facts": as_parcel(facts())}),
        record_node(f"{RECLAIM}.stop", "stop", {"receipt": as_text(stopped or receipt()), "acted": "yes"}),
        record_node(f"{RECLAIM}.verify(0:node-a)", "verify", {"release": as_parcel(released or release())}),
        msgspec.structs.replace(record_node("sweep-2.onExit", "archive", phase="Running"), pod="pod-of-archive"),
    )
    return RunRecord(
        run="sweep-2",
        uid="1111-2222",
        template="sweep",
        phase="Running",
        message=None,
        parameters={"dry-run": "false"},
        started_at=NOON,
        finished_at=None,
        nodes=(*(node for node in nodes if node.template not in without), *extra),
    )


def judged(folder: Path, decisions: Sequence[Decision] | None = None, waiting: Sequence[Waiter] = ()) -> None:
    """What publish left of shard 0."""
    sweep = Sweep(waiters=waiting)
    made = sweep.judge().decisions if decisions is None else tuple(decisions)
    cluster = ClusterFacts(
        stamp=stamp(), nodes=("node-a",), pods=tuple(sweep.pods), sessions=tuple(sweep.sessions), waiters=tuple(waiting)
    )
    shard = folder / "evidence" / "sweep-2" / "shard-0"
    shard.mkdir(parents=True)
    (shard / "facts.json").write_bytes(b"[]")
    (shard / "cluster.json").write_bytes(encode(cluster))
    (shard / "traced.json").write_bytes(encode(Traced(stamp=stamp(), nodes=tuple(sweep.nodes))))
    document = Decisions(stamp=stamp(), run="sweep-2", shard=0, dry_run=False, policy_hash="hash", decisions=tuple(made))
    (shard / "decisions.json").write_bytes(encode(document))
    (shard / "continuity.json").write_bytes(encode(continuity()))
    (shard / "orders.json").write_bytes(msgspec.json.encode(orders_of(made, 0)))


def newcomer(name: str = "b-1", *, started: datetime | None = None, gpus: int = 1) -> PodFacts:
    """A pod that came to node-a after the stop."""
    return pod(name, started=started or STOPPED_AT + timedelta(seconds=5), gpus=gpus)


LOGS = {
    (f"pod-of-{template}", "main"): f"{template} done\n" for template in ("nodes", "collect", "judge", "capture", "stop", "verify")
} | {("pod-of-judge", "decide"): "decide done\n"}


@dataclass
class Archived:
    """An outside to archive from, and the folder that comes of it."""

    folder: Path
    outside: FakeOutside = field(
        default_factory=lambda: FakeOutside(
            run_reader=FakeRuns(running(), dict(LOGS)), cluster_reader=FakeCluster(pods=[newcomer()], waiting=[])
        )
    )

    @property
    def evidence(self) -> Path:
        return self.folder / "evidence" / "sweep-2"

    def archive(self) -> Exit:
        values = {"run": "sweep-2", "evidence": str(self.folder / "evidence")}
        return run(Inputs(STEP, values, {"summary": str(self.folder / "summary")}), self.outside)

    def summary(self) -> EvidenceSummary:
        self.archive()
        return msgspec.json.decode((self.folder / "summary").read_bytes(), type=EvidenceSummary)

    def report(self) -> str:
        self.archive()
        return (self.evidence / "report.html").read_text(encoding="utf-8")
