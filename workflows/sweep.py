"""The sweep: which nodes, what they hold, who still uses it, and the few stops that follow, each proven on its node.

    nodes -> shard x M: collect x N -> judge [survey -> trace -> decide -> main] -> reclaim x K: capture -> stop -> verify
    archive, when all is over (onExit)

Shards, because an Argo argument holds 128 KiB: ten nodes at the byte budget of a parcel (10 KiB) fit with room to spare.
"""

from functools import partial
from typing import Any, Final

from hera.workflows import DAG, ContainerSet, EmptyDirVolume, Parameter, RetryStrategy, Task, WorkflowTemplate
from hera.workflows import models as m

from steps.capture.declaration import STEP as CAPTURE
from steps.collect.declaration import STEP as COLLECT
from steps.decide.declaration import STEP as DECIDE
from steps.nodes.declaration import STEP as NODES
from steps.publish.declaration import STEP as PUBLISH
from steps.stop.declaration import STEP as STOP
from steps.survey.declaration import STEP as SURVEY
from steps.trace.declaration import STEP as TRACE
from steps.verify.declaration import STEP as VERIFY
from workflows.frame import DAY_S, HOUR_S, RETRY_LOST_POD, RUN, archive, framed
from workflows.pods import EVIDENCE, EVIDENCE_FOLDER, PART_OF, POLICY, POLICY_FILE, TMP, Wiring, mount_of

JUDGE_FOLDER: Final = "/judge"
JUDGE_FILES: Final = EmptyDirVolume(name="judge", mount_path=JUDGE_FOLDER, size_limit=m.Quantity("256Mi"))

RETRY_ONCE: Final = RetryStrategy(limit=1, retry_policy="Always")
"""For the stop: a second run finds its own Intent and reads before it acts, so it never acts twice."""

SHARDS_AT_ONCE: Final = 2
NODES_AT_ONCE: Final = 10
LOOKS_AT_ONCE: Final = 8


def sweep() -> WorkflowTemplate:
    """The WorkflowTemplate `sweep`."""
    with framed(
        "sweep",
        title="GPU sweep",
        description=(
            "Finds who holds each GPU, gives every session a verdict and a reason, stops the idle ones through their "
            "owner's own switch, and proves on the node that the memory came back. A dry run unless told otherwise."
        ),
        entrypoint="sweep",
        arguments=_parameters(),
        deadline_s=HOUR_S,
        kept_s=(DAY_S, 7 * DAY_S),
    ) as template:
        _sweep_dag()
        _shard_dag()
        _reclaim_dag()
        _leaves()
    return template


def _parameters() -> list[Parameter]:
    return [
        Parameter(
            name="dry-run",
            value="true",
            enum=["true", "false"],
            description="true: nothing is stopped. Acting also needs mode act in the policy.",
        ),
        Parameter(
            name="looks", value="3", description="Looks at every node; fewer than three cannot tell a stuck counter or a ghost."
        ),
        Parameter(name="look-interval-s", value="30", description="Seconds between two looks; three 30 s apart prove a ghost."),
        Parameter(
            name="scan",
            value="full",
            enum=["full", "quick"],
            description="quick: of /proc only what NVML lists. Nothing is stopped on it, and every sixth sweep must be full.",
        ),
        Parameter(name="capture-interval-s", value="10", description="Seconds between the looks right before a stop."),
        Parameter(name="shard-size", value="8", description="Nodes judged together; eight fit into one Argo argument."),
    ]


def _sweep_dag() -> None:
    with DAG(name="sweep", fail_fast=False, parallelism=SHARDS_AT_ONCE):
        Task(name="nodes", template="nodes", arguments={"shard-size": "{{workflow.parameters.shard-size}}"})
        Task(
            name="shard",
            template="shard",
            depends="nodes.Succeeded",
            with_param="{{tasks.nodes.outputs.parameters.shards}}",
            arguments={
                "shard": "{{item.shard}}",
                "shards": "{{tasks.nodes.outputs.parameters.count}}",
                "nodes": "{{item.nodes}}",
            },
        )


def _shard_dag() -> None:
    """A silent node must not block the judge, nor must a shard that is silent as a whole.

    So the judge gets `outputs.parameters`, all outputs of all children: if every child failed, it is `[]`, where the list of
    the one output `facts` does not exist and the controller (4.0.5) waits for it for ever. A second task for that case
    would not do: omitted, it takes after the failed child, and one silent node would fail the whole run.
    """
    with DAG(name="shard", inputs=_inputs("shard", "shards", "nodes"), fail_fast=False, parallelism=NODES_AT_ONCE):
        Task(
            name="collect",
            template="collect",
            with_param="{{inputs.parameters.nodes}}",
            arguments={
                "node": "{{item}}",
                "samples": "{{workflow.parameters.looks}}",
                "interval-s": "{{workflow.parameters.look-interval-s}}",
                "scan": "{{workflow.parameters.scan}}",
            },
        )
        Task(
            name="judge",
            template="judge",
            depends="collect.Succeeded || collect.Failed || collect.Errored",
            arguments={
                "shard": "{{inputs.parameters.shard}}",
                "shards": "{{inputs.parameters.shards}}",
                "nodes": "{{inputs.parameters.nodes}}",
                "dry-run": "{{workflow.parameters.dry-run}}",
                "facts": "{{tasks.collect.outputs.parameters}}",
            },
        )
        Task(
            name="reclaim",
            template="reclaim",
            depends="judge.Succeeded",
            with_param="{{tasks.judge.outputs.parameters.stops}}",
            arguments={
                "decision": "{{item.decision}}",
                "shard": "{{item.shard}}",
                "session-uid": "{{item.session_uid}}",
                "nodes": "{{item.nodes}}",
            },
        )


