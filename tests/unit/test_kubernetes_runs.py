"""A Workflow object becomes a RunRecord, compressed or not; pods bear the names the controller gives them."""

import base64
import gzip
import json
from typing import Any

import pytest

from steps.adapters.kubernetes.runs import ArgoRuns, fnv_1a
from steps.contracts.errors import SourceUnavailable
from steps.contracts.run_record import NodeRecord, RunRecord
from tests.unit.api_double import ApiDouble

RUN = "/apis/argoproj.io/v1alpha1/namespaces/gpu-reclaim/workflows/sweep-x7"
LOG = "/api/v1/namespaces/gpu-reclaim/pods/p/log"


def node(name: str, **more: Any) -> dict[str, Any]:
    return {"id": f"id-{name}", "name": name, "type": "Pod", "templateName": "stop", "phase": "Succeeded", **more}


NODES: dict[str, Any] = {
    "r": node("sweep-x7", type="DAG", templateName="sweep", finishedAt="2026-11-30T12:05:00Z", message="done"),
    "s": node(
        "sweep-x7.shard(0:shard:0).stop",
        startedAt="2026-11-30T12:01:00Z",
        inputs={"parameters": [{"name": "decision", "value": "d-1"}, {"name": "absent"}]},
        outputs={"parameters": [{"name": "acted", "value": "yes"}], "exitCode": "0"},
    ),
    "o": node("sweep-x7.onExit", templateName=None, templateRef={"name": "sweep", "template": "archive"}, phase="Running"),
}


def workflow(nodes: dict[str, Any] | None = None, *, annotations: dict[str, str] | None = None, **status: Any) -> ApiDouble:
    api = ApiDouble()
    api.put(
        RUN,
        {
            "metadata": {"uid": "u-1", "annotations": annotations or {}},
            "spec": {
                "workflowTemplateRef": {"name": "sweep"},
                "arguments": {"parameters": [{"name": "dry-run", "value": "false"}]},
            },
            "status": {
                "phase": "Running",
                "startedAt": "2026-11-30T12:00:00Z",
                "storedWorkflowTemplateSpec": {
                    "arguments": {"parameters": [{"name": "dry-run", "value": "true"}, {"name": "shard-size", "value": 10}]}
                },
                **({"nodes": nodes} if nodes is not None else {}),
                **status,
            },
        },
    )
    return api


def read(api: ApiDouble) -> RunRecord:
    return ArgoRuns(api, "gpu-reclaim").read("sweep-x7")


def found(api: ApiDouble, name: str) -> NodeRecord:
    return next(one for one in read(api).nodes if one.name == name)


def test_a_run_has_its_template_parameters_and_the_phase_of_its_root_while_on_exit_still_runs() -> None:
    record = read(workflow(NODES))
    assert (record.run, record.uid, record.template, record.phase, record.message) == (
        "sweep-x7",
        "u-1",
        "sweep",
        "Succeeded",
        "done",
    )
    assert record.parameters == {"dry-run": "false", "shard-size": "10"}
    assert (record.started_at is not None, record.finished_at is not None) == (True, True)


def test_a_run_whose_root_has_not_ended_has_the_workflows_own_phase() -> None:
    record = read(workflow({"r": {**NODES["r"], "phase": "Running"}}))
    assert (record.phase, record.finished_at) == ("Running", None)
    assert read(workflow()).nodes == ()


def test_a_node_has_its_template_by_name_or_reference_and_only_parameters_with_a_value() -> None:
    api = workflow(NODES)
    stop = found(api, "sweep-x7.shard(0:shard:0).stop")
    assert (stop.template, stop.kind, stop.phase, stop.inputs, stop.outputs) == (
        "stop",
        "Pod",
        "Succeeded",
        {"decision": "d-1"},
        {"acted": "yes"},
    )
    assert found(api, "sweep-x7.onExit").template == "archive"


def test_compressed_nodes_read_the_same() -> None:
    packed = base64.b64encode(gzip.compress(json.dumps(NODES).encode())).decode()
    assert read(workflow(compressedNodes=packed)) == read(workflow(NODES))


@pytest.mark.parametrize(
    "packed", ["no base64!", base64.b64encode(b"no gzip").decode(), base64.b64encode(gzip.compress(b"{", mtime=0)[:-4]).decode()]
)
def test_damaged_nodes_are_an_error_that_names_the_run(packed: str) -> None:
    with pytest.raises(SourceUnavailable, match="run sweep-x7: its compressed node status"):
        read(workflow(compressedNodes=packed))


def test_nodes_in_argos_database_are_an_error_that_says_what_to_switch_off() -> None:
    with pytest.raises(SourceUnavailable, match="off-loading"):
        read(workflow(offloadNodeStatusVersion="fnv:1"))


def test_a_run_that_does_not_exist_is_an_error_that_names_its_path() -> None:
    with pytest.raises(SourceUnavailable, match="workflows/sweep-x7"):
        read(ApiDouble())


@pytest.mark.parametrize(("text", "value"), [("", 0x811C9DC5), ("a", 0xE40C292C), ("foobar", 0xBF9CF968)])
def test_the_hash_is_fnv_1a(text: str, value: int) -> None:
    """The published test vectors of FNV-1a, 32 bits."""
    assert fnv_1a(text.encode()) == value


def test_a_pod_is_named_after_run_template_and_the_hash_of_its_node_name() -> None:
    name = "sweep-x7.shard(0:shard:0).stop"
    assert found(workflow(NODES), name).pod == f"sweep-x7-stop-{fnv_1a(name.encode())}"
    assert found(workflow(NODES), "sweep-x7").pod is None


def test_a_workflow_of_the_old_pod_names_has_the_node_id_as_pod_name() -> None:
    api = workflow(NODES, annotations={"workflows.argoproj.io/pod-name-format": "v1"})
    assert found(api, "sweep-x7.onExit").pod == "id-sweep-x7.onExit"


def test_a_workflow_of_one_pod_names_it_after_itself() -> None:
    assert found(workflow({"r": node("sweep-x7")}), "sweep-x7").pod == "sweep-x7"


def test_the_end_of_a_log_is_kept() -> None:
    api = ApiDouble()
    api.put(LOG, {"text": "first line\nlast line\n"})
    assert ArgoRuns(api, "gpu-reclaim").log("p", "main", 10).known() == "last line\n"


def test_a_log_that_is_not_there_is_absent_with_the_servers_words() -> None:
    sample = ArgoRuns(ApiDouble(), "gpu-reclaim").log("p", "main", 10)
    assert (sample.known(), sample.reason) == (None, "HTTP 404: not found")
