"""A run's evidence as the report and a terminal show it: what happened in one sentence, then rows. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from steps.archive.evidence import RunEvidence, SessionEvidence
from steps.archive.names import safe, task_of
from steps.archive.shown import RELEASE_TONES, VERDICT_TONES, Shown, as_sentence, say_moment, show
from steps.archive.view_nodes import HolderRow, NodeRow, gpu_names, holder_row, node_rows
from steps.archive.view_since import SinceView, since_view
from steps.contracts.decision import Decision, Evidence, Verdict
from steps.contracts.document import Origin, State
from steps.contracts.release import DeviceRelease, Release, ReleaseVerdict
from steps.contracts.run_record import HandOver
from steps.decide.wording import count_of, say_bytes, say_span


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """taken_at: None where the reading does not say; the document around it does."""

    signal: str
    reading: Shown
    source: str
    taken_at: str | None


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One verdict. outcome: what the stop did, None where none was ordered."""

    name: str
    kind: str
    verdict: Shown
    reason: str
    sentence: str
    would_change: str
    gpus: Shown
    idle_since: str
    outcome: Shown | None
    evidence: tuple[EvidenceRow, ...]


@dataclass(frozen=True, slots=True)
class GivenBackRow:
    """One device of a stopped session: the proof. interval: last seen held and first seen free."""

    session: str
    gpu: str
    uuid: str
    verdict: Shown
    sentence: str
    before: Shown
    after: Shown
    interval: str
    taker: str
    remedy: str | None
    holders: tuple[HolderRow, ...]


@dataclass(frozen=True, slots=True)
class WaiterRow:
    name: str
    gpus: int
    since: str
    words: Shown


@dataclass(frozen=True, slots=True)
class View:
    """Everything the report shows, in its order."""

    run: str
    phase: str
    simulated: bool
    lead: str
    figures: tuple[tuple[str, Shown], ...]
    given_back: tuple[GivenBackRow, ...]
    refusals: tuple[tuple[str, str, str], ...]
    sessions: tuple[SessionRow, ...]
    waiters: tuple[WaiterRow, ...]
    nodes: tuple[NodeRow, ...]
    since: SinceView | None
    missing: tuple[str, ...]
    provenance: tuple[tuple[str, str], ...]
    steps: tuple[tuple[str, Shown, str, str], ...]


def view_of(evidence: RunEvidence) -> View:
    """The view of a run whose summary is at hand; without one, hand-overs and gaps are said to be unknown."""
    given_back = given_back_rows(evidence)
    return View(
        run=evidence.run,
        phase="unknown" if evidence.summary is None else evidence.summary.phase,
        simulated=is_simulated(evidence),
        lead=lead_of(evidence, given_back),
        figures=tuple(_figures(evidence, given_back)),
        given_back=given_back,
        refusals=tuple(_refusals(evidence)),
        sessions=session_rows(evidence),
        waiters=tuple(_waiters(evidence)),
        nodes=node_rows(evidence),
        since=since_view(evidence),
        missing=("the summary of this run",) if evidence.summary is None else evidence.summary.missing,
        provenance=tuple(_provenance(evidence)),
        steps=tuple(_steps(evidence)),
    )


def is_simulated(evidence: RunEvidence) -> bool:
    """True as soon as one document came from the simulator."""
    stamps = [
        part.stamp
        for shard in evidence.shards
        for part in (shard.cluster, shard.traced, shard.decisions, shard.continuity)
        if part is not None
    ]
    stamps.extend(facts.stamp for session in evidence.sessions for facts in session.captures)
    stamps.extend(() if evidence.summary is None else (evidence.summary.stamp,))
    return any(stamp.origin is Origin.SIMULATED for stamp in stamps)