def _reclaim_dag() -> None:
    """One session's stop, under a lock of its name: two workflows take turns (one level only, nesting can deadlock).

    Every node of the session must have been captured; a gap ends it before the stop.
    """
    captures = "{{tasks.capture.outputs.parameters.facts}}"
    with DAG(
        name="reclaim",
        inputs=_inputs("decision", "shard", "session-uid", "nodes"),
        fail_fast=False,
        parallelism=LOOKS_AT_ONCE,
        synchronization=m.Synchronization(mutexes=[m.Mutex(name="session-{{inputs.parameters.session-uid}}")]),
    ):
        Task(
            name="capture",
            template="capture",
            with_param="{{inputs.parameters.nodes}}",
            arguments={
                "node": "{{item}}",
                "samples": "{{workflow.parameters.looks}}",
                "interval-s": "{{workflow.parameters.capture-interval-s}}",
            },
        )
        Task(
            name="stop",
            template="stop",
            depends="capture.Succeeded",
            arguments={
                "decision": "{{inputs.parameters.decision}}",
                "shard": "{{inputs.parameters.shard}}",
                "dry-run": "{{workflow.parameters.dry-run}}",
                "captures": captures,
            },
        )
        Task(
            name="verify",
            template="verify",
            depends="stop.Succeeded",
            when='"{{tasks.stop.outputs.parameters.acted}}" == "yes"',
            with_param="{{inputs.parameters.nodes}}",
            arguments={"node": "{{item}}", "receipt": "{{tasks.stop.outputs.parameters.receipt}}", "captures": captures},
        )


def _leaves() -> None:
    policy = {"policy": POLICY_FILE}
    Wiring(NODES).container(reads_api=True, account="reader", retry_strategy=RETRY_LOST_POD, active_deadline_seconds=120)
    Wiring(COLLECT).node_container(timeout_s=120)
    _judge()
    Wiring(CAPTURE).node_container(timeout_s=180)
    Wiring(STOP, given={**RUN, **policy}).container(
        reads_api=True, account="stopper", volumes=[POLICY], retry_strategy=RETRY_ONCE, active_deadline_seconds=120
    )
    Wiring(VERIFY).node_container(timeout_s=900)
    archive()


def _judge() -> None:
    """Four containers over one emptyDir: documents of any size stay files. The facts lie in there too: an artifact elsewhere
    is mounted into `main` alone. No retry: a Retry node would keep the facts a second time in the Workflow's status."""
    wiring = partial(Wiring, in_folder=JUDGE_FOLDER, out_folder=JUDGE_FOLDER, out_suffix=".json")
    made = {name: f"{JUDGE_FOLDER}/{name}.json" for name in ("cluster", "traced", "decisions", "continuity", "orders")}
    survey = wiring(SURVEY, {"policy": POLICY_FILE})
    trace = wiring(TRACE, {"cluster": made["cluster"]})
    decide = wiring(
        DECIDE,
        {**RUN, "run-uid": "{{workflow.uid}}", "policy": POLICY_FILE, "cluster": made["cluster"], "traced": made["traced"]},
    )
    publish = wiring(PUBLISH, {**RUN, "evidence": EVIDENCE_FOLDER, **made})
    with ContainerSet(
        name="judge",
        labels={**PART_OF, "gpu-reclaim.dev/step": "judge"},
        service_account_name="reader",
        automount_service_account_token=True,
        active_deadline_seconds=300,
        inputs=_merged(publish, decide, trace, survey),
        outputs=publish.outputs(),
        volumes=[JUDGE_FILES, TMP, POLICY, EVIDENCE],
        volume_mounts=[mount_of(JUDGE_FILES), mount_of(TMP)],
    ):
        (
            survey.set_node(POLICY)
            >> trace.set_node()
            >> decide.set_node(POLICY)
            >> publish.set_node(EVIDENCE, name="main")  # only a container called main saves outputs
        )


def _inputs(*names: str) -> list[Parameter]:
    return [Parameter(name=name) for name in names]


def _merged(*wirings: Wiring) -> list[Any]:
    """Inputs of several steps in one pod, each once; the first that names one decides its default."""
    seen: dict[tuple[str, str], Any] = {}
    for wiring in wirings:
        for one in wiring.inputs():
            seen.setdefault((type(one).__name__, one.name), one)
    return list(seen.values())
