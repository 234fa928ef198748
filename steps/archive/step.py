"""Step `archive`: what a run left behind becomes one folder that explains it, also when the run failed half way.

Runs in onExit. What cannot be had is listed as missing with its reason. Safe to repeat: files are replaced one by one, an
Event is sent once a run.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from steps.archive.declaration import STEP
from steps.archive.evidence import Reader, RunEvidence, SessionEvidence, load_evidence
from steps.archive.hand_over import freed_of, hand_overs_of, is_settled, nodes_of, only_free_of
from steps.archive.names import (
    CHECKSUMS,
    COLLECTED,
    CONTINUITY,
    LOGS,
    RECEIPT,
    RELEASE_CHECK,
    REPORT,
    RUN_RECORD,
    SESSIONS,
    SINCE,
    SUMMARY,
    safe,
)
from steps.archive.owner_event import note_for, tell
from steps.archive.record import Reclaim, Recorded, containers_of, read_record
from steps.archive.report import render
from steps.archive.since import continuities_of, departed_of, earlier_runs_of, since_of
from steps.archive.summary import missing_from, summarise
from steps.archive.view import is_simulated, view_of
from steps.archive.watches import watches_of
from steps.contracts.continuity import Continuity
from steps.contracts.declaration import Inputs
from steps.contracts.document import Origin, Stamp, encode
from steps.contracts.errors import BadInput, Exit, SourceUnavailable
from steps.contracts.files import is_there, read_limited, write_atomically
from steps.contracts.ports import Outside
from steps.contracts.run_record import EvidenceSummary, HandOver, RunRecord
from steps.logs import log_for

LOG_BYTES: Final = 256 * 1024
"""Of the end of each container's log."""
FILE_BYTES: Final = 256 * 1024 * 1024
LOOKS: Final = 6
LOOK_INTERVAL_S: Final = 2.0
"""How long archive waits for a waiting pod to start on a GPU that came back."""


def run(inputs: Inputs, outside: Outside) -> Exit:
    """Write the evidence of a run. COULD_NOT if the engine's record could not be read: then the rest is written all the same."""
    name = inputs.text("run")
    folder = inputs.path("evidence") / name
    archived_before = is_there(folder / SUMMARY)
    record, remarks = _read_run(outside, name)
    recorded = None
    if record is not None:
        recorded = read_record(record)
        write_atomically(folder / RUN_RECORD, encode(record))
        remarks.extend(_put_documents(folder, recorded))
        _put_checks(folder, recorded)
        remarks.extend(_put_logs(folder, record, outside))
    evidence = _with_since(load_evidence(folder), folder, recorded, outside)
    hand_overs, more = _hand_overs(evidence, outside)
    remarks.extend(more)
    if not archived_before:
        remarks.extend(_tell_owners(evidence.sessions, hand_overs, outside))
    stamp = Stamp(made_by=STEP.name, made_at=outside.clock.now(), origin=_origin(evidence, outside))
    summary = summarise(evidence, hand_overs, missing_from(evidence, recorded, remarks), stamp)
    _put_report(folder, evidence, summary)
    inputs.put("summary", summary)
    log_for(STEP.name).info(
        "archive.written",
        run=name,
        phase=summary.phase,
        stops_acted=summary.stops_acted,
        stops_refused=summary.stops_refused,
        missing=len(summary.missing),
        since=summary.since,
        departed=summary.departed,
    )
    return Exit.DONE if record is not None else Exit.COULD_NOT


def _read_run(outside: Outside, name: str) -> tuple[RunRecord | None, list[str]]:
    try:
        return outside.runs().read(name), []
    except (SourceUnavailable, BadInput) as error:
        return None, [f"the engine's record of the run: {error}"]


def _with_since(evidence: RunEvidence, folder: Path, recorded: Recorded | None, outside: Outside) -> RunEvidence:
    """With the account of the time since earlier sweeps, written anew: an earlier try of this step may have found fewer checks."""
    if evidence.is_check:
        return evidence
    shards = continuities_of(evidence)
    watches, gaps = watches_of(folder.parent, departed_of(shards), earlier_runs_of(shards))
    gaps.extend(_unaccounted(folder.parent, shards, () if recorded is None else recorded.shards))
    stamp = Stamp(made_by=STEP.name, made_at=outside.clock.now(), origin=_origin(evidence, outside))
    since = since_of(evidence.run, shards, watches, gaps, stamp)
    write_atomically(folder / SINCE, encode(since))
    return replace(evidence, since=since)


def _unaccounted(root: Path, shards: Sequence[Continuity], asked: Sequence[int]) -> Iterator[str]:
    """Shards of this run that gave no account, and earlier accounts that were remembered and never published."""
    there = {shard.shard for shard in shards}
    reader = Reader(root)
    for number in asked:
        if number not in there:
            yield f"shard {number} gave no account: what became of the pods that earlier sweeps saw there is not known by this one"
    for shard in shards:
        earlier = shard.earlier_run
        if earlier is None:
            continue
        account = root / safe(earlier) / f"shard-{shard.shard}" / CONTINUITY
        if account not in reader.paths_in(account.parent):
            yield (
                f"shard {shard.shard} remembers run {earlier}, whose account of shard {shard.shard} is not in the evidence: it was "
                "deleted, ended before it published, or had no such shard; which answers it gave is not known"
            )
    yield from reader.unreadable


