"""The termination experiment: the scenarios one after the other, each driven in one pod and watched from another, then the report.

    s1-stays -> s1-execs -> s2 -> s3 -> s4, each: drive beside watch        zombie-report, when all is over (onExit)

The order is fixed by `depends` on any end of the scenario before: what fails hides no other. The sessions are plain pods or a
Deployment that drive makes in the experiment's own namespace; in a pod of Argo emissary would be an init (facts/hera-and-argo 3.7).
"""

from typing import Final

from hera.workflows import DAG, Container, Env, Parameter, Task, WorkflowTemplate
from hera.workflows import models as m

from experiments.zombie.drive.declaration import LONGEST_GRACE_S, MOST_MEMORY_MIB
from experiments.zombie.drive.declaration import STEP as DRIVE
from experiments.zombie.report.declaration import STEP as REPORT
from experiments.zombie.watch.declaration import STEP as WATCH
from workflows.frame import DAY_S, HOUR_S, RUN, framed
from workflows.pods import EVIDENCE, EVIDENCE_FOLDER, WAIT_ON, Wiring

CHAIN: Final = ("s1-stays", "s1-execs", "s2", "s3", "s4")
ANY_END: Final = ("Succeeded", "Failed", "Errored", "Skipped", "Omitted")
CHOSEN: Final = "{{workflow.parameters.scenarios}}"
SHELL: Final = "{{workflow.parameters.shell-start}}"
SCENARIO_LABEL: Final = "gpu-reclaim.dev/scenario"
READY_FILE: Final = "/tmp/watching"
DRIVEN_BY_PARAMETER: Final = (
    "repetitions",
    "memory-mib",
    "grace-s",
    "prestop-wait-s",
    "observe-s",
    "ending",
    "worker",
    "session",
    "backend",
    "image",
    "pull",
)


def zombie() -> WorkflowTemplate:
    """The WorkflowTemplate `zombie-experiment`."""
    with framed(
        "zombie-experiment",
        title="GPU termination experiment",
        description=(
            "Measures which of init process, preStop hook and signal handler lets a GPU pod leave nothing behind: four "
            "scenarios, expected against measured, with the reason where they differ. It needs all GPUs of one node for "
            "itself, makes sessions in the namespace gpu-zombie-test only, and never resets a GPU or reboots a node."
        ),
        entrypoint="zombie",
        on_exit="zombie-report",
        account="experimenter",
        arguments=_parameters(),
        deadline_s=4 * HOUR_S,
        kept_s=(7 * DAY_S, 14 * DAY_S),
        synchronization=m.Synchronization(mutexes=[m.Mutex(name="experiment-{{workflow.parameters.node}}")]),
    ) as template:
        _chain()
        _scenario()
        _drive()
        _watch()
        Wiring(REPORT, given={**RUN, **_from_workflow("tag", "commit"), "evidence": EVIDENCE_FOLDER}).container(
            reads_api=True, account="archivist", volumes=[EVIDENCE], memory_limit="512Mi", active_deadline_seconds=600
        )
    return template


def _parameters() -> list[Parameter]:
    return [
        Parameter(name="node", description="Node with the GPUs. Nothing else may use its GPUs while the experiment runs."),
        _choice(
            "scenarios",
            "all",
            ["all", "s1", "s2", "s3", "s4"],
            "Which scenarios: s1 no fix, s2 tini, s3 tini and preStop, s4 full fix.",
        ),
        _choice("repetitions", "1", ["1", "2", "3", "4", "5"], "Sessions of each scenario, one after the other."),
        _choice("shell-start", "both", ["both", "stays", "execs"], "s1: does the shell stay PID 1, or exec its last command?"),
        Parameter(
            name="memory-mib", value="2048", description=f"Device memory that a worker holds, in MiB: 1 to {MOST_MEMORY_MIB}."
        ),
        Parameter(
            name="grace-s",
            value="30",
            description=f"The session's terminationGracePeriodSeconds, 1 to {LONGEST_GRACE_S}; more than prestop-wait-s.",
        ),
        Parameter(
            name="prestop-wait-s", value="20", description="Seconds the preStop hook waits for SIGTERM to act, then SIGKILL."
        ),
        Parameter(name="observe-s", value="3", description="Seconds each state is watched before the next act."),
        _choice(
            "ending",
            "delete",
            ["delete", "sigkill", "force", "evict"],
            "How the session ends: deleted; deleted while PID 1 ignores SIGTERM; deleted by force; evicted.",
        ),
        _choice(
            "worker",
            "plain",
            ["plain", "training-child", "multiprocessing", "setsid"],
            "What the worker is: one process; with a child of its own context; with forked workers; in a session of its own.",
        ),
        _choice("session", "pod", ["pod", "deployment"], "What the session is: a plain pod, or a Deployment of one replica."),
        _choice(
            "backend", "cuda", ["cuda", "simulated"], "What holds the memory: PyTorch on a GPU, or the simulated GPU of test nodes."
        ),
        Parameter(
            name="image", value="docker.io/gpureclaim/zombie", description="Repository of the images :nofix, :tini and :fullfix."
        ),
        _choice(
            "pull", "Always", ["Always", "IfNotPresent"], "Pull policy of the sessions; the digest that ran is in the results."
        ),
        Parameter(name="tag", value="none", description="Git tag that started the run, for the record."),
        Parameter(name="commit", value="none", description="Commit of that tag, for the record."),
    ]


