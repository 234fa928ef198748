"""How far a local run of the sweep is, as one line of a terminal."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from rich.text import Text

from steps.contracts.run_record import NodeRecord

CHAIN: Final = ("nodes", "collect", "judge", "capture", "stop", "verify", "archive")
OVER: Final = ("Succeeded", "Failed", "Error")


@dataclass
class Progress:
    """How many pods of each template have started, ended and failed."""

    started: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)

    def tell(self, node: NodeRecord) -> None:
        """Called by the runner at every change of a node."""
        if node.kind != "Pod":
            return
        self.started[node.template] += node.phase == "Running"
        self.ended[node.template] += node.phase in OVER
        self.failed[node.template] += node.phase in OVER and node.phase != "Succeeded"

    def line(self) -> Text:
        """`nodes > collect 3 > judge`: green is done, yellow under way, red failed."""
        return Text("  ").append_text(Text(" > ").join(self._part(name) for name in CHAIN if self.started[name]))

    def _part(self, name: str) -> Text:
        count = f" {self.started[name]}" if self.started[name] > 1 else ""
        done = self.ended[name] >= self.started[name]
        return Text(f"{name}{count}", style="red" if self.failed[name] else "green" if done else "yellow")
