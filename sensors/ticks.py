"""The clock: every ten minutes a sweep, by a calendar source and its Sensor, or by a CronWorkflow; an installation has one of them.

A missed tick is gone and a doubled one starts a second sweep: a sweep may be repeated, and its lock lets one stop at a time.
"""

from typing import Final

from sensors.common import API, From, Json, Start, metadata, pod_template, sensor, workflow_spec

SOURCE: Final = "ticks"
TICK: Final = "sweep"
SCHEDULE: Final = "*/10 * * * *"
DRY_RUN: Final = "true"
"""As shipped the clock judges and stops nothing; deploy/components/act turns it round."""

START: Final = Start(template="sweep", prefix="sweep", name=(From(context="id"),), arguments={"dry-run": DRY_RUN})


def source(schedule: str = SCHEDULE) -> Json:
    """Ticks, in UTC. No persistence: caught-up ticks would all come at once."""
    return {
        "apiVersion": API,
        "kind": "EventSource",
        "metadata": metadata(SOURCE),
        "spec": {
            "eventBusName": "default",
            "template": pod_template("eventsource"),
            "calendar": {TICK: {"schedule": schedule, "timezone": "UTC"}},
        },
    }


def tick() -> Json:
    """The Sensor that starts a sweep."""
    return sensor("tick", SOURCE, TICK, START)


def cron() -> Json:
    """The alternative without a bus. A sweep that runs yet keeps the next one from starting."""
    return {
        "apiVersion": API,
        "kind": "CronWorkflow",
        "metadata": metadata("sweep"),
        "spec": {
            "schedules": [SCHEDULE],
            "timezone": "UTC",
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": 300,
            "successfulJobsHistoryLimit": 6,
            "failedJobsHistoryLimit": 6,
            "workflowSpec": workflow_spec(START.template, START.arguments),
        },
    }
