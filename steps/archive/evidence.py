"""The evidence folder of one run, read back as documents: what the report, the terminal table and later `explain` rest on."""

import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from steps.archive.names import CONTINUITY, RECEIPT, RELEASE_CHECK, RUN_RECORD, SESSIONS, SINCE, SUMMARY
from steps.contracts.cluster_facts import ClusterFacts
from steps.contracts.continuity import Continuity, Since
from steps.contracts.decision import Decision, Decisions, StopOrder
from steps.contracts.document import MAX_DOCUMENT_BYTES, Document, decode
from steps.contracts.errors import BadInput
from steps.contracts.files import read_limited
from steps.contracts.node_facts import NodeFacts
from steps.contracts.release import Release
from steps.contracts.release_check import ReleaseCheck
from steps.contracts.run_record import EvidenceSummary, RunRecord
from steps.contracts.stop_receipt import StopReceipt
from steps.contracts.traced import Traced

D = TypeVar("D", bound=Document)

RELEASE_CHECK_TEMPLATE: Final = "release-check"


@dataclass(frozen=True, slots=True)
class ShardEvidence:
    """What one judge published. None: the file is missing or broken, and `unreadable` of the run says why."""

    shard: int
    cluster: ClusterFacts | None
    traced: Traced | None
    decisions: Decisions | None
    orders: tuple[StopOrder, ...] | None
    continuity: Continuity | None = None


@dataclass(frozen=True, slots=True)
class SessionEvidence:
    """What happened to one session that was to be stopped. session_uid: name of its folder."""

    session_uid: str
    captures: tuple[NodeFacts, ...]
    receipt: StopReceipt | None
    releases: tuple[Release, ...]


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """check: what became of a deleted pod's devices, where that was what the run was for. since: how a sweep joins earlier ones."""

    run: str
    record: RunRecord | None
    shards: tuple[ShardEvidence, ...]
    sessions: tuple[SessionEvidence, ...]
    summary: EvidenceSummary | None
    unreadable: tuple[str, ...]
    check: ReleaseCheck | None = None
    since: Since | None = None

    @property
    def is_check(self) -> bool:
        """Whether the run was about one deleted pod: then nothing is to be judged."""
        return self.check is not None or (self.record is not None and self.record.template == RELEASE_CHECK_TEMPLATE)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """All verdicts of all shards."""
        return tuple(one for shard in self.shards if shard.decisions is not None for one in shard.decisions.decisions)


class Reader:
    """Reads documents below one folder and collects why one could not be read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.unreadable: list[str] = []

    def document(self, path: Path, kind: type[D]) -> D | None:
        """None without a word if there is no such file: absence is judged elsewhere."""
        content = self._content(path)
        if content is None:
            return None
        try:
            return decode(content, kind, str(path.relative_to(self.folder)))
        except BadInput as error:
            self.unreadable.append(str(error))
            return None

    def documents(self, paths: Iterable[Path], kind: type[D]) -> tuple[D, ...]:
        return tuple(found for path in sorted(paths) if (found := self.document(path, kind)) is not None)

    def paths_in(self, folder: Path) -> list[Path]:
        """What is in a folder, by name; nothing where there is none. Unlike glob, it does not pass over what it may not read."""
        try:
            return sorted(folder.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self.unreadable.append(f"{self._shown(folder)} cannot be listed: {error.strerror}")
            return []

    def orders(self, path: Path) -> tuple[StopOrder, ...] | None:
        content = self._content(path)
        if content is None:
            return None
        try:
            return msgspec.json.decode(content, type=tuple[StopOrder, ...])
        except msgspec.DecodeError as error:
            self.unreadable.append(f"{path.relative_to(self.folder)} is no list of stop orders: {error}")
            return None

    def _content(self, path: Path) -> bytes | None:
        """None without a word if there is no such file. A pipe or a device is no evidence, and reading one may never end."""
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                self.unreadable.append(f"{self._shown(path)} is no ordinary file")
                return None
            return read_limited(path, MAX_DOCUMENT_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self.unreadable.append(f"{self._shown(path)} cannot be read: {error.strerror}")
        except BadInput as error:
            self.unreadable.append(str(error))
        return None

    def _shown(self, path: Path) -> str:
        return str(path.relative_to(self.folder))


def load_evidence(folder: Path) -> RunEvidence:
    """The evidence in `folder`, whose name is the run's. A broken document is named in `unreadable`; the rest is read."""
    reader = Reader(folder)
    return RunEvidence(
        run=folder.name,
        record=reader.document(folder / RUN_RECORD, RunRecord),
        shards=tuple(_shard(path, reader) for path in _shard_folders(folder)),
        sessions=tuple(_session(path, reader) for path in reader.paths_in(folder / SESSIONS) if path.is_dir()),
        summary=reader.document(folder / SUMMARY, EvidenceSummary),
        check=reader.document(folder / RELEASE_CHECK, ReleaseCheck),
        since=reader.document(folder / SINCE, Since),
        unreadable=tuple(reader.unreadable),
    )


def _shard_folders(folder: Path) -> list[Path]:
    found = [path for path in folder.glob("shard-*") if path.is_dir() and path.name.removeprefix("shard-").isdecimal()]
    return sorted(found, key=lambda path: int(path.name.removeprefix("shard-")))


def _shard(path: Path, reader: Reader) -> ShardEvidence:
    return ShardEvidence(
        shard=int(path.name.removeprefix("shard-")),
        cluster=reader.document(path / "cluster.json", ClusterFacts),
        traced=reader.document(path / "traced.json", Traced),
        decisions=reader.document(path / "decisions.json", Decisions),
        orders=reader.orders(path / "orders.json"),
        continuity=reader.document(path / CONTINUITY, Continuity),
    )


def _session(path: Path, reader: Reader) -> SessionEvidence:
    return SessionEvidence(
        session_uid=path.name,
        captures=reader.documents(path.glob("capture-*.json"), NodeFacts),
        receipt=reader.document(path / RECEIPT, StopReceipt),
        releases=reader.documents(path.glob("release-*.json"), Release),
    )
