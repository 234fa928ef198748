"""The report of a run that was stopped waits for what drive and watch still hand over, and not for ever."""

from dataclasses import dataclass, field
from typing import cast

import pytest

from experiments.adapters.partner import under_way
from experiments.zombie.ports import ZombieOutside
from experiments.zombie.report.waiting import CLEAN_UP_S, OUTPUTS_S, whole_record
from steps.contracts.run_record import NodeRecord, RunRecord
from tests.unit.api_double import ApiDouble, FakeClock
from tests.unit.experiment_world import NOON

NEVER_S = 10_000.0


@dataclass
class StoppedRun:
    """Base and outside in one. ends_s, written_s: when its pods end, and when the engine knows what they handed over."""

    ends_s: float
    written_s: float
    clock: FakeClock = field(default_factory=lambda: FakeClock(NOON))

    @property
    def base(self) -> "StoppedRun":
        return self

    @property
    def passed_s(self) -> float:
        return (self.clock.now() - NOON).total_seconds()

    def runs(self) -> "StoppedRun":
        return self

    def under_way(self, run: str) -> bool:
        return self.passed_s < self.ends_s

    def read(self, run: str) -> RunRecord:
        outputs = {"record": "a parcel"} if self.passed_s >= self.written_s else {}
        drive = NodeRecord(
            name=f"{run}.s2.drive",
            template="drive",
            kind="Pod",
            phase="Failed",
            message="workflow shutdown",
            started_at=NOON,
            finished_at=NOON,
            inputs={"scenario": "s2"},
            outputs=outputs,
            pod="a-pod",
        )
        return RunRecord(
            run=run,
            uid="uid-1",
            template="zombie-experiment",
            phase="Failed",
            message=None,
            parameters={},
            started_at=NOON,
            finished_at=NOON,
            nodes=(drive,),
        )


@pytest.mark.parametrize(
    ("ends_s", "written_s", "waited_s", "handed_over"),
    [
        (0, 0, 0, True),
        (0, NEVER_S, 0, False),
        (40, 42, 42, True),
        (40, NEVER_S, 40 + OUTPUTS_S, False),
        (NEVER_S, NEVER_S, CLEAN_UP_S + OUTPUTS_S, False),
    ],
    ids=["all is over", "drive failed by itself", "stopped half-way", "stopped and killed", "hangs"],
)
def test_the_report_waits_for_pods_that_clean_up_and_for_their_outputs(
    ends_s: float, written_s: float, waited_s: float, handed_over: bool
) -> None:
    run = StoppedRun(ends_s, written_s)
    record = whole_record("run-1", cast("ZombieOutside", run))
    assert (run.passed_s, bool(record.nodes[0].outputs)) == (waited_s, handed_over)


@pytest.mark.parametrize(("phases", "running"), [((), False), (("Succeeded", "Failed"), False), (("Succeeded", "Running"), True)])
def test_a_run_is_under_way_while_a_pod_of_drive_or_watch_has_not_ended(phases: tuple[str, ...], running: bool) -> None:
    api = ApiDouble()
    labels = {"workflows.argoproj.io/workflow": "run-1"}
    for number, phase in enumerate(phases):
        mine = {**labels, "gpu-reclaim.dev/step": "drive" if number else "watch"}
        api.put(f"/api/v1/namespaces/gpu-reclaim/pods/{number}", {"metadata": {"labels": mine}, "status": {"phase": phase}})
    other = {**labels, "gpu-reclaim.dev/step": "zombie-report"}
    api.put("/api/v1/namespaces/gpu-reclaim/pods/report", {"metadata": {"labels": other}, "status": {"phase": "Running"}})
    assert under_way(api, "gpu-reclaim", "run-1") is running
