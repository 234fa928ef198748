"""Look again and again until every device of the session is decided, or the last moment that could decide one has passed."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from steps.contracts.document import Stamp
from steps.contracts.node_facts import NodeFacts
from steps.contracts.ports import Clock
from steps.contracts.release import DeviceRelease, Release, ReleaseVerdict
from steps.contracts.stop_receipt import StopReceipt
from steps.trace.node import trace_node
from steps.verify.judge import CLASS_RULE_S, judge_release
from steps.verify.plan import Plan, plan_of, pods_here
from steps.verify.sighting import Sighting, see

GRAVITY: Final = (
    ReleaseVerdict.LEAKED,
    ReleaseVerdict.UNKNOWN,
    ReleaseVerdict.PENDING,
    ReleaseVerdict.TAKEN_OVER,
    ReleaseVerdict.RETURNED,
)


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be verified where. capture: of this node, None if none was handed over."""

    receipt: StopReceipt
    node: str
    capture: NodeFacts | None
    interval_s: float


def watch(task: Task, look: Callable[[], NodeFacts], clock: Clock, stamp_of: Callable[[datetime], Stamp]) -> Release:
    """The Release of the session on this node. Raises BadInput for a receipt that gives nothing to verify.

    Ends at the latest when the deadline, and after it the rule of every class, had their time; what is undecided then is
    pending.
    """
    pods = pods_here(task.receipt, task.node)
    first = look()
    plan = plan_of(task.receipt, pods, task.capture, first)
    devices, until = follow(plan, first, look, clock, task.interval_s)
    return Release(
        stamp=stamp_of(clock.now()),
        node=task.node,
        decision_id=task.receipt.decision_id,
        pod_uids=plan.pod_uids,
        verdict=gravest([one.verdict for one in devices]),
        sentence=sentence_of(plan, devices),
        devices=devices,
        watched_from=first.stamp.made_at,
        watched_until=until,
    )


def follow(
    plan: Plan, first: NodeFacts, look: Callable[[], NodeFacts], clock: Clock, interval_s: float, *, at_most_s: float = math.inf
) -> tuple[tuple[DeviceRelease, ...], datetime]:
    """The verdict on each device of the plan, and when the last look was. at_most_s: of the whole watch, whatever is pending."""
    started = first.stamp.made_at
    end = max(plan.deadline, started) + timedelta(seconds=CLASS_RULE_S + 3 * interval_s)
    if (end - started).total_seconds() > at_most_s:
        end = started + timedelta(seconds=at_most_s)
    seen: dict[str, list[Sighting]] = {device.name: [] for device in plan.devices}
    facts = first
    for remaining in range(_most_looks(started, end, interval_s), -1, -1):
        _add(seen, facts, plan)
        devices = tuple(judge_release(device, seen[device.name], plan) for device in plan.devices)
        if all(one.verdict is not ReleaseVerdict.PENDING for one in devices) or clock.now() >= end or remaining == 0:
            return devices, facts.stamp.made_at
        clock.sleep(interval_s)
        facts = look()
    raise AssertionError("the loop returns on its last pass")


def _most_looks(started: datetime, end: datetime, interval_s: float) -> int:
    return math.ceil((end - started).total_seconds() / interval_s) + 1


def _add(seen: dict[str, list[Sighting]], facts: NodeFacts, plan: Plan) -> None:
    traced = trace_node(facts, None, now=facts.stamp.made_at, existing=plan.pod_uids)
    for device in plan.devices:
        seen[device.name].append(see(facts, traced, device, plan))


def gravest(verdicts: Sequence[ReleaseVerdict]) -> ReleaseVerdict:
    """The gravest verdict; unknown if there is no device, because then nothing was proven."""
    return min(verdicts, key=GRAVITY.index, default=ReleaseVerdict.UNKNOWN)


def sentence_of(plan: Plan, devices: Sequence[DeviceRelease]) -> str:
    """What is to be said of all devices together: the gravest ones by name."""
    verdict = gravest([device.verdict for device in devices])
    if not devices:
        words = "which devices the session had is not known: neither decision, capture nor kubelet names one"
    else:
        parts = [f"{device.device}: {device.verdict.value}, {device.sentence}" for device in devices if device.verdict is verdict]
        others = len(devices) - len(parts)
        words = "; ".join(parts) + (f"; {others} more devices are better off" if others else "")
    return words if plan.remark is None else f"{words} ({plan.remark})"
