"""One Event on the owner of a stopped session: the memory came back, or it leaked. A failed Event fails nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from steps.archive.evidence import SessionEvidence
from steps.contracts.cluster_facts import OwnerRef
from steps.contracts.errors import SourceUnavailable
from steps.contracts.ports import EventSink
from steps.contracts.release import DeviceRelease, ReleaseVerdict
from steps.contracts.run_record import HandOver
from steps.decide.wording import count_of, say_bytes

ACTION: Final = "VerifyRelease"
GOOD: Final = frozenset({ReleaseVerdict.RETURNED, ReleaseVerdict.TAKEN_OVER})


@dataclass(frozen=True, slots=True)
class Note:
    owner: OwnerRef
    reason: str
    text: str
    warning: bool


def note_for(session: SessionEvidence, hand_overs: tuple[HandOver, ...]) -> Note | None:
    """What to tell the owner; None where nothing was stopped, or where pending and unknown leave nothing to claim."""
    receipt = session.receipt
    devices = [device for release in session.releases for device in release.devices]
    if receipt is None or receipt.owner is None or not receipt.acted or not devices:
        return None
    leaked = [device for device in devices if device.verdict is ReleaseVerdict.LEAKED]
    if leaked:
        words = f"{count_of(len(leaked), 'GPU')} of {len(devices)} did not come back. {leaked[0].sentence}"
        remedy = f" Cheapest remedy: {leaked[0].remedy}." if leaked[0].remedy else ""
        return Note(receipt.owner, "GPUMemoryLeaked", words + remedy, warning=True)
    if not all(device.verdict in GOOD for device in devices):
        return None
    takers = {one.device: one.sentence for one in hand_overs}
    told = "; ".join(f"{device.device}{_amount(device)}: {takers.get(device.device, device.sentence)}" for device in devices)
    return Note(receipt.owner, "GPUMemoryReturned", f"{count_of(len(devices), 'GPU')} back after the stop. {told}", warning=False)


def tell(note: Note, events: Callable[[], EventSink]) -> str | None:
    """Record the Event once. Returns why it failed, for the list of what is missing."""
    try:
        rejected = events().record(note.owner, note.reason, ACTION, note.text, warning=note.warning)
    except SourceUnavailable as error:
        return f"Event {note.reason} on {note.owner.namespace}/{note.owner.name}: {error}"
    if rejected is None:
        return None
    return f"Event {note.reason} on {note.owner.namespace}/{note.owner.name}: {rejected.rejection.value}, {rejected.detail}"


def _amount(device: DeviceRelease) -> str:
    before = device.used_before_bytes.known()
    return "" if before is None else f" ({say_bytes(before)})"
