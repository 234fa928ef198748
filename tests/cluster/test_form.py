"""The Argo UI's form through Argo's own server, with the submitter's token: what a person sees, may start, and may not."""

import json

import pytest

from tests.cluster import doors, zombie_scene
from tests.cluster.lab.lab import Lab
from tests.cluster.scene import SUBMITTER

pytestmark = pytest.mark.cluster

TEMPLATE = "zombie-experiment"


@pytest.fixture(scope="module", autouse=True)
def experiment_installed(installed: Lab) -> None:
    zombie_scene.install(installed)


def test_the_submitter_sees_title_descriptions_and_choices(installed: Lab) -> None:
    seen, words = doors.ask_server(installed, f"workflow-templates/{installed.namespace}/{TEMPLATE}", account=SUBMITTER)
    assert seen, words
    template = json.loads(words)
    assert template["metadata"]["annotations"]["workflows.argoproj.io/title"] == "GPU termination experiment"
    fields = {one["name"]: one for one in template["spec"]["arguments"]["parameters"]}
    assert all(one.get("description") for one in fields.values())
    assert fields["scenarios"]["enum"] == ["all", "s1", "s2", "s3", "s4"]


def test_the_submitter_may_start_it_by_the_form(installed: Lab) -> None:
    given = {"node": installed.node, "scenarios": "s2", "repetitions": "1"}
    taken, words = doors.by_server(installed, TEMPLATE, given, account=SUBMITTER)
    assert taken, words
    spec = json.loads(words)["spec"]
    assert spec["workflowTemplateRef"] == {"name": TEMPLATE}
    assert {one["name"]: one["value"] for one in spec["arguments"]["parameters"]} == given


def test_argo_holds_nobody_to_the_choices_of_its_form(installed: Lab) -> None:
    """So the step does: tests/manifests/test_forms.py."""
    taken, words = doors.by_server(installed, TEMPLATE, {"node": installed.node, "ending": "reboot"}, account=SUBMITTER)
    assert taken, words


def test_a_run_without_a_node_is_refused(installed: Lab) -> None:
    taken, words = doors.by_server(installed, TEMPLATE, {"scenarios": "s2"}, account=SUBMITTER)
    assert (taken, "node" in words) == (False, True), words


def test_the_submitter_may_not_change_the_template(installed: Lab) -> None:
    """What runs is the template's author's; through the server as well nobody gets more than the account's rights."""
    own = {"metadata": {"name": "own"}, "spec": {"entrypoint": "a", "templates": [{"name": "a", "suspend": {}}]}}
    taken, words = doors.ask_server(installed, f"workflow-templates/{installed.namespace}", {"template": own}, account=SUBMITTER)
    assert (taken, "forbidden" in words.lower()) == (False, True), words


def test_an_account_that_may_not_submit_is_refused_by_the_server(installed: Lab) -> None:
    taken, words = doors.by_server(installed, TEMPLATE, {"node": installed.node}, account=f"{installed.namespace}:archivist")
    assert (taken, "forbidden" in words.lower()) == (False, True), words
