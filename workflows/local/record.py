"""The run's record while it grows: one RunRecord on disk, rewritten whole at every change, for archive and for people."""

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from steps.contracts.document import encode
from steps.contracts.files import write_atomically
from steps.contracts.run_record import NodeRecord, RunRecord

OnNode = Callable[[NodeRecord], None]
"""Called with a node of the run each time it changes."""
_UNFINISHED = ("Pending", "Running")


class Record:
    """All nodes of one run, in order of their start."""

    def __init__(self, first: RunRecord, path: Path, now: Callable[[], datetime], on_node: OnNode | None) -> None:
        self._record, self._path, self._now, self._on_node = first, path, now, on_node
        self._nodes: dict[str, NodeRecord] = {}
        self._write()

    @property
    def document(self) -> RunRecord:
        return msgspec.structs.replace(self._record, nodes=tuple(self._nodes.values()))

    def begin(
        self, name: str, template: str, kind: str, *, inputs: Mapping[str, str] | None = None, pod: str | None = None
    ) -> None:
        """A node that runs from now on."""
        self._put(
            NodeRecord(
                name=name,
                template=template,
                kind=kind,
                phase="Running",
                message=None,
                started_at=self._now(),
                finished_at=None,
                inputs=dict(inputs or {}),
                outputs={},
                pod=pod,
            )
        )

    def never_ran(self, name: str, template: str, phase: str, message: str) -> None:
        """A node that will not run: Skipped, Omitted, or in Error before it could."""
        self.begin(name, template, "Skipped")
        self.end(name, phase, message=message)

    def end(self, name: str, phase: str, *, message: str | None = None, outputs: Mapping[str, str] | None = None) -> None:
        changes = {"phase": phase, "message": message, "outputs": dict(outputs or {}), "finished_at": self._now()}
        self._put(msgspec.structs.replace(self._nodes[name], **changes))

    def failures(self) -> list[dict[str, str]]:
        """What `workflow.failures` tells the exit handler."""
        return [
            {"displayName": node.name, "message": node.message or "", "templateName": node.template, "phase": node.phase}
            for node in self._nodes.values()
            if node.phase in ("Failed", "Error")
        ]

    def finish(self, phase: str, message: str | None) -> RunRecord:
        """End the run. A node that still runs was cut off, and says so."""
        for node in list(self._nodes.values()):
            if node.phase in _UNFINISHED:
                self.end(node.name, "Failed", message=message or "cut off")
        self._record = msgspec.structs.replace(self._record, phase=phase, message=message, finished_at=self._now())
        self._write()
        return self.document

    def _put(self, node: NodeRecord) -> None:
        self._nodes[node.name] = node
        self._write()
        if self._on_node is not None:
            self._on_node(node)

    def _write(self) -> None:
        write_atomically(self._path, encode(self.document))
