"""The answer from what was watched. Pure.

Only a pod that was being deleted can have leaked. Where its devices are not known, memory without a holder is nobody's for certain.
"""

from collections.abc import Sequence
from typing import Final

from steps.contracts.release import DeviceRelease, ReleaseVerdict
from steps.contracts.release_check import Answer
from steps.contracts.traced import GpuClass, TracedHolder
from steps.release_check.plan import DeletedPod, Outlook
from steps.verify.watch import gravest, sentence_of

NO_DELETION: Final = "the event does not say that the pod was being deleted, as when its label is taken off"
NOT_NAMED: Final = "which device it had the kubelet no longer says, and no process of it holds one"


def still_lives(pod: DeletedPod, holders: Sequence[TracedHolder]) -> str | None:
    """Why there is nothing to watch: no deletion, and the pod's processes are on a device. None: watch."""
    if pod.being_deleted or not holders:
        return None
    named = ", ".join(f"PID {holder.pid}" for holder in holders)
    return f"{NO_DELETION}, and its {named} holds a device: it lives, nothing is wrong"


def answer_of(pod: DeletedPod, view: Outlook, devices: Sequence[DeviceRelease]) -> tuple[Answer, str]:
    """The answer and its sentence. devices: as watched, at least until nothing was pending or the time was up."""
    if not devices:
        return Answer.UNKNOWN, f"{NOT_NAMED}; NVML lists no GPU on this node, or could not be asked"
    verdict = gravest([device.verdict for device in devices])
    words = sentence_of(view.plan, devices)
    held = [
        device for device in devices if device.verdict is ReleaseVerdict.LEAKED and device.gpu_class is not GpuClass.GHOST_CONTEXT
    ]
    if verdict is ReleaseVerdict.LEAKED and not pod.being_deleted:
        if held:
            return Answer.STILL_LIVES, f"{NO_DELETION}; {words.partition('; termination overdue')[0]}: it lives"
        return Answer.UNKNOWN, f"{NO_DELETION}; {words}"
    if view.named or held:
        return Answer(verdict.value), words
    if verdict is ReleaseVerdict.LEAKED:
        return Answer.UNKNOWN, f"{NOT_NAMED}; memory without a holder is on this node, which may have been its: {words}"
    if verdict is ReleaseVerdict.TAKEN_OVER and any(device.verdict is ReleaseVerdict.RETURNED for device in devices):
        verdict = ReleaseVerdict.RETURNED
    return Answer(verdict.value), f"{NOT_NAMED}; looked at every GPU of this node instead: {words}"
