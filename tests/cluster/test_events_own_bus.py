"""The bus in pods of its own, by overlay: one replica in `small`, three in `standard`. TLS, an hour, and files that show nothing.

Repeated by `make cluster-test-full` only: the other tests use one beside the cluster, as one with a NATS of its own does.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from steps.contracts.release_check import Answer
from tests.cluster import events_scene as events
from tests.cluster import scene
from tests.cluster.lab import events_bus
from tests.cluster.lab.commands import output_of
from tests.cluster.lab.kubectl import Json
from tests.cluster.lab.lab import Lab
from tests.cluster.lab.places import CHECKOUT

pytestmark = [pytest.mark.cluster, pytest.mark.repeat]

REPLICAS = {"small": 1, "standard": 3}
SECRET = "password-that-nobody-should-find"
HOUR_NS = 3_600_000_000_000
RECONNECTED_S = 12
"""A source looks at its connection every 5 s, and its next try may be for the replica that is gone."""
_GET = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"
_FIRST_LINE = "import socket, sys; print(socket.create_connection((sys.argv[1], 4222), timeout=10).recv(65536).decode())"


@dataclass(frozen=True, slots=True)
class Installed:
    """An overlay as shipped, and what came of one pod's deletion. folders: behind the bus' claims. check: the Workflow.

    after_a_loss: of another pod's deletion while one replica of the bus was being replaced; None where there is only one."""

    lab: Lab
    replicas: int
    bus: tuple[Json, ...]
    folders: tuple[Path, ...]
    check: Json
    after_a_loss: Json | None


@pytest.fixture(scope="module", params=sorted(REPLICAS))
def overlay(request: pytest.FixtureRequest, installed: Lab) -> Iterator[Installed]:
    lab, name = installed, str(request.param)
    lab.events()
    scene.make_room(lab)
    lab.kubectl.delete("eventbus", "default", lab.namespace)
    folders = events_bus.make_ready(lab, REPLICAS[name])
    lab.kubectl.apply(CHECKOUT / "deploy" / "overlays" / name)
    bus = tuple(events_bus.wait_until_up(lab, REPLICAS[name]))
    events.wait_ready(lab, "pods", "pod-deleted", "ticks", "tick", within_s=180)
    try:
        check = _deleted(lab, f"over-{name}")
        yield Installed(lab, REPLICAS[name], bus, folders, check, _after_a_loss(lab) if REPLICAS[name] > 1 else None)
    finally:
        scene.make_room(lab)
        events_bus.put_back(lab)
        scene.set_policy(lab)


def _deleted(lab: Lab, name: str) -> Json:
    """The Workflow that a pod's deletion starts; the pod carries a secret in an environment value."""
    container = {**events.gpu_container("session", "--mib=256"), "env": [{"name": "PASSWORD", "value": SECRET}]}
    (pod,) = events.start_pods(lab, [events.session_pod(name, containers=[container])])
    events.delete_pods(lab, name)
    uid = pod["metadata"]["uid"]
    (workflow,) = events.wait_checks(lab, [uid])[uid]
    return workflow


def _after_a_loss(lab: Lab) -> Json:
    """The same as soon as one of three was killed and the source is connected again; its name still leads to where it was."""
    lab.kubectl("delete", "pod", "eventbus-default-js-0", f"--namespace={lab.namespace}", "--grace-period=0", "--force")
    events.settle(RECONNECTED_S)
    return _deleted(lab, "after-a-loss")


def test_a_deletion_is_verified_over_the_bus_that_the_overlay_brings(overlay: Installed) -> None:
    assert overlay.check["status"]["phase"] == "Succeeded", scene.phases(overlay.check)
    assert events.answer(overlay.check).answer is Answer.RETURNED
    assert len(overlay.bus) == overlay.replicas


def test_a_bus_of_three_goes_on_with_two(overlay: Installed) -> None:
    checks = [] if overlay.after_a_loss is None else [events.answer(overlay.after_a_loss).answer]
    assert checks == ([Answer.RETURNED] if overlay.replicas > 1 else [])


def test_the_bus_speaks_only_tls_and_knows_its_users(overlay: Installed) -> None:
    """NATS says so before anything else, in the clear."""
    told = output_of(overlay.lab.inside(sys.executable, "-c", _FIRST_LINE, overlay.bus[-1]["status"]["podIP"]), timeout_s=20)
    info = json.loads(told.partition("INFO ")[2].splitlines()[0])
    assert (info["tls_required"], info["auth_required"]) == (True, True)


def test_events_are_kept_for_an_hour_by_as_many_as_there_are(overlay: Installed) -> None:
    address = f"http://{overlay.bus[-1]['status']['podIP']}:8222/jsz?accounts=1&streams=1&config=1"
    told = json.loads(output_of(overlay.lab.inside(sys.executable, "-c", _GET, address), timeout_s=20))
    (stream,) = (one for account in told["account_details"] for one in account.get("stream_detail", []) if one["name"] == "default")
    assert (stream["config"]["max_age"], stream["config"]["num_replicas"]) == (HOUR_NS, overlay.replicas)
    assert stream["state"]["messages"] >= 1


def test_what_lies_on_the_bus_volume_shows_no_secret(overlay: Installed) -> None:
    """The event is the whole pod; that it was stored is known from the file's size, and its text is not there in the clear."""
    for folder in overlay.folders:
        blocks = [path for path in folder.rglob("*.blk") if "/streams/default/" in str(path)]
        assert sum(path.stat().st_size for path in blocks) > 1000
        assert not [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
