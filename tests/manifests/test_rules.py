"""Every manifest keeps to Argo's closed schema and to our own rules, and each of those can fail."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from steps.contracts.declaration import Step, flags_of
from steps.registry import STEPS
from tests.conformance import compare
from tests.manifests import rules
from tests.manifests.closed_schema import problems
from workflows import MANIFESTS
from workflows.render import TEMPLATES

Content = dict[str, Any]
MANIFEST_FILES = [MANIFESTS / f"{name}.yaml" for name in sorted(TEMPLATES)]
SWEEP: Content = yaml.safe_load((MANIFESTS / "sweep.yaml").read_text(encoding="utf-8"))
RELEASE_CHECK: Content = yaml.safe_load((MANIFESTS / "release-check.yaml").read_text(encoding="utf-8"))


def template(content: Content, name: str) -> Content:
    return next(one for one in content["spec"]["templates"] if one["name"] == name)


def task(content: Content, dag: str, name: str) -> Content:
    return next(one for one in template(content, dag)["dag"]["tasks"] if one["name"] == name)


def parameter(content: Content, name: str) -> Content:
    return next(one for one in content["spec"]["arguments"]["parameters"] if one["name"] == name)


@pytest.mark.parametrize("path", [*MANIFEST_FILES, *map(compare.template_path, compare.names())], ids=lambda path: path.stem)
def test_a_manifest_has_no_field_that_argo_does_not_know(path: Any) -> None:
    assert problems(yaml.safe_load(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", MANIFEST_FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("rule", rules.EVERY, ids=lambda rule: rule.__name__)
def test_a_manifest_keeps_our_rule(path: Any, rule: Callable[[Content], list[str]]) -> None:
    assert rule(yaml.safe_load(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("rule", rules.SWEEP, ids=lambda rule: rule.__name__)
def test_the_sweep_keeps_its_own_rule(rule: Callable[[Content], list[str]]) -> None:
    assert rule(SWEEP) == []


def test_a_misspelt_field_breaks_the_closed_schema() -> None:
    content = copy.deepcopy(SWEEP)
    template(content, "collect")["nodeSelectr"] = template(content, "collect").pop("nodeSelector")
    assert any("nodeSelectr" in problem for problem in problems(content))


BREAKS: dict[Callable[[Content], list[str]], Callable[[Content], Any]] = {
    rules.references_resolve: lambda c: task(c, "reclaim", "stop").update(depends="capture"),
    rules.node_pods_are_not_stopped_by_kill_1: lambda c: template(c, "collect")["metadata"].pop("annotations"),
    rules.no_script: lambda c: template(c, "nodes").update(script={"source": "print(1)"}),
    rules.nothing_newer_than_4_0: lambda c: template(c, "collect").update(pendingTimeout="1m"),
    rules.patches_are_constant: lambda c: template(c, "collect").update(podSpecPatch='{"hostPID":{{inputs.parameters.node}}}'),
    rules.only_depends: lambda c: task(c, "reclaim", "stop").update(dependencies=["capture"]),
    rules.node_pods_end: lambda c: template(c, "verify").update(retryStrategy={"limit": 1}),
    rules.node_pods_reach_their_node: lambda c: template(c, "capture").update(tolerations=[]),
    rules.deadlines_on_leaves: lambda c: template(c, "judge").pop("activeDeadlineSeconds"),
    rules.tokens_are_mounted_by_exception: lambda c: template(c, "collect").update(automountServiceAccountToken=True),
    rules.the_lock_is_the_sessions: lambda c: template(c, "reclaim").pop("synchronization"),
    rules.accounts_are_those_of_the_design: lambda c: template(c, "collect").update(serviceAccountName="stopper"),
    rules.containers_are_confined: lambda c: template(c, "stop")["container"]["securityContext"].update(privileged=True),
    rules.only_node_pods_are_root: lambda c: template(c, "collect").pop("securityContext"),
    rules.one_lock_deep: lambda c: template(c, "shard").update(synchronization={"mutexes": [{"name": "shard"}]}),
    rules.pods_outlive_the_archive: lambda c: c["spec"].update(podGC={"strategy": "OnPodCompletion"}),
    rules.dry_run_unless_told_otherwise: lambda c: parameter(c, "dry-run").update(value="false"),
    rules.a_shard_fits_into_an_argument: lambda c: parameter(c, "shard-size").update(value="13"),
}


@pytest.mark.parametrize("rule", [*rules.EVERY, *rules.SWEEP], ids=lambda rule: rule.__name__)
def test_each_rule_finds_what_breaks_it(rule: Callable[[Content], list[str]]) -> None:
    content = copy.deepcopy(SWEEP)
    BREAKS[rule](content)
    assert rule(content) != []


def test_the_release_check_is_one_probe_without_a_lock_and_its_archive() -> None:
    accounts = {one["name"]: one.get("serviceAccountName") for one in rules.templates(RELEASE_CHECK) if "dag" not in one}
    assert accounts == {"release-check": "probe", "archive": "archivist"}
    assert not [path for path, key, _ in rules.fields(RELEASE_CHECK) if key == "synchronization"]


@pytest.mark.parametrize("step", STEPS.values(), ids=lambda step: step.name)
def test_each_declared_step_runs_in_exactly_one_container_with_exactly_its_flags(step: Step) -> None:
    home = RELEASE_CHECK if step.name == "release-check" else SWEEP
    argvs = [container["args"] for _, container in rules.containers(home) if container["args"][:2] == ["step", step.name]]
    assert [sorted(argument.partition("=")[0] for argument in argv[2:]) for argv in argvs] == [
        sorted(flag for flag, _ in flags_of(step))
    ]


def test_a_template_hands_out_every_declared_output_that_is_used_after_it() -> None:
    declared = {step.name: {output.name for output in step.outputs} for step in STEPS.values()}
    for one in rules.templates(SWEEP):
        if "container" in one:
            assert {output["name"] for output in one["outputs"]["parameters"]} == declared[one["name"]]
    assert [output["name"] for output in template(SWEEP, "judge")["outputs"]["parameters"]] == ["stops"]