def lead_of(evidence: RunEvidence, given_back: Sequence[GivenBackRow]) -> str:
    """What happened, in one sentence."""
    decisions = evidence.decisions
    if evidence.check is not None:
        pod, answer = evidence.check.pod, evidence.check.answer.value
        return f"Deleted pod {pod.namespace}/{pod.name} on {pod.node}: {answer}. {as_sentence(evidence.check.sentence)}"
    if evidence.is_check:
        return "No probe answered: the deleted pod was on no node and held nothing, or what is missing stands below."
    if not decisions:
        judged = any(shard.decisions is not None for shard in evidence.shards)
        return "No session was found to judge." if judged else "Nothing was judged; what is missing stands below."
    stopped = sum(s.receipt is not None and s.receipt.acted for s in evidence.sessions)
    of_all = f"of {count_of(len(decisions), 'session')}"
    due = sum(decision.verdict is Verdict.RECLAIM for decision in decisions)
    if not stopped:
        if due and not any(decision.acts for decision in decisions):
            return f"Nothing was stopped; {due} {of_all} would have been."
        return f"Nothing was stopped; {count_of(len(decisions), 'session')} judged."
    were = "was" if stopped == 1 else "were"
    back = [row for row in given_back if row.verdict.tone == "good"]
    rest = [row for row in given_back if row.verdict.tone != "good"]
    words = f"{stopped} {of_all} {were} stopped"
    if back:
        words += f", and {count_of(len(back), 'GPU')} came back, proven on the node"
    if rest:
        words += f"; {count_of(len(rest), 'GPU')} did not, or it is not known"
    return f"{words}."


def session_rows(evidence: RunEvidence) -> tuple[SessionRow, ...]:
    """All verdicts, in the order of judgement."""
    sessions = {session.session_uid: session for session in evidence.sessions}
    return tuple(_session(one, sessions.get(safe(one.owner.uid))) for one in evidence.decisions)


def given_back_rows(evidence: RunEvidence) -> tuple[GivenBackRow, ...]:
    """Every device of every stopped session, leaked ones first."""
    names, hand_overs = gpu_names(evidence), {} if evidence.summary is None else _by_device(evidence.summary.hand_overs)
    rows = [
        _given_back(_session_name(session, evidence), release, device, names, hand_overs)
        for session in evidence.sessions
        for release in session.releases
        for device in release.devices
    ]
    order = {"bad": 0, "unknown": 1, "warn": 2, "good": 3}
    return tuple(sorted(rows, key=lambda row: (order[row.verdict.tone], row.session, row.gpu)))


def _by_device(hand_overs: Sequence[HandOver]) -> dict[str, HandOver]:
    return {one.device: one for one in hand_overs}


def _session(decision: Decision, stopped: SessionEvidence | None) -> SessionRow:
    receipt = None if stopped is None else stopped.receipt
    devices = [pod.devices.known() for pod in decision.pods if pod.devices.state is not State.NOT_APPLICABLE]
    gaps = any(found is None for found in devices)
    count = sum(len(found) for found in devices if found is not None)
    return SessionRow(
        name=f"{decision.owner.namespace}/{decision.owner.name}",
        kind=decision.owner.kind,
        verdict=Shown(decision.verdict.value, VERDICT_TONES[decision.verdict]),
        reason=decision.reason.value,
        sentence=as_sentence(decision.sentence),
        would_change=as_sentence(decision.would_change),
        gpus=Shown("unknown: not all of its pods' allocations are known", "unknown") if gaps else Shown(str(count)),
        idle_since="not idle" if decision.idle_since is None else say_moment(decision.idle_since),
        outcome=None if receipt is None else Shown(receipt.sentence, "good" if receipt.acted else "warn"),
        evidence=tuple(_evidence(line) for line in decision.evidence),
    )


def _evidence(line: Evidence) -> EvidenceRow:
    tone = "plain" if line.state in (State.MEASURED, State.NOT_APPLICABLE) else "unknown"
    prefix = "" if line.state is State.MEASURED else f"{line.state.value}: "
    taken = None if line.taken_at is None else say_moment(line.taken_at)
    return EvidenceRow(line.signal, Shown(prefix + line.reading, tone), line.source, taken)


def _given_back(
    session: str, release: Release, device: DeviceRelease, names: dict[str, str], hand_overs: dict[str, HandOver]
) -> GivenBackRow:
    taken = hand_overs.get(device.device)
    free = device.verdict in (ReleaseVerdict.RETURNED, ReleaseVerdict.TAKEN_OVER)
    nobody = "unknown: it was not asked who has it now" if free else "nobody can: it is not proven to be free"
    return GivenBackRow(
        session=session,
        gpu=names.get(device.device, f"a GPU of {release.node}"),
        uuid=device.device,
        verdict=Shown(device.verdict.value, RELEASE_TONES[device.verdict]),
        sentence=device.sentence,
        before=show(device.used_before_bytes, say_bytes),
        after=show(device.used_after_bytes, say_bytes),
        interval=_interval(device),
        taker=nobody if taken is None else taken.sentence,
        remedy=device.remedy,
        holders=tuple(holder_row(holder) for holder in device.holders),
    )


