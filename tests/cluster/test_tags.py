"""Git tags on real Argo Events: which deliveries of a hook start the experiment, how the others are answered, and their count.

The one run that is started here is the one that tests/cluster/test_zombie.py looks at.
"""

import json

import pytest

from experiments.zombie.scenarios import Row
from tests import forge
from tests.cluster import scene, tags_scene, zombie_scene
from tests.cluster.lab.lab import Lab
from tests.cluster.tags_scene import Story

pytestmark = pytest.mark.cluster


def arguments(workflow: dict[str, object]) -> dict[str, str]:
    spec = workflow["spec"]
    assert isinstance(spec, dict)
    return {one["name"]: one["value"] for one in spec["arguments"]["parameters"]}


def test_what_is_not_signed_by_the_secret_is_turned_away_with_the_reason(started_by_tag: Story) -> None:
    assert {name: answer.status for name, answer in started_by_tag.turned_away.items()} == dict.fromkeys(
        started_by_tag.turned_away, 400
    )
    assert all("signature" in answer.words for answer in started_by_tag.turned_away.values()), started_by_tag.turned_away


def test_what_is_signed_and_no_new_tag_of_the_form_is_taken_and_starts_nothing(started_by_tag: Story) -> None:
    assert {name: answer.status for name, answer in started_by_tag.let_go.items()} == dict.fromkeys(started_by_tag.let_go, 200)
    assert started_by_tag.before.started == 0


def test_both_kinds_of_refusal_are_counted(started_by_tag: Story) -> None:
    before = started_by_tag.before
    assert before.requests - before.published == len(started_by_tag.turned_away)
    assert before.published - before.started == len(started_by_tag.let_go)


def test_a_signed_tag_starts_one_run_that_knows_tag_and_commit(started_by_tag: Story, lab: Lab) -> None:
    assert started_by_tag.runs == (started_by_tag.run,)
    workflow = lab.kubectl.get("workflow", started_by_tag.run, lab.namespace)
    assert workflow is not None
    assert arguments(workflow) == {"node": lab.node, "tag": tags_scene.TAG, "commit": forge.COMMIT}
    assert workflow["spec"]["workflowTemplateRef"] == {"name": "zombie-experiment"}


def test_giteas_signature_is_verified_as_well(started_by_tag: Story, lab: Lab) -> None:
    wanted = {"node": lab.node, "tag": tags_scene.OTHER_TAG, "commit": forge.COMMIT}
    assert arguments(started_by_tag.by_gitea) == wanted


def test_the_same_delivery_again_finds_its_name_taken(started_by_tag: Story) -> None:
    assert started_by_tag.again.status == 200
    assert (started_by_tag.settled.started, started_by_tag.settled.refused >= 1) == (2, True)


def test_the_pod_that_is_reached_from_outside_holds_no_token(started_by_tag: Story, lab: Lab) -> None:
    assert started_by_tag.run
    (pod,) = lab.kubectl.list("pod", lab.namespace, selector="eventsource-name=tags")
    assert pod["spec"]["serviceAccountName"] == "hook"
    assert not [one for one in pod["spec"]["volumes"] if "projected" in one]


@pytest.mark.parametrize(("value", "taken"), [("", False), ("x" * 15, False), ("x" * 16, True)])
def test_a_secret_that_verifies_nothing_is_refused(started_by_tag: Story, lab: Lab, value: str, taken: bool) -> None:
    """As a dry run of the server, which asks the admission policy all the same."""
    assert started_by_tag.run
    tried = lab.kubectl.ran(
        "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--filename=-", stdin=_text(lab, value)
    )
    assert (tried.returncode == 0) is taken, tried.stderr
    assert taken or "at least 16 bytes" in tried.stderr


def test_the_policy_leaves_other_secrets_alone(started_by_tag: Story, lab: Lab) -> None:
    assert started_by_tag.run
    tried = lab.kubectl.ran("create", "secret", "generic", "another", f"--namespace={lab.namespace}", "--dry-run=server")
    assert tried.returncode == 0, tried.stderr


def test_the_api_server_takes_what_is_shipped_for_tags(started_by_tag: Story, lab: Lab) -> None:
    assert started_by_tag.run
    lab.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--kustomize", str(tags_scene.DEPLOYED))


@pytest.mark.repeat
@pytest.mark.timeout(1200, func_only=True)
def test_three_repetitions_by_a_tag_agree_in_every_row(started_by_tag: Story, lab: Lab) -> None:
    """A tag gives no number, so the template's default is three for the while."""
    scene.finish(lab, started_by_tag.run, within_s=zombie_scene.RUN_S)
    zombie_scene.install(lab, repetitions="3")
    tag = forge.github_push("refs/tags/v3.0.0")
    workflow = tags_scene.started(lab, tag, tag.github(tags_scene.THE_SECRET))
    zombie_scene.install(lab, repetitions="1")
    name = workflow["metadata"]["name"]
    run = scene.Run(name, scene.finish(lab, name, within_s=750), lab.evidence / name)
    results = zombie_scene.results_of(run)
    assert zombie_scene.unstable(results, 3) == []
    assert {len(one.verdicts) for one in results.scenarios} == {len(Row)}
    assert "(3 of 3)" in (run.folder / "results" / "comparison.md").read_text(encoding="utf-8")
    assert results.provenance.tag == "v3.0.0"


def _text(lab: Lab, value: str) -> str:
    return json.dumps(tags_scene.secret(lab, value))
