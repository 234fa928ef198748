"""The summary line of a run, and what its evidence lacks. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from steps.archive.evidence import RunEvidence, SessionEvidence
from steps.archive.names import CONTINUITY, REPORT, safe
from steps.archive.record import Recorded
from steps.contracts.decision import StopOrder, Verdict
from steps.contracts.document import Sample, Stamp
from steps.contracts.release import ReleaseVerdict
from steps.contracts.run_record import EvidenceSummary, HandOver, RunRecord

ENDED: Final = frozenset({"Succeeded", "Failed", "Error"})


def missing_from(evidence: RunEvidence, recorded: Recorded | None, remarks: Iterable[str]) -> tuple[str, ...]:
    """What should be there and is not, each with its reason. remarks: what the archive itself could not do."""
    found: list[str] = list(remarks)
    if recorded is not None:
        found.extend(recorded.gaps)
        there = {shard.shard for shard in evidence.shards}
        found.extend(f"shard {number}: its judge published nothing" for number in recorded.shards if number not in there)
    if not evidence.is_check and not evidence.shards and (recorded is None or not recorded.shards):
        found.append("no shard was judged: there are no verdicts")
    for shard in evidence.shards:
        parts = (
            ("cluster.json", shard.cluster),
            ("traced.json", shard.traced),
            ("decisions.json", shard.decisions),
            (CONTINUITY, shard.continuity),
        )
        found.extend(f"shard {shard.shard}: {name} is missing or broken" for name, part in parts if part is None)
        for name in shard.cluster.absent_namespaces if shard.cluster is not None else ():
            found.append(
                f"namespace {name} of the policy does not exist, so nobody in it was judged: correct the policy, or create it"
            )
        for order in shard.orders if shard.orders is not None else ():
            found.extend(_gaps_of(order, evidence.sessions))
    found.extend(evidence.unreadable)
    return tuple(dict.fromkeys(found))


def summarise(evidence: RunEvidence, hand_overs: Sequence[HandOver], missing: tuple[str, ...], stamp: Stamp) -> EvidenceSummary:
    """Counts of what the documents say. verdicts and releases name every kind that occurred, and only those."""
    receipts = [session.receipt for session in evidence.sessions if session.receipt is not None]
    devices = [device for session in evidence.sessions for release in session.releases for device in release.devices]
    return EvidenceSummary(
        stamp=stamp,
        run=evidence.run,
        phase="unknown: the run's record could not be read" if evidence.record is None else phase_of(evidence.record),
        sessions_judged=len(evidence.decisions),
        verdicts=_counted((d.verdict for d in evidence.decisions), Verdict),
        stops_acted=sum(receipt.acted for receipt in receipts),
        stops_refused=sum(not receipt.acted for receipt in receipts),
        releases=_counted((device.verdict for device in devices), ReleaseVerdict),
        hand_overs=tuple(hand_overs),
        missing=missing,
        report=Sample.measured(REPORT),
        since=None if evidence.since is None else evidence.since.sentence,
        departed={} if evidence.since is None else _counted((one.pod.answer for one in evidence.since.departed), ReleaseVerdict),
    )


def phase_of(record: RunRecord) -> str:
    """How the run ended. While onExit runs, the engine still calls the run Running; its root node knows better."""
    root = next((node for node in record.nodes if node.name == record.run), None)
    return root.phase if root is not None and root.phase in ENDED else record.phase


def _gaps_of(order: StopOrder, sessions: Sequence[SessionEvidence]) -> Iterator[str]:
    session = next((one for one in sessions if one.session_uid == safe(order.session_uid)), None)
    if session is None or session.receipt is None:
        yield f"session {order.session_uid}: a stop was ordered ({order.decision}) and left no receipt"
        return
    if not session.receipt.acted:
        return
    proven = {release.node for release in session.releases}
    for node in order.nodes:
        if node not in proven:
            yield f"session {order.session_uid}: it was stopped, and nothing says whether the memory on {node} came back"


def _counted(values: Iterable[Verdict] | Iterable[ReleaseVerdict], kinds: type[Verdict] | type[ReleaseVerdict]) -> dict[str, int]:
    """In the order in which the kinds are declared, so that equal evidence gives equal bytes."""
    counts = Counter(value.value for value in values)
    return {kind.value: counts[kind.value] for kind in kinds if counts[kind.value]}
