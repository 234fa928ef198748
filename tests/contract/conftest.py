"""The APIs one suite runs over: the simulated one always, a real server where the cluster tier names its kubeconfig."""

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sim.api import StateFileApi
from sim.clock import SimulatedClock
from sim.scenarios.builder import WorldBuilder
from sim.world.store import StateFile
from steps.adapters.kubernetes.api import Api, Json
from steps.contracts.ports import Clock

REAL_VARIABLE = "GPU_RECLAIM_TEST_API"
NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@dataclass(frozen=True)
class ApiUnderTest:
    """An API, a namespace of the test's own in it, and the clock its controllers live by."""

    api: Api
    namespace: str
    clock: Clock

    def path(self, plural: str, name: str = "", *, prefix: str = "/api/v1") -> str:
        tail = f"/{name}" if name else ""
        return f"{prefix}/namespaces/{self.namespace}/{plural}{tail}"

    def deployment(self, name: str, tail: str = "") -> str:
        return self.path("deployments", name, prefix="/apis/apps/v1") + tail

    def settled(self, path: str) -> Json:
        """The object once its controllers have left it alone for three looks; 60 looks at most."""
        seen: list[Json] = []
        for _ in range(60):
            seen = [*seen[-2:], self.api.get(path).body]
            if len(seen) == 3 and len({item["metadata"]["resourceVersion"] for item in seen}) == 1:
                return seen[-1]
            self.clock.sleep(0.3)
        raise AssertionError(f"{path} never came to rest")

    def pods_of(self, name: str, count: int) -> list[Json]:
        """The pods of a Deployment once there are so many of them and the scheduler has spoken of each; 60 looks at most."""
        for _ in range(60):
            pods = list(self.api.list(self.path("pods"), label_selector=f"app={name}").body["items"])
            if len(pods) == count and all(pod["status"].get("conditions") for pod in pods):
                return pods
            self.clock.sleep(0.3)
        raise AssertionError(f"there were never {count} pods of {name}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """No skips: where no real server is named, the suite has its simulated half only."""
    if "api_kind" in metafunc.fixturenames:
        metafunc.parametrize("api_kind", ["simulated", *(["real"] if os.environ.get(REAL_VARIABLE) else [])])


@pytest.fixture
def cluster(api_kind: str, tmp_path: Path) -> Iterator[ApiUnderTest]:
    """A fresh namespace of a cluster."""
    if api_kind == "simulated":
        built = WorldBuilder(NOON)
        built.namespace("contract")
        built.node("contract-node", "no GPU", gpus=0, memory_gib=0)
        state = tmp_path / "state.json"
        StateFile(state).create(built.world)
        yield ApiUnderTest(StateFileApi(state), "contract", SimulatedClock(state))
        return
    api, clock = _real(Path(os.environ[REAL_VARIABLE]))
    namespace = f"contract-{uuid.uuid4().hex[:8]}"
    assert api.create("/api/v1/namespaces", {"metadata": {"name": namespace}}).ok
    yield ApiUnderTest(api, namespace, clock)
    api.delete(f"/api/v1/namespaces/{namespace}")


def waiting_deployment(name: str, replicas: int = 1, **metadata: object) -> Json:
    """A Deployment whose pod no node can take, so that its status comes to rest."""
    container = {"name": "session", "image": "registry.example/nothing:1"}
    spec = {"nodeSelector": {"contract-test": "no-such-node"}, "containers": [container]}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    selector = {"matchLabels": {"app": name}}
    return {"metadata": {"name": name, **metadata}, "spec": {"replicas": replicas, "selector": selector, "template": template}}


def _real(kubeconfig: Path) -> tuple[Api, Clock]:
    from steps.adapters.clock import SystemClock  # noqa: PLC0415 - only with a server at hand
    from steps.adapters.kubernetes.client import RealApi  # noqa: PLC0415

    return RealApi({"KUBECONFIG": str(kubeconfig)}), SystemClock()
