"""Declaration of the step `drive`."""

from typing import Final

from steps.contracts.declaration import Form, In, Out, Step

LONGEST_GRACE_S: Final = 900
"""watch ends after 25 minutes (its limit-s), and the end of the grace has to be seen: more would be waited for and not measured."""
MOST_MEMORY_MIB: Final = 524_288
"""512 GiB, more than any GPU has: a larger number is a slip, and no allocation to try."""

STEP: Final = Step(
    name="drive",
    help="run one scenario: make the session, start and kill its worker, delete it, clean up; record what was done when",
    inputs=(
        In("run", "name of the run", Form.ID),
        In("scenario", "s1-stays, s1-execs, s2, s3 or s4"),
        In("node", "node to run the session on; the experiment needs its GPUs for itself"),
        In("namespace", "namespace of the sessions", default="gpu-zombie-test"),
        In("repetitions", "sessions one after the other", Form.COUNT, default="1"),
        In("memory-mib", "device memory that a worker holds", Form.COUNT, default="2048", least=1, most=MOST_MEMORY_MIB),
        In(
            "grace-s",
            "terminationGracePeriodSeconds of the session",
            Form.COUNT,
            default="30",
            least=1,
            most=LONGEST_GRACE_S,
        ),
        In("prestop-wait-s", "seconds the preStop hook waits before it kills", Form.COUNT, default="20"),
        In("observe-s", "seconds each state is watched before the next act", Form.SECONDS, default="3"),
        In("ending", "delete, sigkill, force or evict", default="delete"),
        In("worker", "plain, training-child, multiprocessing or setsid", default="plain"),
        In("session", "pod or deployment", default="pod"),
        In("backend", "what holds the memory: cuda or simulated", default="cuda"),
        In("image", "repository of the scenario images", Form.PATH, default="docker.io/gpureclaim/zombie"),
        In("pull", "Always or IfNotPresent", Form.ID, default="Always"),
    ),
    outputs=(Out("record", "DriveRecord", parcel=True),),
)
