"""Who watched a departed pod between two sweeps, by the evidence of other runs: release checks, and verify after a sweep's stop.

Read when all else of the run is over. What is not there may be there later: a check writes its evidence at its own end.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from steps.archive.evidence import Reader
from steps.archive.names import RELEASE_CHECK, SESSIONS, checks_of, safe
from steps.contracts.continuity import DepartedPod, Watch
from steps.contracts.release import Release
from steps.contracts.release_check import Answer, ReleaseCheck


def watches_of(root: Path, pods: Sequence[DepartedPod], runs: Iterable[str]) -> tuple[Mapping[str, tuple[Watch, ...]], list[str]]:
    """(watches by pod uid, oldest first; why something could not be read). root: the folder of all evidence. runs: earlier
    sweeps, whose stops verify watched."""
    reader = Reader(root)
    try:
        names = sorted(path.name for path in root.iterdir()) if pods else []
    except OSError as error:
        return {}, [f"the evidence of other runs cannot be listed: {error.strerror}"]
    stops = [(run, release) for run in sorted(set(runs)) if safe(run) == run for release in _releases(root / run, reader)]
    found = {pod.uid: tuple(sorted(_of_pod(pod, names, stops, reader), key=_when)) for pod in pods}
    return found, reader.unreadable


def _of_pod(pod: DepartedPod, names: Sequence[str], stops: Sequence[tuple[str, Release]], reader: Reader) -> Iterator[Watch]:
    for name in names:
        if name.startswith(checks_of(pod.uid)) and "-" not in name.removeprefix(checks_of(pod.uid)):
            yield from _check(name, pod.uid, reader)
    for run, release in stops:
        if release.node == pod.node and pod.uid in release.pod_uids:
            yield Watch(
                run=run,
                step="verify",
                answer=Answer(release.verdict.value),
                sentence=release.sentence,
                watched_from=release.watched_from,
                watched_until=release.watched_until,
            )


def _check(run: str, uid: str, reader: Reader) -> Iterator[Watch]:
    """Nothing if its answer is about another pod: the name is only where to look."""
    check = reader.document(reader.folder / run / RELEASE_CHECK, ReleaseCheck)
    if check is None:
        words = "its evidence holds no answer that can be read: its probe gave none, or it is still being written"
        yield Watch(run=run, step="release-check", answer=None, sentence=words, watched_from=None, watched_until=None)
    elif check.pod.uid == uid:
        yield Watch(
            run=run,
            step="release-check",
            answer=check.answer,
            sentence=check.sentence,
            watched_from=None if check.release is None else check.release.watched_from,
            watched_until=None if check.release is None else check.release.watched_until,
        )


def _releases(folder: Path, reader: Reader) -> tuple[Release, ...]:
    return reader.documents((folder / SESSIONS).glob("*/release-*.json"), Release)


def _when(watch: Watch) -> tuple[str, str]:
    """Those without a time first: they prove nothing."""
    return "" if watch.watched_until is None else watch.watched_until.isoformat(), watch.run
