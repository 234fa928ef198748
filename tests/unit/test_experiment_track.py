"""Where one session's part of the recording begins and ends."""

import msgspec

from experiments.zombie.ports import Glance
from experiments.zombie.recording import Given, Mark, Repetition, WatchRecording, What
from experiments.zombie.report.track import tracks
from experiments.zombie.scenarios import ScenarioId
from steps.contracts.document import Origin, Sample, Stamp
from steps.contracts.node_facts import Driver
from tests.unit.experiment_world import BASELINE, GPU, HELD, NOON, ORPHAN, POD, at, glance, life, pid1, process, stretches

NEXT_POD = POD.replace("0a1b", "9f9f")


def recording(*glances: Glance) -> WatchRecording:
    absent: Sample[str] = Sample.absent("not asked")
    return WatchRecording(
        stamp=Stamp(made_by="watch", made_at=NOON, origin=Origin.SIMULATED),
        scenario=ScenarioId.S2,
        node="node-a",
        boot_id=absent,
        kernel=absent,
        driver=Driver(driver_version=absent, nvml_version=absent, cuda_version=absent),
        gpus=(),
        clean=True,
        clean_sentence="",
        interval_s=0.1,
        settle_s=2.0,
        looks=len(glances),
        longest_gap_s=0.1,
        given=tuple(Given(at=NOON, pod_uid=pod, container="session", device=GPU) for pod in (POD, NEXT_POD)),
        stretches=stretches(*glances),
        portraits=(),
        portraits_dropped=0,
        ended="",
    )


def two_sessions() -> tuple[Repetition, Repetition]:
    first = life().repetition
    begins = (Mark(at=at(20.0), what=What.CREATE), Mark(at=at(21.0), what=What.SPAWN))
    return first, msgspec.structs.replace(first, number=2, pod_uid=NEXT_POD, marks=begins)


def test_a_session_begins_without_what_the_one_before_it_left_to_be_seen() -> None:
    """The look in which it began has been the same for a while: what came before that look is not its own."""
    held = glance(10.0, BASELINE + HELD, pid1(), process(ORPHAN, holds=True))
    looks = (glance(0.0, BASELINE), held, glance(11.5, BASELINE), glance(19.9, BASELINE), glance(20.1, BASELINE))
    _, second = tracks(two_sessions(), recording(*looks))
    assert [one.processes for one in second.stretches] == [()]
    assert second.baseline == BASELINE


def test_where_the_first_look_came_late_the_last_one_before_it_shows_what_was_there() -> None:
    looks = (
        glance(0.0, BASELINE),
        glance(19.9, BASELINE),
        glance(21.5, BASELINE + HELD, process(ORPHAN, holds=True, pod=NEXT_POD)),
    )
    _, second = tracks(two_sessions(), recording(*looks))
    assert [second.used(one) for one in second.stretches] == [BASELINE, BASELINE + HELD]
    assert second.baseline == BASELINE
