"""Builders for the tests of a stop: one idle Deployment, decided a minute ago, captured just now, over an ApiDouble."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import msgspec

from steps.adapters.kubernetes.digest import judged_digest
from steps.adapters.kubernetes.intents import ConfigMapIntents
from steps.adapters.kubernetes.owners import KubernetesOwners
from steps.contracts.cluster_facts import OwnerRef
from steps.contracts.decision import Decision, Decisions, JudgedPod, Reason, Verdict
from steps.contracts.document import Origin, Sample, Stamp
from steps.contracts.policy import Policy
from steps.contracts.stop_receipt import Intent, Refusal, StopReceipt
from steps.contracts.traced import TracedNode
from steps.decide.policy import policy_hash
from steps.stop.order import Order
from steps.stop.transaction import Transaction
from tests.unit import judging
from tests.unit.api_double import NOON, ApiDouble, FakeClock
from tests.unit.cluster_world import DEPLOYMENT, POLICY, TEAM, cluster, deploy

GPU_RECLAIM = "gpu-reclaim"
POD = f"/api/v1/namespaces/{TEAM}/pods/a-0"
INTENTS = f"/api/v1/namespaces/{GPU_RECLAIM}/configmaps"


def idle_node() -> TracedNode:
    return judging.node(judging.gpu())


def busy_node() -> TracedNode:
    return judging.node(judging.gpu(utilisation=0.9, sm=0.8))


@dataclass
class Scene:
    """An idle session `a` of one replica, decided to be stopped. Change what the test is about, then call `stop`."""

    api: ApiDouble = field(default_factory=cluster)
    nodes: Mapping[str, TracedNode] = field(default_factory=lambda: {"node-a": idle_node()})
    policy: Policy = POLICY
    dry_run: bool = False
    clock: FakeClock = field(default_factory=FakeClock)
    owner: OwnerRef = field(init=False)
    decision: Decision = field(init=False)
    kept: Decisions | None = field(init=False)

    def __post_init__(self) -> None:
        self.owner = deploy(self.api)
        self.decide()

    def decide(self, decision_id: str = "d-1", decided_at: datetime | None = None, **changes: object) -> None:
        """Judge the owner as it is now; `changes` are fields of the Decision. Its own pod in the cluster is the judged one."""
        raw = self.api.objects[DEPLOYMENT]
        made = Decision(
            decision_id=decision_id,
            run="sweep-1",
            decided_at=decided_at or NOON - timedelta(minutes=1),
            owner=self.owner,
            judged_digest=judged_digest(raw, self.policy.opt_out),
            replicas=raw["spec"]["replicas"],
            pods=(judged_pod(),),
            verdict=Verdict.RECLAIM,
            reason=Reason.IDLE,
            sentence="idle for an hour",
            evidence=(),
            idle_since=NOON - timedelta(hours=1),
            eligible_at=NOON - timedelta(minutes=30),
            would_change="work",
            policy_hash=policy_hash(self.policy),
            acts=True,
        )
        self.decision = msgspec.structs.replace(made, **changes)
        self.kept = kept(self.decision)
        if not self.decision.pods:
            self.api.objects.pop(POD, None)
        elif POD in self.api.objects:
            self.api.objects[POD]["metadata"]["uid"] = self.decision.pods[0].uid

    @property
    def order(self) -> Order:
        return Order(
            run="sweep-1",
            shard=0,
            decision_id=self.decision.decision_id,
            dry_run=self.dry_run,
            policy=self.policy,
            now=self.clock.now(),
            origin=Origin.SIMULATED,
        )

    @property
    def intents(self) -> ConfigMapIntents:
        return ConfigMapIntents(self.api, GPU_RECLAIM)

    @property
    def count(self) -> int:
        replicas = self.api.objects[DEPLOYMENT]["spec"]["replicas"]
        assert isinstance(replicas, int)
        return replicas

    def stop(self, **changes: object) -> StopReceipt:
        """One try of the stop; `changes` are fields of the Order."""
        order = replace(self.order, **changes)  # type: ignore[arg-type]
        return Transaction(order, KubernetesOwners(self.api), self.intents, self.clock).run(self.kept, self.nodes)

    def refusal(self, **changes: object) -> Refusal | None:
        receipt = self.stop(**changes)
        assert not receipt.acted
        return receipt.refusal

    def intent(self) -> Intent | None:
        return self.intents.load(self.owner.uid)

    def claim_by(self, decision_id: str, made_at: datetime, replicas_before: int = 1) -> Intent:
        """An Intent that another stop left."""
        made = Intent(
            stamp=Stamp(made_by="stop", made_at=made_at, origin=Origin.SIMULATED),
            decision_id=decision_id,
            owner=self.owner,
            switch="deployments/scale",
            replicas_before=replicas_before,
            replicas_after=0,
            resource_version_seen="1",
        )
        assert self.intents.create(made) is None
        self.api.calls.clear()
        return made


def judged_pod(name: str = "a-1", node: str | None = "node-a", devices: tuple[str, ...] = ("GPU-node-a-0",)) -> JudgedPod:
    return JudgedPod(uid=f"pod-{name}", name=name, node=node, grace_s=20, devices=Sample.measured(devices))


def kept(*decisions: Decision, run: str = "sweep-1", shard: int = 0) -> Decisions:
    return Decisions(
        stamp=Stamp(made_by="decide", made_at=NOON, origin=Origin.SIMULATED),
        run=run,
        shard=shard,
        dry_run=False,
        policy_hash="p",
        decisions=decisions,
    )
