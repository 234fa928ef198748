"""Who watched a departed pod between two sweeps, by the evidence of other runs: release checks, and verify after a sweep's stop.

Read when all else of the run is over. What is not there may be there later: a check writes its evidence at its own end.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from steps.archive.evidence import Reader
from steps.archive.names import RELEASE_CHECK, SESSIONS, checked_uid, safe
from steps.archive.shown import say_moment
from steps.contracts.continuity import DepartedPod, Watch
from steps.contracts.release import Release
from steps.contracts.release_check import Answer, ReleaseCheck
from steps.decide.recall import MOST_AHEAD

NO_ANSWER: Final = "its evidence holds no answer that can be read: its probe gave none, or it is still being written"


def watches_of(root: Path, pods: Sequence[DepartedPod], runs: Iterable[str]) -> tuple[Mapping[str, tuple[Watch, ...]], list[str]]:
    """(watches by pod uid, oldest first; why something could not be read). root: the folder of all evidence. runs: earlier
    sweeps, whose stops verify watched."""
    reader = Reader(root)
    wanted = {pod.uid for pod in pods}
    try:
        names = sorted(path.name for path in root.iterdir()) if pods else []
    except OSError as error:
        return {}, [f"the evidence of other runs cannot be listed: {error.strerror}"]
    checks: dict[str, list[str]] = {}
    for name in names:
        uid = checked_uid(name)
        if uid in wanted and safe(name) == name:
            checks.setdefault(uid, []).append(name)
    stops: dict[str, list[tuple[str, Release]]] = {}
    for run in sorted({run for run in runs if safe(run) == run}):
        for release in _releases(root / run, reader):
            for uid in release.pod_uids:
                stops.setdefault(uid, []).append((run, release))
    found = {pod.uid: tuple(_of_pod(pod, checks.get(pod.uid, ()), stops.get(pod.uid, ()), reader)) for pod in pods}
    return {uid: tuple(sorted(watches, key=_when)) for uid, watches in found.items()}, reader.unreadable


def _of_pod(pod: DepartedPod, checks: Sequence[str], stops: Sequence[tuple[str, Release]], reader: Reader) -> Iterator[Watch]:
    for name in checks:
        yield from _check(name, pod, reader)
    for run, release in stops:
        if release.node == pod.node:
            answer = Answer(release.verdict.value)
            yield _watch(run, "verify", (answer, release.sentence, release), _doubt(pod, release.watched_until))


def _check(run: str, pod: DepartedPod, reader: Reader) -> Iterator[Watch]:
    """Nothing if its answer is about another pod: the name is only where to look, and anybody who may submit can choose one."""
    check = reader.document(reader.folder / run / RELEASE_CHECK, ReleaseCheck)
    if check is None:
        yield Watch(run=run, step="release-check", answer=None, sentence=NO_ANSWER, watched_from=None, watched_until=None)
    elif check.pod.uid == pod.uid:
        yield _watch(run, "release-check", (check.answer, check.sentence, check.release), _doubt_of_check(pod, check))


def _watch(run: str, step: str, found: tuple[Answer, str, Release | None], doubt: str | None) -> Watch:
    """doubt: why what it found is no answer on this departure."""
    answer, sentence, release = found
    return Watch(
        run=run,
        step=step,
        answer=answer if doubt is None else None,
        sentence=sentence if doubt is None else f"{doubt}; it found: {answer.value}, {sentence}",
        watched_from=None if release is None else release.watched_from,
        watched_until=None if release is None else release.watched_until,
    )


def _doubt_of_check(pod: DepartedPod, check: ReleaseCheck) -> str | None:
    """A free device proves nothing of a pod that was not told to be going: it may have held it later."""
    if check.pod.node != pod.node:
        return f"it looked at {check.pod.node}, and the pod was on {pod.node}"
    if check.pod.deletion_told is False and check.answer is not Answer.STILL_LIVES:
        return "what started it did not say that the pod was being deleted"
    return None if check.release is None else _doubt(pod, check.release.watched_until)


def _doubt(pod: DepartedPod, until: datetime) -> str | None:
    """Its times are those of the node's clock, the pod's those of the judge's."""
    early = until < pod.last_seen_at - MOST_AHEAD
    return f"it ended at {say_moment(until)}, and the pod was seen after that" if early else None


def _releases(folder: Path, reader: Reader) -> tuple[Release, ...]:
    files = [path for session in reader.paths_in(folder / SESSIONS) for path in reader.paths_in(session)]
    return reader.documents((path for path in files if path.name.startswith("release-") and path.suffix == ".json"), Release)


def _when(watch: Watch) -> tuple[str, str]:
    """Those without a time first: they prove nothing."""
    return "" if watch.watched_until is None else watch.watched_until.isoformat(), watch.run