def _origin(evidence: RunEvidence, outside: Outside) -> Origin:
    return Origin.SIMULATED if is_simulated(evidence) else outside.origin


def _put_documents(folder: Path, recorded: Recorded) -> Iterator[str]:
    """The engine's copies, as files. Facts of nodes whose judge published nothing are kept beside the shards."""
    if not any(folder.glob("shard-*")):
        for facts in recorded.collected:
            write_atomically(folder / COLLECTED / f"{safe(facts.node)}.json", encode(facts))
    for reclaim in recorded.reclaims:
        uid = reclaim.session_uid or _ordered_uid(folder, reclaim)
        if uid is None:
            yield f"{reclaim.where}: its session is not known, so its documents are in run.json only"
            continue
        beside = folder / SESSIONS / safe(uid)
        for captured in reclaim.captures:
            write_atomically(beside / f"capture-{safe(captured.node)}.json", encode(captured))
        if reclaim.receipt is not None:
            write_atomically(beside / RECEIPT, encode(reclaim.receipt))
        for release in reclaim.releases:
            write_atomically(beside / f"release-{safe(release.node)}.json", encode(release))


def _put_checks(folder: Path, recorded: Recorded) -> None:
    """The answer on a deleted pod, and what was watched beside those of stopped sessions, under the pod's uid."""
    for check in recorded.checks:
        write_atomically(folder / RELEASE_CHECK, encode(check))
        if check.release is not None:
            beside = folder / SESSIONS / safe(check.pod.uid)
            write_atomically(beside / f"release-{safe(check.release.node)}.json", encode(check.release))


def _ordered_uid(folder: Path, reclaim: Reclaim) -> str | None:
    """The session of an order, found by its decision id in what the judge published."""
    orders = [order for shard in load_evidence(folder).shards if shard.orders is not None for order in shard.orders]
    return next((order.session_uid for order in orders if order.decision == reclaim.decision), None)


def _put_logs(folder: Path, record: RunRecord, outside: Outside) -> Iterator[str]:
    """A log that is gone now but was written by an earlier try is not missing."""
    for pod, container in containers_of(record, STEP):
        path = folder / LOGS / f"{safe(pod)}.{safe(container)}.log"
        try:
            log = outside.runs().log(pod, container, LOG_BYTES)
        except SourceUnavailable as error:
            yield f"the log of {pod}/{container}: {error}"
            continue
        text = log.known()
        if text is not None:
            write_atomically(path, text.encode())
        elif not is_there(path):
            yield f"the log of {pod}/{container}: {log.reason or log.state.value}"


def _hand_overs(evidence: RunEvidence, outside: Outside) -> tuple[tuple[HandOver, ...], list[str]]:
    """Ask the API who came to the freed GPUs, a few times while somebody still waits or is starting."""
    freed = freed_of(evidence.sessions)
    if not freed:
        return (), []
    only = only_free_of(freed, (shard.traced for shard in evidence.shards if shard.traced is not None))
    own = frozenset(pod.uid for session in evidence.sessions if session.receipt is not None for pod in session.receipt.pods)
    found: tuple[HandOver, ...] = ()
    for look in range(LOOKS):
        try:
            waiters = outside.cluster().waiters(None)
            found = hand_overs_of(freed, outside.cluster().pods_on(tuple(nodes_of(freed))), waiters, own, only)
        except SourceUnavailable as error:
            return found, [f"who got the GPUs that came back: {error}"]
        if is_settled(found, waiters) or look == LOOKS - 1:
            break
        outside.clock.sleep(LOOK_INTERVAL_S)
    return found, []


def _tell_owners(sessions: tuple[SessionEvidence, ...], hand_overs: tuple[HandOver, ...], outside: Outside) -> Iterator[str]:
    for session in sessions:
        note = note_for(session, hand_overs)
        failure = None if note is None else tell(note, outside.events)
        if failure is not None:
            yield failure


def _put_report(folder: Path, evidence: RunEvidence, summary: EvidenceSummary) -> None:
    """Summary, report and checksums, in this order: the checksums cover everything but themselves."""
    whole = replace(evidence, summary=summary)
    write_atomically(folder / SUMMARY, msgspec.json.format(encode(summary), indent=2))
    sums = dict(_checksums(folder))
    sums.pop(REPORT, None)
    write_atomically(folder / REPORT, render(view_of(whole), tuple(sums.items())).encode())
    lines = "".join(f"{digest}  {path}\n" for path, digest in _checksums(folder))
    write_atomically(folder / CHECKSUMS, lines.encode())


def _checksums(folder: Path) -> Iterator[tuple[str, str]]:
    """(path, SHA-256) of every finished file, by path."""
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and name != CHECKSUMS and not path.name.startswith("."):
            yield name, hashlib.sha256(read_limited(path, FILE_BYTES)).hexdigest()
