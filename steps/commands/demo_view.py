"""The end of the demo on a terminal of 80 columns or more: verdicts, GPUs given back, leaks. Rows are the report's."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from steps.archive.evidence import RunEvidence
from steps.archive.shown import Shown, plain
from steps.archive.view import GivenBackRow, SessionRow, given_back_rows, lead_of, session_rows
from steps.archive.view_nodes import GpuRow, node_rows
from steps.archive.view_since import since_view
from steps.contracts.release import DeviceRelease

STYLES: Final = {"act": "bold green", "good": "green", "bad": "red", "warn": "yellow", "unknown": "yellow", "plain": "default"}
INDENT: Final = (0, 0, 0, 2)
DEEPER: Final = (0, 0, 0, 6)


def show_lead(console: Console, evidence: RunEvidence) -> None:
    """What a run did, in one sentence."""
    console.print(Padding(_text(lead_of(evidence, given_back_rows(evidence)), "bold"), INDENT, expand=False))


def show_result(console: Console, evidence: RunEvidence) -> None:
    """Print what a run found. Texts of the cluster are escaped; unknown is shown as unknown."""
    console.print(_verdicts(session_rows(evidence)))
    devices = {device.device: device for session in evidence.sessions for release in session.releases for device in release.devices}
    _block(console, "GPUs given back, proven on the node", [_given_back(row, devices) for row in given_back_rows(evidence)])
    _since(console, evidence)
    lost = [(node.name, gpu) for node in node_rows(evidence) for gpu in node.gpus if gpu.headline.tone == "bad"]
    _block(console, "Leaks: free to Kubernetes, lost to everybody", [_leak(node, gpu) for node, gpu in lost])


def _verdicts(sessions: Sequence[SessionRow]) -> RenderableType:
    table = Table(
        title="Every session, judged", title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    for column in ("SESSION", "GPUS", "VERDICT", "WHY"):
        table.add_column(column, overflow="fold")
    for session in sessions:
        table.add_row(_text(session.name), _shown(session.gpus), _shown(session.verdict), _text(session.sentence))
    return table


def _block(console: Console, title: str, entries: Sequence[Sequence[Text]]) -> None:
    """Each entry is its first line, and details below it."""
    console.print(_text(title, "bold"))
    for first, *details in entries or [[_text("none")]]:
        console.print(Padding(first, INDENT, expand=False))
        for line in details:
            console.print(Padding(line, DEEPER, expand=False))
    console.print()


def _since(console: Console, evidence: RunEvidence) -> None:
    """What became of the pods that an earlier sweep saw."""
    since = since_view(evidence)
    if since is not None:
        rows = [
            [_text(f"{row.pod} on {row.node}: ").append_text(_shown(row.answer)), _text(row.sentence)] for row in since.departed
        ]
        _block(console, "Since the earlier sweep", [[_text(since.lead)], *rows])


def _given_back(row: GivenBackRow, devices: Mapping[str, DeviceRelease]) -> list[Text]:
    """The device and whose it was, the proof, the taker."""
    proof = _shown(row.before).append(" -> ").append_text(_shown(row.after))
    if row.uuid in devices:
        proof.append(f"   {_interval(devices[row.uuid])}")
    return [_text(f"{row.gpu}, from {row.session}: ").append_text(_shown(row.verdict)), proof, _text(row.taker)]


def _interval(device: DeviceRelease) -> str:
    """No single instant is claimed: the memory came back between two looks."""
    free = "not yet seen free" if device.first_seen_free is None else f"first seen free {device.first_seen_free:%H:%M:%S} UTC"
    return (
        f"last seen held {device.last_seen_held:%H:%M:%S}, {free}" if device.last_seen_held is not None else f"nothing held, {free}"
    )


def _leak(node: str, gpu: GpuRow) -> list[Text]:
    """The device, who holds it, and what a person can do; the report has all of the remedy."""
    first = _text(f"GPU {gpu.index} of {node}: ").append_text(_shown(gpu.used)).append(" held, ").append_text(_shown(gpu.headline))
    remedy = "unknown" if gpu.remedy is None else gpu.remedy.partition(";")[0]
    return [first, *(_text(words) for words in _holders(gpu)), _text(f"remedy: {remedy}")]


def _holders(gpu: GpuRow) -> Iterator[str]:
    for holder in gpu.holders:
        yield f"{holder.name} (pid {holder.pid}), {holder.reason}"
    if not gpu.holders:
        yield gpu.reason


def _text(words: str, style: str = "") -> Text:
    return Text(str(plain(words)), style=style)


def _shown(fact: Shown) -> Text:
    return _text(fact.text, STYLES[fact.tone])
