"""doctor: each thing an installation must have, taken away; what could not be read; the exit code."""

import argparse
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from steps.commands import doctor
from steps.contracts.document import Origin, Sample, Stamp
from steps.contracts.errors import BadInput, Exit
from steps.contracts.installation import Admission, Grant, Hook, Installation
from steps.contracts.ports import GpuNode
from steps.doctor.checks import examine
from steps.doctor.finding import Finding, Standing
from tests.unit.api_double import NOON
from tests.unit.outside_double import FakeOutside

OWN = "gpu-reclaim"
CONTROLLER = Grant(subject="ServiceAccount argo/argo", right="create pods", through="argo -> Role argo")
POLICY = "mode: observe\nnamespaces: []\nidle_after_s: 3600\nminimum_age_s: 1800\n"


def installed(**changes: Any) -> Installation:
    """An installation with nothing to complain about; a change that is no Sample becomes a measured one."""
    given: dict[str, Any] = {
        "kubernetes": "v1.34.4",
        "kinds": ("workflows", "workflowtemplates", "cronworkflows", "workflowtaskresults", "eventbus", "eventsources", "sensors"),
        "controllers": ("quay.io/argoproj/argo-events:v1.9.11", "quay.io/argoproj/workflow-controller:v4.1.2"),
        "admission": Admission(present=True, denies=True, chosen=True),
        "enforced": "privileged",
        "accounts": ("archivist", "eventsource", "executor", "probe", "reader", "stopper", "submitter", "trigger"),
        "executor_token": True,
        "pod_makers": (CONTROLLER,),
        "probe_grants": (),
        "nodes": (GpuNode(name="node-a", gpus=8, ready=True),),
        "runtime_class": True,
        "templates": ("release-check", "sweep"),
        "clocks": ("Sensor tick",),
        "hooks": (),
        "claim": "Bound",
        "policy": POLICY,
        "namespaces": (OWN, "team"),
        **changes,
    }
    readings: dict[str, Any] = {
        name: value if isinstance(value, Sample) else Sample.measured(value) for name, value in given.items()
    }
    return Installation(stamp=Stamp(made_by="test", made_at=NOON, origin=Origin.REAL), namespace=OWN, **readings)


def complaints(seen: Installation) -> list[Finding]:
    return [finding for finding in examine(seen) if finding.standing in (Standing.PROBLEM, Standing.UNKNOWN)]


def test_an_ordinary_installation_gives_no_complaint() -> None:
    assert complaints(installed()) == []


def grant(subject: str) -> Grant:
    return Grant(subject=subject, right="create pods", through="broad -> ClusterRole edit")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"kubernetes": "v1.29.9"}, "1.31 or newer"),
        ({"kinds": ("workflows", "workflowtemplates", "cronworkflows")}, "Argo Workflows"),
        ({"kinds": ("workflows", "workflowtemplates", "cronworkflows", "workflowtaskresults")}, "Argo Events 1.9.11"),
        ({"controllers": ("x/workflow-controller:v4.0.5", "x/argo-events:v1.9.11")}, "4.1.2"),
        ({"controllers": ("x/workflow-controller:v4.1.1", "x/argo-events:v1.9.11")}, "4.1.2"),
        ({"controllers": ("x/argo-events:v1.9.11",)}, "docs/events.md"),
        ({"controllers": ("x/workflow-controller:latest", "x/argo-events:v1.9.11")}, "which version"),
        ({"admission": Admission(present=False, denies=False, chosen=False)}, "deploy/admission"),
        ({"admission": Admission(present=True, denies=False, chosen=False)}, "deploy/admission"),
        ({"admission": Admission(present=True, denies=True, chosen=False)}, "namespace"),
        ({"admission": Admission(present=True, denies=True, chosen=True, gaps=("no rule speaks of '{{'",))}, "deploy/admission"),
        ({"pod_makers": (grant("ServiceAccount gpu-reclaim/stopper"),)}, "take that binding away"),
        ({"pod_makers": (grant("ServiceAccount gpu-reclaim/default"),)}, "take that binding away"),
        ({"pod_makers": (grant("Group system:serviceaccounts:gpu-reclaim"),)}, "take that binding away"),
        ({"pod_makers": ()}, "controller"),
        ({"enforced": "restricted"}, "deploy/overlays"),
        ({"accounts": ("reader",)}, "deploy/overlays"),
        ({"accounts": ("archivist", "executor", "probe", "reader", "stopper", "submitter")}, "deploy/events"),
        ({"executor_token": False}, "delete the Secret"),
        ({"executor_token": Sample.absent("there is no secrets/x")}, "deploy/overlays"),
        ({"probe_grants": (grant("ServiceAccount gpu-reclaim/probe"),)}, "take those bindings away"),
        ({"runtime_class": False}, "toolkit"),
        ({"nodes": ()}, "device plugin"),
        ({"templates": ("sweep",)}, "deploy/overlays"),
        ({"clocks": ()}, "choose one"),
        ({"clocks": ("CronWorkflow sweep", "Sensor tick")}, "keep one"),
        ({"hooks": (Hook(source="tags/pushed", secret_bytes=0),)}, "16 bytes or more"),
        ({"hooks": (Hook(source="tags/pushed", secret_bytes=15),)}, "16 bytes or more"),
        ({"claim": Sample.absent("there is none")}, "deploy/overlays"),
        ({"policy": "mode: perhaps\n"}, "correct it"),
        ({"policy": Sample.absent("there is none")}, "deploy/policy"),
        ({"policy": POLICY.replace("[]", "[team, misspelt]")}, "correct `namespaces`"),
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(change: dict[str, Any], word: str) -> None:
    (finding,) = complaints(installed(**change))
    assert finding.remedy is not None
    assert word in finding.remedy


