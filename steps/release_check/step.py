"""The step `release-check`: what is still held on a deleted pod's devices, and by whom. It has no API and stops nothing."""

from typing import Final

from steps.collect.look import look
from steps.contracts.cluster_facts import grace_as_kept
from steps.contracts.declaration import Inputs
from steps.contracts.document import Stamp
from steps.contracts.errors import Exit
from steps.contracts.node_facts import NodeFacts
from steps.contracts.ports import Outside
from steps.contracts.release import Release, ReleaseVerdict
from steps.contracts.release_check import Answer, CheckedPod, ReleaseCheck
from steps.logs import log_for
from steps.release_check.answer import answer_of, still_lives
from steps.release_check.plan import DeletedPod, container_ids, outlook
from steps.verify.watch import follow

EXIT_OF: Final = {
    Answer.RETURNED: Exit.DONE,
    Answer.TAKEN_OVER: Exit.DONE,
    Answer.STILL_LIVES: Exit.DONE,
    Answer.LEAKED: Exit.MEMORY_NOT_BACK,
    Answer.PENDING: Exit.COULD_NOT,
    Answer.UNKNOWN: Exit.COULD_NOT,
}
MOST_S: Final = 780.0
"""Within the template's time limit. What is pending by then is so in the answer; the next sweep looks again."""


def run(inputs: Inputs, outside: Outside) -> Exit:
    """Write the ReleaseCheck, whatever it says."""
    pod = DeletedPod(
        uid=inputs.text("uid"),
        container_ids=container_ids(inputs.text("containers")),
        being_deleted=bool(inputs.text("deleted-at")),
        grace_s=grace_as_kept(inputs.count("grace-s")),
    )
    shown = CheckedPod(
        uid=pod.uid,
        namespace=inputs.text("namespace"),
        name=inputs.text("name"),
        node=inputs.text("node"),
        deletion_told=pod.being_deleted,
    )
    check = _checked(pod, shown, inputs.seconds("interval-s"), outside)
    inputs.put("check", check)
    release = check.release
    log_for("release-check").info(
        "release-check.answered",
        node=shown.node,
        pod_uid=pod.uid,
        answer=check.answer.value,
        sentence=check.sentence,
        watched_s=None if release is None else (release.watched_until - release.watched_from).total_seconds(),
    )
    return EXIT_OF[check.answer]


def _checked(pod: DeletedPod, shown: CheckedPod, interval_s: float, outside: Outside) -> ReleaseCheck:
    def look_once() -> NodeFacts:
        return look(shown.node, outside, 1, 0.0, made_by="release-check")

    def check_of(answer: Answer, sentence: str, release: Release | None) -> ReleaseCheck:
        return ReleaseCheck(stamp=stamp(), pod=shown, answer=answer, sentence=sentence, release=release)

    def stamp() -> Stamp:
        return Stamp(made_by="release-check", made_at=outside.clock.now(), origin=outside.origin)

    first = look_once()
    view = outlook(pod, first)
    alive = still_lives(pod, view.holders)
    if alive is not None:
        return check_of(Answer.STILL_LIVES, alive, None)
    devices, until = follow(view.plan, first, look_once, outside.clock, interval_s, at_most_s=MOST_S)
    answer, sentence = answer_of(pod, view, devices)
    release = Release(
        stamp=stamp(),
        node=shown.node,
        decision_id=None,
        pod_uids=view.plan.pod_uids,
        verdict=ReleaseVerdict.UNKNOWN if answer is Answer.STILL_LIVES else ReleaseVerdict(answer.value),
        sentence=sentence,
        devices=devices,
        watched_from=first.stamp.made_at,
        watched_until=until,
    )
    return check_of(answer, sentence, release)