def _interval(device: DeviceRelease) -> str:
    """No single instant is claimed: the memory came back between two looks."""
    held, free = device.last_seen_held, device.first_seen_free
    was_held = "not seen held" if held is None else f"last seen held {say_moment(held)}"
    return f"{was_held}; {'not seen free' if free is None else f'first seen free {say_moment(free)}'}"


def _session_name(session: SessionEvidence, evidence: RunEvidence) -> str:
    owner = None if session.receipt is None else session.receipt.owner
    if owner is None:
        owner = next((d.owner for d in evidence.decisions if safe(d.owner.uid) == session.session_uid), None)
    return f"session {session.session_uid}" if owner is None else f"{owner.namespace}/{owner.name}"


def _refusals(evidence: RunEvidence) -> Iterator[tuple[str, str, str]]:
    """(session, reason, sentence) of stops that did not happen although they were ordered."""
    for session in evidence.sessions:
        if session.receipt is not None and not session.receipt.acted:
            reason = "unknown" if session.receipt.refusal is None else session.receipt.refusal.value
            yield _session_name(session, evidence), reason, session.receipt.sentence


def _figures(evidence: RunEvidence, given_back: Sequence[GivenBackRow]) -> Iterator[tuple[str, Shown]]:
    decisions = evidence.decisions
    unknown = sum(d.verdict is Verdict.UNKNOWN for d in decisions)
    stopped = sum(s.receipt is not None and s.receipt.acted for s in evidence.sessions)
    back = sum(row.verdict.tone == "good" for row in given_back)
    rest = len(given_back) - back
    yield "sessions judged", Shown(str(len(decisions)))
    yield "stopped", Shown(str(stopped), "act" if stopped else "plain")
    yield "GPUs back, proven", Shown(str(back), "good" if back else "plain")
    if rest:
        yield "GPUs not back, or unknown", Shown(str(rest), "bad")
    yield "verdicts unknown", Shown(str(unknown), "unknown" if unknown else "plain")
    yield "gaps in the evidence", _missing_count(evidence)


def _missing_count(evidence: RunEvidence) -> Shown:
    if evidence.summary is None:
        return Shown("unknown", "unknown")
    return Shown(str(len(evidence.summary.missing)), "warn" if evidence.summary.missing else "plain")


def _waiters(evidence: RunEvidence) -> Iterator[WaiterRow]:
    """Each pod once: every shard sees the same queue."""
    waiters = {w.pod_uid: w for shard in evidence.shards if shard.cluster is not None for w in shard.cluster.waiters}
    for waiter in sorted(waiters.values(), key=lambda w: (w.pending_since, w.namespace, w.name)):
        words = show(waiter.message, str)
        yield WaiterRow(f"{waiter.namespace}/{waiter.name}", waiter.gpus_requested, say_moment(waiter.pending_since), words)


def _provenance(evidence: RunEvidence) -> Iterator[tuple[str, str]]:
    record, summary = evidence.record, evidence.summary
    yield "run", evidence.run
    if record is not None:
        yield "workflow", f"{record.template or 'unknown template'} ({record.uid})"
        yield "parameters", ", ".join(f"{name}={value}" for name, value in sorted(record.parameters.items())) or "none"
        yield "started", say_moment(record.started_at)
        yield "steps ended", say_moment(record.finished_at)
    judged = [shard.decisions for shard in evidence.shards if shard.decisions is not None]
    yield "policy", ", ".join(sorted({one.policy_hash for one in judged})) or "unknown: nothing was judged"
    yield "dry run", ", ".join(sorted({"yes" if one.dry_run else "no" for one in judged})) or "unknown: nothing was judged"
    yield "origin of the facts", "simulator" if is_simulated(evidence) else "real parts"
    if summary is not None:
        yield "written", f"{say_moment(summary.stamp.made_at)} by {summary.stamp.made_by}"


def _steps(evidence: RunEvidence) -> Iterator[tuple[str, Shown, str, str]]:
    """(task, phase, duration, message) of every node that ran a pod."""
    tones = {"Succeeded": "good", "Failed": "bad", "Error": "bad"}
    for node in evidence.record.nodes if evidence.record is not None else ():
        if node.pod is None:
            continue
        span = "unknown"
        if node.started_at is not None and node.finished_at is not None:
            span = say_span((node.finished_at - node.started_at).total_seconds())
        yield task_of(node.name), Shown(node.phase, tones.get(node.phase, "plain")), span, node.message or ""