def test_a_namespace_that_the_policy_misspells_is_called_by_its_name_and_those_that_exist_are_not() -> None:
    (finding,) = complaints(installed(policy=POLICY.replace("[]", "[misspelt, team]")))
    assert finding.sentence == "the cluster has no misspelt: nobody in there is judged"
    assert complaints(installed(policy=POLICY.replace("[]", "[team]"))) == []


@pytest.mark.parametrize("name", [field.name for field in msgspec.structs.fields(Installation)[3:]])
def test_what_could_not_be_read_is_unknown_and_not_well(name: str) -> None:
    found = examine(installed(**{name: Sample.error("forbidden")}))
    assert [finding.standing for finding in found if "forbidden" in finding.sentence] == [Standing.UNKNOWN]


@pytest.mark.parametrize("version", ["v1.37.0", "v1.30.2"])
def test_an_untested_version_is_a_note(version: str) -> None:
    notes = [finding.sentence for finding in examine(installed(kubernetes=version)) if finding.standing is Standing.NOTE]
    assert any(version in sentence for sentence in notes)


class Examined(FakeOutside):
    """An outside with an installation of the test's making."""

    seen: Installation

    def installation(self) -> doctor.InstallationReader:
        return Reader(self.seen)


class Reader:
    def __init__(self, seen: Installation) -> None:
        self._seen = seen

    def read(self) -> Installation:
        return self._seen


def told(seen: Installation, *argv: str) -> Exit:
    outside = Examined()
    outside.seen = seen
    parser = argparse.ArgumentParser()
    doctor.add(parser.add_subparsers(), lambda: outside)
    arguments = parser.parse_args(["doctor", *argv])
    handler: Callable[[argparse.Namespace], Exit] = arguments.handler
    return handler(arguments)


@pytest.mark.parametrize(
    ("seen", "done"),
    [
        (installed(), Exit.DONE),
        (installed(runtime_class=False), Exit.FOUND_PROBLEMS),
        (installed(runtime_class=False, nodes=Sample.error("forbidden")), Exit.FOUND_PROBLEMS),
        (installed(nodes=Sample.error("forbidden")), Exit.COULD_NOT),
    ],
)
def test_the_exit_code_says_whether_all_is_well(seen: Installation, done: Exit, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(seen) is done
    assert told(seen, "--output=json") is done
    assert capsys.readouterr().out.startswith("ok       Kubernetes: v1.34.4\n")


def test_foreign_names_do_not_reach_the_terminal_raw(capsys: pytest.CaptureFixture[str]) -> None:
    told(installed(pod_makers=(grant("User \x1b[31malice"),)))
    assert "\x1b" not in capsys.readouterr().out


def test_a_simulated_cluster_has_no_installation() -> None:
    parser = argparse.ArgumentParser()
    doctor.add(parser.add_subparsers(), FakeOutside)
    arguments = parser.parse_args(["doctor"])
    with pytest.raises(BadInput, match="simulator"):
        arguments.handler(arguments)


def test_without_a_hook_doctor_says_nothing_of_hooks() -> None:
    assert "git hooks" not in {finding.subject for finding in examine(installed())}
    assert good_hook(installed(hooks=(Hook(source="tags/pushed", secret_bytes=16),))) == [Standing.GOOD]


def good_hook(seen: Installation) -> list[Standing]:
    return [finding.standing for finding in examine(seen) if finding.subject == "git hooks"]
