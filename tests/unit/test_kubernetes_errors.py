"""The API client's own exceptions end in the adapter: above it there are ours alone, and a lost write is never called a failure."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import exceptions as clients
from kubernetes.client.exceptions import ApiException
from urllib3 import exceptions as transports
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from steps.adapters.kubernetes.client import RealApi
from steps.contracts.errors import OutcomeUnknown, SourceUnavailable

NOTHING_WAS_SENT = (NewConnectionError, ConnectTimeoutError)


KINDS: list[type[Exception]] = [
    kind
    for module, root in ((transports, HTTPError), (clients, ApiException))
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, root)
]


def instance_of(kind: Any) -> Exception:
    """One of these, whatever its constructor wants."""
    if issubclass(kind, ApiException):
        refusal: Exception = kind(status=0, reason="broken")
        return refusal
    made: Exception = kind.__new__(kind, "broken")
    vars(made).update(reason="broken", partial=1, expected=2, length=b"3")
    return made


class Raising:
    """Stands for the client's connection: every request ends in this error."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.pool_manager: Any = contextlib.nullcontext()

    def request(self, *_: object, **__: object) -> object:
        raise self._error


@pytest.fixture
def api(tmp_path: Path) -> RealApi:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    return RealApi({"KUBECONFIG": str(kubeconfig)})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__qualname__)
def test_no_exception_of_the_client_leaves_the_adapter(api: RealApi, kind: type[Exception]) -> None:
    api._client.rest_client = Raising(instance_of(kind))  # the lowest point that the client offers
    lost = SourceUnavailable if issubclass(kind, NOTHING_WAS_SENT) else OutcomeUnknown
    reads: list[Callable[[], object]] = [lambda: api.get("/x"), lambda: api.list("/x"), lambda: api.text("/x", limit_bytes=1)]
    writes: list[Callable[[], object]] = [lambda: api.create("/x", {}), lambda: api.patch("/x", {}), lambda: api.delete("/x")]
    for read in reads:
        with pytest.raises(SourceUnavailable):
            read()
    for write in writes:
        with pytest.raises(lost) as caught:
            write()
        assert "\n" not in str(caught.value)


def test_the_list_of_kinds_is_the_clients_and_not_empty() -> None:
    assert {HTTPError, ApiException, ConnectTimeoutError} < set(KINDS)
    assert len(KINDS) > 20