def _choice(name: str, value: str, words: list[str], description: str) -> Parameter:
    return Parameter(name=name, value=value, enum=words, description=description)


def _chain() -> None:
    with DAG(name="zombie", fail_fast=False):
        before: str | None = None
        for name in CHAIN:
            Task(
                name=name,
                template="scenario",
                depends=None if before is None else " || ".join(f"{before}.{end}" for end in ANY_END),
                when=_when(name),
                arguments={"scenario": name, "node": "{{workflow.parameters.node}}"},
            )
            before = name


def _when(name: str) -> str:
    number, _, start = name.partition("-")
    chosen = f'("{CHOSEN}" == "all" || "{CHOSEN}" == "{number}")'
    return chosen if not start else f'{chosen} && ("{SHELL}" == "both" || "{SHELL}" == "{start}")'


def _scenario() -> None:
    """Both begin at once; drive waits until watch is ready, watch ends when drive has."""
    with DAG(name="scenario", inputs=[Parameter(name="scenario"), Parameter(name="node")], fail_fast=False):
        for step in (WATCH, DRIVE):
            Task(
                name=step.name,
                template=step.name,
                arguments={"scenario": "{{inputs.parameters.scenario}}", "node": "{{inputs.parameters.node}}"},
            )


def _drive() -> None:
    """On the node of the session: drive and watch then read one clock. Stopped half-way, it cleans up and hands over its record."""
    made = Wiring(DRIVE, given={**RUN, "namespace": "gpu-zombie-test", **_from_workflow(*DRIVEN_BY_PARAMETER)}).container(
        reads_api=True, account="experimenter", active_deadline_seconds=3600, annotations=WAIT_ON
    )
    made.node_selector = {"kubernetes.io/hostname": "{{inputs.parameters.node}}"}
    made.tolerations = [m.Toleration(operator="Exists")]
    _mark_scenario(made)


def _watch() -> None:
    """Its readiness says that every GPU of the node is clean and that it looks: drive begins nothing before.

    More of a processor than other probes ask for: on a busy node it would look too seldom to see what is over in a moment.
    """
    given = {**RUN, **{one.name: one.default for one in WATCH.inputs if one.default is not None}}
    made = Wiring(WATCH, given=given).node_container(timeout_s=3600)
    env = made.env if isinstance(made.env, list) else []
    made.env = [*env, Env(name="GPU_RECLAIM_NODE_POD", value="true")]
    made.resources = m.ResourceRequirements(
        requests={"cpu": m.Quantity("250m"), "memory": m.Quantity("64Mi")},
        limits={"cpu": m.Quantity("2"), "memory": m.Quantity("256Mi")},
    )
    made.readiness_probe = m.Probe(
        exec=m.ExecAction(command=["test", "-f", READY_FILE]), period_seconds=1, initial_delay_seconds=1, failure_threshold=3
    )
    _mark_scenario(made)


def _mark_scenario(made: Container) -> None:
    made.labels = {**(made.labels or {}), SCENARIO_LABEL: "{{inputs.parameters.scenario}}"}


def _from_workflow(*names: str) -> dict[str, str]:
    return {name: f"{{{{workflow.parameters.{name}}}}}" for name in names}
